//! Vectors of `config/`.

mod auth;
mod auth_store;
mod catalogue;
mod cost;
mod models;
mod oauth;
mod paths;
mod resolve;
mod settings;
mod settings_write;
mod startup;
mod trust;

use tau_tests::vectors::{VectorFile, file};

use super::sessions::store;
use super::tools::selection;

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("auth-file", auth_store::file),
    file("auth-file-validate", auth::file_validate),
    file("auth-precedence", auth::precedence),
    file("auth-resolve", auth::resolve_one),
    file("azure-config", paths::azure),
    file("branch-selection", store::branch_model),
    file("config-value", auth::config_value),
    file("catalog-refresh", catalogue::refresh),
    file("openrouter-personalize", catalogue::personalize),
    file("thinking-catalog", catalogue::levels),
    file("cost", cost::price),
    file("desktop-model-lookup", catalogue::lookup),
    file("openrouter-cost", cost::openrouter),
    file("jsonc", settings::jsonc),
    file("locale-order", resolve::locale_order),
    file("glob", resolve::glob),
    file("model-scope", resolve::model_scope),
    file("model-resolve-cli", resolve::cli),
    file("model-resolve-exact", resolve::exact),
    file("models-json", models::models_json),
    file("device-code-poll", oauth::polling),
    file("oauth-flows", oauth::flow),
    file("oauth-refresh", auth_store::refresh),
    file("settings-accessors", settings::accessors),
    file("settings-compaction", settings::compaction),
    file("settings-merge", settings::merge),
    file("settings-migrate", settings::migrate),
    file("settings-write", settings_write::write),
    file("startup-selection", startup::selection),
    file("tool-list", selection::tool_list),
    file("trust", trust::decision),
    file("thinking-clamp", resolve::thinking_clamp),
    file("path-normalize", paths::expand),
];
