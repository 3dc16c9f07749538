//! Text of `models.json`: no panic; every fault names a place; every model that is left can be
//! asked for, written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::json::{self, Writer};
use tau_core::model::catalog::Catalog;
use tau_core::model::record::to_model;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let catalog = Catalog::load("models.json", Ok(Some(&text)));
    for fault in catalog.faults() {
        assert!(fault.to_string().contains("models.json"), "{fault}");
        assert!(fault.at.is_empty() || fault.at.starts_with("providers"), "{fault}");
    }
    let changed = catalog.entries().into_iter().filter(|entry| catalog.configured(entry.provider).is_some());
    for entry in changed {
        let found = catalog.entry(entry.provider, entry.id);
        assert!(found.is_some(), "{}/{}", entry.provider, entry.id);
        let model = entry.model();
        assert_eq!(model.clamp(model.clamp(Default::default())), model.clamp(Default::default()));
        let mut w = Writer::new();
        model.write(&mut w);
        let record = json::parse(w.as_str()).expect("JSON of our own");
        let again = to_model(record.as_object().expect("an object"));
        assert_eq!((again.id, again.api, again.context_window), (model.id, model.api, model.context_window));
    }
});
