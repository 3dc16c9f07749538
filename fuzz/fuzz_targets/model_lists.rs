//! Lists of models from the network: no panic; no model of them sends a key elsewhere than the provider's services; what is
//! stored reads back. The first byte chooses whether it is the store or an answer of the service.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tau_core::json::members;
use tau_core::model::builtin;
use tau_core::model::catalog::Catalog;
use tau_core::model::lists::Read;
use tau_core::model::origin::Origins;
use tau_core::model::remote::{self, SHIPPED_AT, Stored};
use tau_core::now::Wall;

fuzz_target!(|data: &[u8]| {
    let Some((&seed, body)) = data.split_first() else { return };
    let lists = if seed % 2 == 0 { answer(body) } else { store(body) };
    let ids: Vec<String> = lists.iter().map(|(id, _)| id.clone()).collect();
    let lists = Read::new(lists, &|_| None);
    let catalog = Catalog::load_over(Some(Arc::new(lists)), "models.json", Ok(None));
    for entry in catalog.entries().into_iter().filter(|entry| ids.iter().any(|id| id == entry.provider)) {
        let section = builtin::section(entry.provider).expect("only built-in providers have lists");
        let model = entry.model();
        assert!(Origins::of(section, None).allow(&model.base_url), "{}", model.base_url);
        assert_eq!((model.provider.as_str(), model.id.as_str()), (entry.provider, entry.id));
        assert!(catalog.entry(entry.provider, entry.id).is_some());
    }
});

fn answer(body: &[u8]) -> Vec<(String, Stored)> {
    let outcome = remote::conclude("groq", None, 200, &Vec::new(), body, Wall(1));
    let Some(stored) = outcome.store else { return Vec::new() };
    assert_eq!(Stored::read("groq", &stored.to_value()), stored);
    vec![("groq".into(), Stored { last_modified: Some(SHIPPED_AT + 1), ..stored })]
}

fn store(body: &[u8]) -> Vec<(String, Stored)> {
    let text = String::from_utf8_lossy(body);
    let divided = members(&text);
    let Ok(mut lists) = remote::read_store(&text) else { return Vec::new() };
    assert!(divided.is_ok_and(|divided| divided.len() >= lists.len()), "what is JSON can be divided");
    lists.iter_mut().for_each(|(_, stored)| stored.last_modified = Some(SHIPPED_AT + 1));
    lists
}
