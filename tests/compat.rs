//! What a service is known to do or not to do, and what a request looks like then: a row per flag (spec 30 §3), per
//! family of services, per way of thinking. Rows that the vectors have are not repeated.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::message::Message;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::op::{Credential, HttpRequest};
use tau_core::provider::{self, CacheRetention, ModelRequest, RequestOptions, ThinkingBudgets};
use tau_tests::messages::read;

fn model(api: &str, compat: &Value) -> Model {
    Model {
        id: "m1".into(),
        api: api.into(),
        provider: "p".into(),
        base_url: "https://llm.example/v1".into(),
        reasoning: true,
        context_window: 200_000,
        max_tokens: 64_000,
        compat: compat.as_object().cloned(),
        ..Model::default()
    }
}

/// A conversation with one tool.
fn messages() -> Vec<Arc<Message>> {
    read(&json!([
        {"role": "system", "content": "Be kind.", "timestamp": 0,
            "toolsAdded": [{"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}]},
        {"role": "user", "content": "go", "timestamp": 1},
    ]))
}

fn options() -> RequestOptions {
    RequestOptions {
        reasoning: Some(ThinkingLevel::Off),
        session_id: Some("s1".into()),
        temperature: Some(0.5),
        ..RequestOptions::default()
    }
}

/// A request as its body, with the headers under `headers` and the address under `url`.
fn made(model: &Model, options: &RequestOptions, env: &[(&str, &str)]) -> Value {
    let credential = Credential {
        // A token as ChatGPT's, which is a key to everybody else.
        api_key: Some(
            "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xMjMifX0.s"
                .into(),
        ),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Credential::default()
    };
    let messages = messages();
    let request = ModelRequest { model, messages: &messages, options, credential: &credential, now_ms: 9 };
    let HttpRequest { url, headers, body, .. } =
        provider::encoder(&model.api).unwrap().encode(&request).unwrap();
    let mut made: Value = serde_json::from_slice(&body).unwrap();
    made["url"] = url.into();
    made["headers"] = headers.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    made
}

fn at(made: &Value, pointer: &str) -> Value {
    made.pointer(pointer).cloned().unwrap_or(Value::Null)
}

#[test]
fn flags() {
    let none = Value::Null;
    let long = RequestOptions { cache: CacheRetention::Long, ..options() };
    let rows = [
        // protocol, flag, where to look, with the flag, without it
        (
            "anthropic-messages",
            json!({"supportsCacheControlOnTools": false}),
            "/tools/0/cache_control",
            none.clone(),
            json!({"type": "ephemeral", "ttl": "1h"}),
        ),
        (
            "anthropic-messages",
            json!({"supportsTemperature": false}),
            "/temperature",
            none.clone(),
            json!(0.5),
        ),
        (
            "anthropic-messages",
            json!({"supportsLongCacheRetention": false}),
            "/system/0/cache_control/ttl",
            none.clone(),
            json!("1h"),
        ),
        (
            "anthropic-messages",
            json!({"supportsEagerToolInputStreaming": false}),
            "/headers/anthropic-beta",
            json!("fine-grained-tool-streaming-2025-05-14"),
            none.clone(),
        ),
        (
            "anthropic-messages",
            json!({"sendSessionAffinityHeaders": true}),
            "/headers/x-session-affinity",
            json!("s1"),
            none.clone(),
        ),
        (
            "anthropic-messages",
            json!({"sendSessionAffinityHeaders": true, "sessionAffinityFormat": "openrouter"}),
            "/headers/x-session-id",
            json!("s1"),
            none.clone(),
        ),
        (
            "openai-completions",
            json!({"supportsDeveloperRole": true}),
            "/messages/0/role",
            json!("developer"),
            json!("system"),
        ),
        (
            "openai-completions",
            json!({"supportsLongCacheRetention": false}),
            "/prompt_cache_retention",
            none.clone(),
            json!("24h"),
        ),
        (
            "openai-completions",
            json!({"supportsLongCacheRetention": false}),
            "/prompt_cache_key",
            none.clone(),
            json!("s1"),
        ),
        (
            "openai-completions",
            json!({"promptCacheKeyMode": "disabled"}),
            "/prompt_cache_key",
            none.clone(),
            json!("s1"),
        ),
        ("openai-completions", json!({"supportsStore": false}), "/store", none.clone(), json!(false)),
        (
            "openai-completions",
            json!({"supportsUsageInStreaming": false}),
            "/stream_options",
            none.clone(),
            json!({"include_usage": true}),
        ),
        (
            "openai-completions",
            json!({"maxTokensField": "max_tokens"}),
            "/max_tokens",
            json!(64_000),
            none.clone(),
        ),
        (
            "openai-completions",
            json!({"supportsStrictMode": true}),
            "/tools/0/function/strict",
            json!(false),
            none.clone(),
        ),
        ("openai-completions", json!({"zaiToolStream": true}), "/tool_stream", json!(true), none.clone()),
        ("openai-completions", json!({"vllmPriority": 3}), "/priority", json!(3), none.clone()),
        (
            "openai-completions",
            json!({"sendSessionAffinityHeaders": true}),
            "/headers/session_id",
            json!("s1"),
            none.clone(),
        ),
        (
            "openai-completions",
            json!({"sendSessionAffinityHeaders": true, "sessionAffinityFormat": "openrouter"}),
            "/headers/x-session-id",
            json!("s1"),
            none.clone(),
        ),
        (
            "openai-completions",
            json!({"sendSessionAffinityHeaders": true, "sessionAffinityFormat": "openai-nosession"}),
            "/headers/session_id",
            none.clone(),
            none.clone(),
        ),
        (
            "openai-responses",
            json!({"supportsDeveloperRole": false}),
            "/input/0/role",
            json!("system"),
            json!("developer"),
        ),
        (
            "openai-responses",
            json!({"supportsLongCacheRetention": false}),
            "/prompt_cache_retention",
            none.clone(),
            json!("24h"),
        ),
        (
            "openai-responses",
            json!({"supportsExplicitPromptCacheMode": true}),
            "/prompt_cache_options",
            json!({"ttl": "30m"}),
            none.clone(),
        ),
        (
            "openai-responses",
            json!({"promptCacheKeyMode": "disabled"}),
            "/prompt_cache_key",
            none.clone(),
            json!("s1"),
        ),
        (
            "openai-responses",
            json!({"supportsMaxOutputTokens": false}),
            "/max_output_tokens",
            none.clone(),
            json!(64_000),
        ),
        (
            "openai-responses",
            json!({"supportsStrictMode": true}),
            "/tools/0/strict",
            json!(false),
            none.clone(),
        ),
        (
            "openai-responses",
            json!({"sessionAffinityFormat": "openai-nosession"}),
            "/headers/session-id",
            none.clone(),
            json!("s1"),
        ),
        (
            "openai-responses",
            json!({"sessionAffinityFormat": "openrouter"}),
            "/headers/x-session-id",
            json!("s1"),
            none.clone(),
        ),
        (
            "azure-openai-responses",
            json!({"supportsStrictMode": false}),
            "/tools/0/strict",
            none.clone(),
            json!(false),
        ),
        (
            "azure-openai-responses",
            json!({"promptCacheKeyMode": "disabled"}),
            "/prompt_cache_key",
            none.clone(),
            json!("s1"),
        ),
        (
            "azure-openai-responses",
            json!({"supportsDeveloperRole": false}),
            "/input/0/role",
            json!("system"),
            json!("developer"),
        ),
        (
            "openai-codex-responses",
            json!({"supportsStrictMode": false}),
            "/tools/0/strict",
            none.clone(),
            none,
        ),
        (
            "openai-codex-responses",
            json!({"promptCacheKeyMode": "disabled"}),
            "/prompt_cache_key",
            Value::Null,
            json!("s1"),
        ),
    ];
    for (api, compat, pointer, with, without) in rows {
        assert_eq!(at(&made(&model(api, &compat), &long, &[]), pointer), with, "{api} {compat} {pointer}");
        assert_eq!(at(&made(&model(api, &json!({})), &long, &[]), pointer), without, "{api} {pointer}");
    }
}

/// What is known of a service counts by its provider id and by its address, whatever the other one is.
#[test]
fn families() {
    struct Row {
        providers: &'static [&'static str],
        hosts: &'static [&'static str],
        store: bool,
        limit: &'static str,
        /// `reasoning_effort` at level high.
        effort: bool,
        long_cache: bool,
        /// A field that the family's way of thinking adds, with its value at level high.
        thinks: Option<(&'static str, Value)>,
    }
    const MAX: &str = "max_tokens";
    const COMPLETION: &str = "max_completion_tokens";
    let row = |providers, hosts, store, limit, effort, long_cache, thinks| Row {
        providers,
        hosts,
        store,
        limit,
        effort,
        long_cache,
        thinks,
    };
    let rows = [
        row(&["openai"], &["api.openai.com"], true, COMPLETION, true, true, None),
        row(
            &["deepseek"],
            &["api.deepseek.com"],
            false,
            MAX,
            true,
            true,
            Some(("/thinking/type", json!("enabled"))),
        ),
        row(
            &["zai", "zai-coding-cn"],
            &["api.z.ai", "open.bigmodel.cn"],
            false,
            MAX,
            false,
            true,
            Some(("/thinking", json!({"type": "enabled", "clear_thinking": false}))),
        ),
        row(
            &["together"],
            &["api.together.ai", "api.together.xyz"],
            false,
            MAX,
            false,
            false,
            Some(("/reasoning", json!({"enabled": true}))),
        ),
        row(
            &["moonshotai", "moonshotai-cn"],
            &["api.moonshot.ai", "api.moonshot.cn"],
            false,
            MAX,
            false,
            true,
            None,
        ),
        row(
            &["openrouter"],
            &["openrouter.ai"],
            true,
            COMPLETION,
            false,
            true,
            Some(("/reasoning", json!({"effort": "high"}))),
        ),
        row(&["cloudflare-workers-ai"], &["api.cloudflare.com"], false, COMPLETION, true, false, None),
        row(&["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"], false, MAX, false, false, None),
        row(&["nvidia"], &["integrate.api.nvidia.com"], false, MAX, false, false, None),
        row(&["ant-ling"], &["api.ant-ling.com"], false, MAX, false, false, None),
        row(
            &["cerebras", "opencode"],
            &["api.cerebras.ai", "opencode.ai"],
            false,
            COMPLETION,
            true,
            true,
            None,
        ),
        row(&["xai"], &["api.x.ai"], false, COMPLETION, false, true, None),
        row(&[], &["llm.chutes.ai"], false, MAX, true, true, None),
        row(
            &["groq", "huggingface", "ollama", "p"],
            &["localhost:11434", "api.groq.com"],
            true,
            COMPLETION,
            true,
            true,
            None,
        ),
    ];
    let options =
        RequestOptions { reasoning: Some(ThinkingLevel::High), cache: CacheRetention::Long, ..options() };
    for row in &rows {
        let by_id = row.providers.iter().map(|id| (*id, "llm.example"));
        for (provider, host) in by_id.chain(row.hosts.iter().map(|host| ("p", *host))) {
            let model = Model {
                provider: provider.into(),
                base_url: format!("https://{host}/v1"),
                ..model("openai-completions", &Value::Null)
            };
            let made = made(&model, &options, &[]);
            let name = format!("{provider} at {host}");
            assert_eq!(at(&made, "/store"), if row.store { json!(false) } else { Value::Null }, "{name}");
            assert_eq!(made[row.limit], 64_000, "{name}");
            let other = if row.limit == MAX { COMPLETION } else { MAX };
            assert_eq!(at(&made, &format!("/{other}")), Value::Null, "{name}");
            assert_eq!(made.get("reasoning_effort").is_some(), row.effort, "{name}");
            assert_eq!(made.get("prompt_cache_retention").is_some(), row.long_cache, "{name}");
            if let Some((pointer, value)) = &row.thinks {
                assert_eq!(at(&made, pointer), *value, "{name}");
            }
            let developer = provider == "openai" || host == "api.openai.com";
            assert_eq!(made["messages"][0]["role"], if developer { "developer" } else { "system" }, "{name}");
        }
    }
}

#[test]
fn azure_also_takes_chat_completions() {
    let model = Model {
        provider: "azure".into(),
        base_url: String::new(),
        ..model("openai-completions", &Value::Null)
    };
    let env = [
        ("AZURE_OPENAI_BASE_URL", "https://me.openai.azure.com/"),
        ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", "other=x,m1=my-deployment"),
        ("AZURE_OPENAI_API_VERSION", "2026-01-01"),
    ];
    let made = made(&model, &options(), &env);
    assert_eq!(made["url"], "https://me.openai.azure.com/openai/v1/chat/completions?api-version=2026-01-01");
    assert_eq!(made["model"], "my-deployment");
    assert_eq!(at(&made, "/headers/authorization"), Value::Null);
    assert!(made["headers"]["api-key"].is_string());
}

/// The choice `omit`: no field of any protocol mentions thinking, whatever the flags. Off is another thing.
#[test]
fn omit_says_nothing_about_thinking() {
    const FIELDS: &[&str] = &[
        "/thinking",
        "/output_config",
        "/reasoning",
        "/reasoning_effort",
        "/enable_thinking",
        "/prompt_mode",
        "/chat_template_kwargs",
        "/chat_template_args",
        "/thinking_budget",
        "/include",
        "/generationConfig/thinkingConfig",
    ];
    let formats = [
        "openai",
        "openrouter",
        "deepseek",
        "zai",
        "together",
        "qwen",
        "qwen-chat-template",
        "string-thinking",
        "ant-ling",
    ];
    let completions = formats.map(|format| ("openai-completions", json!({"thinkingFormat": format})));
    let others = [
        "anthropic-messages",
        "openai-responses",
        "azure-openai-responses",
        "google-generative-ai",
        "mistral-conversations",
    ]
    .map(|api| (api, json!({"forceAdaptiveThinking": true})));
    let said = |made: &Value| FIELDS.iter().filter(|field| made.pointer(field).is_some()).count();
    let base = RequestOptions { omit_thinking: true, ..options() };
    for (api, compat) in completions.into_iter().chain(others) {
        let model = Model {
            id: if api.starts_with("google") { "gemini-2.5-pro".into() } else { "m1".into() },
            thinking_levels: json!({"off": "none", "high": "high"}).as_object().cloned(),
            ..model(api, &compat)
        };
        let made = |options: &RequestOptions| made(&model, options, &[]);
        assert_eq!(said(&made(&base.at(ThinkingLevel::Off))), 0, "{api} {compat}");
        assert!(said(&made(&base.at(ThinkingLevel::High))) > 0, "{api} {compat}");
        if compat["thinkingFormat"] != "ant-ling" {
            assert!(said(&made(&options().at(ThinkingLevel::Off))) > 0, "{api} {compat}");
        }
    }
}

/// Budgets of the settings reach each protocol that thinks by tokens, under the output limit.
#[test]
fn budgets() {
    let budgets = ThinkingBudgets { high: Some(5_000), low: Some(90_000), ..ThinkingBudgets::default() };
    let rows = [
        ("anthropic-messages", "m1", "/thinking/budget_tokens", json!({})),
        (
            "google-generative-ai",
            "gemini-2.5-pro",
            "/generationConfig/thinkingConfig/thinkingBudget",
            json!({}),
        ),
        (
            "openai-completions",
            "m1",
            "/thinking_budget",
            json!({"thinkingTokenBudgetField": "thinking_budget"}),
        ),
        ("openai-completions", "m1", "/thinking_token_budget", json!({"supportsThinkingTokenBudget": true})),
    ];
    for (api, id, pointer, compat) in rows {
        let model = Model { id: id.into(), ..model(api, &compat) };
        let budget = |level| {
            let options = RequestOptions { reasoning: Some(level), budgets, ..options() };
            at(&made(&model, &options, &[]), pointer)
        };
        assert_eq!(budget(ThinkingLevel::High), 5_000, "{api}");
        // Room for an answer stays; Google's own servers see to that themselves.
        if !api.starts_with("google") {
            assert_eq!(budget(ThinkingLevel::Low), 64_000 - 1024, "{api}");
        }
    }
}

/// A budget is at least 1024, whatever room is left.
#[test]
fn budgets_of_small_models() {
    for (api, id, thinking) in [
        ("anthropic-messages", "m1", "/thinking/budget_tokens"),
        (
            "bedrock-converse-stream",
            "anthropic.claude-3-7-sonnet-20250219-v1:0",
            "/additionalModelRequestFields/thinking/budget_tokens",
        ),
    ] {
        for (most, wanted) in
            [(500, 1024), (1024, 1024), (1500, 1024), (2047, 1024), (2049, 1025), (4096, 3072)]
        {
            let model = Model { id: id.into(), max_tokens: most, ..model(api, &json!({})) };
            let options = RequestOptions { reasoning: Some(ThinkingLevel::High), ..options() };
            let body = made(&model, &options, &[]);
            assert_eq!(at(&body, thinking), wanted, "{api} with {most}: {body}");
            let limit = if api.starts_with("bedrock") { "/inferenceConfig/maxTokens" } else { "/max_tokens" };
            assert!(at(&body, limit).as_u64() <= Some(most), "{api}: {body}");
        }
    }
}
