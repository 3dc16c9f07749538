//! What models cost at start: one that is named, all of them for a list; with an entry of `models.json` for the largest
//! provider, and with stored lists of everything.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value, json};
use tau_core::json::members;
use tau_core::model::builtin;
use tau_core::model::catalog::Catalog;
use tau_core::model::lists::Read;
use tau_core::model::remote::{self, SHIPPED_AT};

const OVERRIDE: &str = r#"{"providers":{"openrouter":{"headers":{"X-A":"b"},"modelOverrides":{
    "moonshotai/kimi-k2.7-code":{"compat":{"openRouterRouting":{"only":["moonshotai"]}}}}}}}"#;

/// A store that holds a newer list of every provider, as large as can be.
fn store() -> String {
    let entry = |section: builtin::Section| {
        let models: Vec<Value> = section.records().into_iter().map(Value::Object).collect();
        (section.id.to_owned(), json!({ "models": models, "lastModified": SHIPPED_AT + 1 }))
    };
    serde_json::to_string_pretty(&builtin::sections().map(entry).collect::<Map<_, _>>()).unwrap()
}

fn named(c: &mut Criterion) {
    let mut group = c.benchmark_group("named");
    let load = |text: Option<&str>| Catalog::load("models.json", Ok(text));
    for (name, provider, id) in [
        ("anthropic", "anthropic", "claude-opus-5-5"),
        ("openrouter", "openrouter", "z-ai/glm-5.3"),
        ("last-provider", "zai-coding-cn", "glm-5.3"),
    ] {
        group.bench_function(name, |b| b.iter(|| load(black_box(None)).find(provider, id).unwrap()));
    }
    let id = "moonshotai/kimi-k2.7-code";
    group.bench_function("with-override", |b| {
        b.iter(|| load(black_box(Some(OVERRIDE))).find("openrouter", id).unwrap());
    });
    group.finish();
}

fn all(c: &mut Criterion) {
    let mut group = c.benchmark_group("all");
    let count = |catalog: &Catalog| -> u64 {
        catalog.entries().iter().map(|entry| entry.facts().context_window).sum()
    };
    let catalog = Catalog::default();
    group.bench_function("names", |b| b.iter(|| black_box(&catalog).entries().len()));
    group.bench_function("facts", |b| b.iter(|| count(black_box(&catalog))));
    let text = store();
    group.bench_function("store-divide", |b| b.iter(|| members(black_box(&text)).unwrap()));
    group.bench_function("store-read", |b| b.iter(|| remote::read_store(black_box(&text)).unwrap()));
    let lists = Read::new(remote::read_store(&text).unwrap(), &|_| None);
    let catalog = Catalog::load_over(Some(Arc::new(lists)), "models.json", Ok(None));
    assert!(catalog.list_remarks().is_empty());
    group.bench_function("store-facts", |b| b.iter(|| count(black_box(&catalog))));
    println!("store: {} bytes", text.len());
    group.finish();
}

criterion_group!(benches, named, all);
criterion_main!(benches);
