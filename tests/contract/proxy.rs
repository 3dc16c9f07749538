//! Proxy rules: the vectors, and bug 89.

use std::path::Path;

use serde_json::Value;
use tau_io_std::sys::proxy::select;

fn chosen(input: &Value) -> Result<Option<String>, String> {
    let env = &input["env"];
    let var = |name: &str| env[name].as_str().map(str::to_owned);
    select(input["url"].as_str().unwrap(), None, &var).map(|proxy| proxy.map(|proxy| proxy.url()))
}

fn cases(path: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(path);
    let doc: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    doc["cases"].as_array().unwrap().clone()
}

#[test]
fn vectors() {
    let mut count = 0;
    for (file, key) in [("config/http-proxy.json", "proxy"), ("providers/proxy.json", "")] {
        for case in cases(file) {
            count += 1;
            let expected = &case["expected"];
            let got = chosen(&case["input"]);
            if expected["error"].as_bool() == Some(true) {
                assert!(got.is_err(), "{}", case["name"]);
                continue;
            }
            let expected = if key.is_empty() { expected } else { &expected[key] };
            assert_eq!(
                got.as_ref().ok().cloned().flatten().as_deref(),
                expected.as_str(),
                "{}",
                case["name"]
            );
            assert!(got.is_ok(), "{}: {got:?}", case["name"]);
        }
    }
    assert!(count > 40);
}

#[test]
fn bug_89() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bugs/89-proxy-no-proxy/cases.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for case in &cases {
        // Loopback without an exception goes through the proxy, as the user said; the vectors hold that too.
        let proxied = case["proxy"].as_bool().unwrap_or(true);
        assert_eq!(chosen(case).unwrap().is_some(), proxied, "{case}");
    }
    assert!(cases.len() > 5);
}
