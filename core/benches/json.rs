//! JSON: streamed tool arguments, whole documents, validation.

#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};
use tau_core::json::{PartialArgs, parse, to_string, validate};

/// Arguments with one long text, as `write` gets them.
fn long_text(bytes: usize) -> String {
    let content = "fn main() {\n\tprintln!(\"hello, \\\"world\\\"\");\n}\n".repeat(bytes / 46);
    to_string(&json!({ "path": "src/main.rs", "content": content }))
}

/// Arguments with many small items, as `edit` gets them.
fn many_items(count: usize) -> String {
    let edits: Vec<Value> =
        (0..count).map(|i| json!({ "oldText": format!("old {i}"), "newText": format!("new {i}") })).collect();
    to_string(&json!({ "path": "src/main.rs", "edits": edits }))
}

fn nested(levels: usize) -> String {
    format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels))
}

/// Pieces of `size` bytes, cut between characters.
fn pieces(text: &str, size: usize) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        out.push(piece);
        rest = tail;
    }
    out
}

fn partial(c: &mut Criterion) {
    let mut group = c.benchmark_group("partial_json");
    group.sample_size(20);
    let cases = [
        ("text_400k", long_text(400_000)),
        ("text_2m", long_text(2_000_000)),
        ("items_10000", many_items(10_000)),
        ("nested_1000", nested(1000)),
    ];
    for (name, text) in &cases {
        let deltas = pieces(text, 19);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new("stream", name), |b| {
            b.iter(|| {
                let mut args = PartialArgs::new();
                deltas.iter().for_each(|delta| args.push(delta));
                black_box(args.finish())
            });
        });
        // One look at the end reads everything with the tolerant parser.
        group.bench_function(BenchmarkId::new("tolerant", name), |b| {
            b.iter(|| {
                let mut args = PartialArgs::new();
                deltas.iter().for_each(|delta| args.push(delta));
                black_box(args.snapshot())
            });
        });
    }
    group.finish();
}

fn documents(c: &mut Criterion) {
    let mut group = c.benchmark_group("json_parse");
    group.sample_size(20);
    for (name, text) in [("text_2m", long_text(2_000_000)), ("items_10000", many_items(10_000))] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new("own", name), |b| b.iter(|| black_box(parse(&text))));
        group.bench_function(BenchmarkId::new("serde_json", name), |b| {
            b.iter(|| black_box(serde_json::from_str::<Value>(&text)));
        });
    }
    group.finish();
}

fn validation(c: &mut Criterion) {
    let schema = json!({ "type": "object", "required": ["path", "edits"], "properties": {
        "path": { "type": "string" },
        "edits": { "type": "array", "items": { "type": "object", "required": ["oldText", "newText"],
            "properties": { "oldText": { "type": "string" }, "newText": { "type": "string" } } } } } });
    let args = Arc::new(parse(&many_items(10_000)).unwrap_or_default());
    c.bench_function("validate/items_10000", |b| b.iter(|| black_box(validate(&schema, &args))));
}

criterion_group!(benches, partial, documents, validation);
criterion_main!(benches);
