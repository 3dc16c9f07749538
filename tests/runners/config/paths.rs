//! Configured paths and addresses.

use serde_json::{Value, json};
use tau_core::path::{self, Style};
use tau_core::provider::azure::Endpoint;
use tau_tests::compare::same;

/// `path-normalize.json`
pub fn expand(_: &Value, case: &Value) -> Result<(), String> {
    let (given, home) = (case["input"]["path"].as_str(), case["input"]["home"].as_str());
    let value = path::expand(given.ok_or("no path")?, home.ok_or("no home")?, Style::Posix);
    same(&case["expected"], &json!({ "value": value.map_err(|e| e.to_string())? }))
}

/// `azure-config.json`: options come before the variables they are named like.
pub fn azure(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let id = input["model"]["id"].as_str().ok_or("no model")?;
    let option = |name: &str| match name {
        "AZURE_OPENAI_BASE_URL" => input["options"]["azureBaseUrl"].as_str(),
        _ => None,
    };
    let variable = |name: &str| option(name).or_else(|| input["env"][name].as_str());
    let found = Endpoint::resolve(&variable, id, input["model"]["baseUrl"].as_str().unwrap_or_default());
    let got = match found {
        Ok(endpoint) => {
            let deployment = input["options"]["azureDeploymentName"].as_str().unwrap_or(&endpoint.deployment);
            json!({"baseUrl": endpoint.base_url, "apiVersion": endpoint.api_version, "deployment": deployment})
        }
        Err(_) => json!({"error": true}),
    };
    same(&case["expected"], &got)
}
