//! `docs/providers.md`, made from what is built in.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tau_core::auth::{env, oauth};
use tau_core::model::builtin;
use tau_core::model::select::default_model;
use tau_core::provider::speaks;

const HEAD: &str = "# Providers

Made from the built-in tables; `TAU_WRITE_DOCS=1 cargo test -p tau-tests --test catalogue` writes it anew.

A provider can be used when its variables are set, when `auth.json` holds a key or a sign-in for it, or when `models.json` gives it a key
([models.md](models.md)). Of several variables one is enough; only clouds need more ([auth.md](auth.md)). `tau --list-models` shows what can
be used. A sign-in is `tau auth login ID`.

| provider | id | protocol (models) | environment | sign-in | default model |
|---|---|---|---|---|---|
";

const TAIL: &str = "
\\* Not spoken yet: these models are known and cannot be asked.

Other services that speak one of these protocols, and servers of your own, are entries of `models.json`.
";

fn document() -> String {
    let mut out = String::from(HEAD);
    for section in builtin::sections().filter(|section| section.id != "demo") {
        let mut protocols: Vec<(String, usize)> = Vec::new();
        for record in section.records() {
            let api = record["api"].as_str().expect("a protocol").to_owned();
            match protocols.iter_mut().find(|(known, _)| *known == api) {
                Some((_, count)) => *count += 1,
                None => protocols.push((api, 1)),
            }
        }
        if protocols.is_empty() {
            continue;
        }
        protocols.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let protocols: Vec<String> = protocols
            .iter()
            .map(|(api, count)| format!("`{api}`{} ({count})", if speaks(api) { "" } else { "\\*" }))
            .collect();
        let auth = env::provider(section.id);
        let variables: Vec<String> = auth
            .into_iter()
            .flat_map(|auth| auth.method.variables())
            .map(|name| format!("`{name}`"))
            .collect();
        let sign_in = if oauth::is_supported(section.id) { "yes" } else { "" };
        let _ = writeln!(
            out,
            "| {} | `{}` | {} | {} | {sign_in} | `{}` |",
            section.name,
            section.id,
            protocols.join(", "),
            variables.join(", "),
            default_model(section.id).unwrap_or_default(),
        );
    }
    out + TAIL
}

/// `TAU_WRITE_DOCS=1` writes it.
#[test]
fn the_document_of_providers_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/providers.md");
    if std::env::var_os("TAU_WRITE_DOCS").is_some() {
        fs::write(&path, document()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    for (number, (found, wanted)) in found.lines().zip(document().lines()).enumerate() {
        assert_eq!(found, wanted, "docs/providers.md, line {}; TAU_WRITE_DOCS=1 writes it anew", number + 1);
    }
    assert_eq!(found, document());
}
