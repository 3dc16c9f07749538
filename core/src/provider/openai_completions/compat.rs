//! What servers of this protocol can and cannot do: found by provider id or address, overruled by `model.compat`
//! (spec 30 §3.2).

use alloc::borrow::ToOwned;
use alloc::string::String;

use crate::json::{Map, Value};
use crate::model::Model;
use crate::provider::flags::{Affinity, Flags};

/// How a server is told to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ThinkingFormat {
    #[default]
    OpenAi,
    OpenRouter,
    DeepSeek,
    Zai,
    Together,
    Qwen,
    QwenChatTemplate,
    ChatTemplate,
    Baseten,
    StringThinking,
    AntLing,
}

const FORMATS: &[(&str, ThinkingFormat)] = &[
    ("openai", ThinkingFormat::OpenAi),
    ("openrouter", ThinkingFormat::OpenRouter),
    ("deepseek", ThinkingFormat::DeepSeek),
    ("zai", ThinkingFormat::Zai),
    ("together", ThinkingFormat::Together),
    ("qwen", ThinkingFormat::Qwen),
    ("qwen-chat-template", ThinkingFormat::QwenChatTemplate),
    ("chat-template", ThinkingFormat::ChatTemplate),
    ("baseten", ThinkingFormat::Baseten),
    ("string-thinking", ThinkingFormat::StringThinking),
    ("ant-ling", ThinkingFormat::AntLing),
];

/// When `prompt_cache_key` is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CacheKey {
    #[default]
    Auto,
    Enabled,
    Disabled,
}

const CACHE_KEYS: &[(&str, CacheKey)] =
    &[("auto", CacheKey::Auto), ("enabled", CacheKey::Enabled), ("disabled", CacheKey::Disabled)];

/// All flags of one model.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Compat {
    pub(super) store: bool,
    pub(super) developer_role: bool,
    pub(super) reasoning_effort: bool,
    pub(super) usage_in_streaming: bool,
    pub(super) finish_reason: bool,
    pub(super) max_tokens_field: String,
    pub(super) tool_result_name: bool,
    pub(super) assistant_after_tool_result: bool,
    pub(super) non_null_content: bool,
    pub(super) tools_with_history: bool,
    pub(super) thinking_as_text: bool,
    pub(super) reasoning_content: bool,
    pub(super) thinking_format: ThinkingFormat,
    pub(super) thinking_budget_field: Option<String>,
    pub(super) chat_template: Option<Map<String, Value>>,
    pub(super) zai_tool_stream: bool,
    pub(super) strict: bool,
    pub(super) grammar: bool,
    pub(super) anthropic_cache: bool,
    pub(super) session_affinity: bool,
    pub(super) affinity_format: Affinity,
    pub(super) long_cache: bool,
    pub(super) cache_key: CacheKey,
    pub(super) vllm_priority: Option<Value>,
    pub(super) openrouter_routing: Option<Value>,
    pub(super) vercel_routing: Option<Value>,
}

/// Restrictions of a family of services.
struct Family {
    providers: &'static [&'static str],
    hosts: &'static [&'static str],
    limits: &'static [Limit],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Developer,
    NoStore,
    MaxTokens,
    NoEffort,
    NoLongCache,
    ReasoningContent,
    RouterAffinity,
    Format(ThinkingFormat),
}

use Limit::{Developer, Format, MaxTokens, NoEffort, NoLongCache, NoStore, ReasoningContent, RouterAffinity};

const FAMILIES: &[Family] = &[
    Family { providers: &["openai"], hosts: &["api.openai.com"], limits: &[Developer] },
    Family {
        providers: &["deepseek"],
        hosts: &["deepseek.com"],
        limits: &[NoStore, MaxTokens, Format(ThinkingFormat::DeepSeek), ReasoningContent],
    },
    Family {
        providers: &["zai", "zai-coding-cn"],
        hosts: &["api.z.ai", "open.bigmodel.cn"],
        limits: &[NoStore, MaxTokens, NoEffort, Format(ThinkingFormat::Zai)],
    },
    Family {
        providers: &["together"],
        hosts: &["api.together.ai", "api.together.xyz"],
        limits: &[NoStore, MaxTokens, NoEffort, NoLongCache, Format(ThinkingFormat::Together)],
    },
    Family {
        providers: &["moonshotai", "moonshotai-cn"],
        hosts: &["api.moonshot."],
        limits: &[NoStore, MaxTokens, NoEffort],
    },
    Family {
        providers: &["openrouter"],
        hosts: &["openrouter.ai"],
        limits: &[RouterAffinity, Format(ThinkingFormat::OpenRouter)],
    },
    Family {
        providers: &["cloudflare-workers-ai"],
        hosts: &["api.cloudflare.com"],
        limits: &[NoStore, NoLongCache],
    },
    Family {
        providers: &["cloudflare-ai-gateway"],
        hosts: &["gateway.ai.cloudflare.com"],
        limits: &[NoStore, MaxTokens, NoEffort, NoLongCache],
    },
    Family {
        providers: &["nvidia"],
        hosts: &["integrate.api.nvidia.com"],
        limits: &[NoStore, MaxTokens, NoEffort, NoLongCache],
    },
    Family {
        providers: &["ant-ling"],
        hosts: &["api.ant-ling.com"],
        limits: &[NoStore, MaxTokens, NoEffort, NoLongCache, Format(ThinkingFormat::AntLing)],
    },
    Family {
        providers: &["cerebras", "opencode"],
        hosts: &["cerebras.ai", "opencode.ai"],
        limits: &[NoStore],
    },
    Family { providers: &["xai"], hosts: &["api.x.ai"], limits: &[NoStore, NoEffort] },
    Family { providers: &[], hosts: &["chutes.ai"], limits: &[NoStore, MaxTokens] },
];

impl Compat {
    /// The flags of a model.
    pub(super) fn of(model: &Model) -> Self {
        let matches = |family: &&Family| {
            family.providers.contains(&model.provider.as_str())
                || family.hosts.iter().any(|host| model.base_url.contains(host))
        };
        let mut limits = FAMILIES.iter().filter(matches).flat_map(|family| family.limits).copied();
        let limits: alloc::vec::Vec<Limit> = limits.by_ref().collect();
        let has = |limit: Limit| limits.contains(&limit);
        let format = limits.iter().find_map(|limit| match limit {
            Format(format) => Some(*format),
            _ => None,
        });
        let set = Flags(model.compat.as_ref());
        let thinking_format = set.one_of("thinkingFormat", FORMATS).or(format).unwrap_or_default();
        let router_affinity = has(RouterAffinity);
        let max_tokens = if has(MaxTokens) { "max_tokens" } else { "max_completion_tokens" };
        let budget_alias =
            set.flag("supportsThinkingTokenBudget", false).then(|| "thinking_token_budget".to_owned());
        let template = if thinking_format == ThinkingFormat::Baseten {
            "chatTemplateArgs"
        } else {
            "chatTemplateKwargs"
        };
        let claude_on_router = model.provider == "openrouter" && model.id.starts_with("anthropic/");
        Self {
            store: set.flag("supportsStore", !has(NoStore)),
            developer_role: set.flag("supportsDeveloperRole", has(Developer)),
            reasoning_effort: set.flag("supportsReasoningEffort", !has(NoEffort)),
            usage_in_streaming: set.flag("supportsUsageInStreaming", true),
            finish_reason: set.flag("supportsFinishReason", true),
            max_tokens_field: set.text("maxTokensField").unwrap_or(max_tokens).to_owned(),
            tool_result_name: set.flag("requiresToolResultName", false),
            assistant_after_tool_result: set.flag("requiresAssistantAfterToolResult", false),
            non_null_content: set.flag("requiresNonNullAssistantContent", false),
            tools_with_history: set.flag("requiresToolsWithToolHistory", false),
            thinking_as_text: set.flag("requiresThinkingAsText", false),
            reasoning_content: set.flag("requiresReasoningContentOnAssistantMessages", has(ReasoningContent)),
            thinking_format,
            thinking_budget_field: set
                .text("thinkingTokenBudgetField")
                .map(ToOwned::to_owned)
                .or(budget_alias),
            chat_template: set.get(template).and_then(Value::as_object).cloned(),
            zai_tool_stream: set.flag("zaiToolStream", false),
            strict: set.flag("supportsStrictMode", false),
            grammar: set.flag("supportsOpenAIGrammarTools", false),
            anthropic_cache: set
                .text("cacheControlFormat")
                .map_or(claude_on_router, |format| format == "anthropic"),
            session_affinity: set.flag("sendSessionAffinityHeaders", router_affinity),
            affinity_format: Affinity::of(model),
            long_cache: set.flag("supportsLongCacheRetention", !has(NoLongCache)),
            cache_key: set.one_of("promptCacheKeyMode", CACHE_KEYS).unwrap_or_default(),
            vllm_priority: set.get("vllmPriority").filter(|value| value.is_number()).cloned(),
            openrouter_routing: set.get("openRouterRouting").filter(|value| value.is_object()).cloned(),
            vercel_routing: set.get("vercelGatewayRouting").filter(|value| value.is_object()).cloned(),
        }
    }
}
