//! Rules of the product runtime.

use serde_json::{Value, json};
use tau_core::permissions::{Contract, Decision, PermissionMode, Request, ToolClass};
use tau_tests::compare::same;
use tau_tests::vectors::{VectorFile, file};

pub const FILES: &[VectorFile] =
    &[file("permission_decision", decision), file("permission_effective_mode", effective)];

fn decision(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let request = Request {
        mode: PermissionMode::parse(input["permissionMode"].as_str().unwrap()).unwrap(),
        contract: if input["mode"] == "agent" { Contract::None } else { Contract::Planning },
        class: ToolClass::of(input["tool"].as_str().unwrap(), input["declaredRisk"].as_str()),
        outside: input["externalPath"] == true,
        granted: input["sessionGrant"] == true,
    };
    let got = match request.decide() {
        Decision::Allow => "allow-once",
        Decision::Granted => "allow-session",
        Decision::Ask => "prompt",
        Decision::Deny => "deny",
    };
    same(&case["expected"], &json!(got))
}

fn effective(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let name = |key: &str| input[key].as_str();
    let mode = PermissionMode::effective(name("delegateScope"), name("sessionMode"), name("globalDefault"));
    same(&case["expected"], &json!(mode.name()))
}
