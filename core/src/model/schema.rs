//! The shape of `models.json` (spec 40 §3.4) as tables, and a check that names every offending place.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::json::{Map, Value};

/// What a value may be. Unknown properties are allowed everywhere.
enum Shape {
    Any,
    Text,
    /// Text that is not empty.
    Word,
    Flag,
    Number,
    /// A number above 0.
    Positive,
    /// A whole number from 1 to the limit.
    Whole(u64),
    OneOf(&'static [&'static str]),
    Either(&'static [Self]),
    Null,
    List(&'static Self),
    /// Any keys, values of one shape.
    Map(&'static Self),
    /// Known keys; those marked `true` must be there.
    Fields(&'static [(&'static str, bool, &'static Self)]),
}

use Shape::{Any, Either, Fields, Flag, List, Null, Number, OneOf, Positive, Text, Whole, Word};

/// A place and what is wrong there.
pub(super) type Offence = (String, String);

/// Every offence of one provider entry; places begin with `at`.
pub(super) fn check_provider(at: &str, entry: &Value) -> Vec<Offence> {
    let mut offences = Vec::new();
    check(at, entry, &PROVIDER, &mut offences);
    offences
}

fn check(at: &str, value: &Value, shape: &Shape, out: &mut Vec<Offence>) {
    match (shape, value) {
        (List(item), Value::Array(list)) => {
            for (index, value) in list.iter().enumerate() {
                check(&format!("{at}.{index}"), value, item, out);
            }
        }
        (Shape::Map(item), Value::Object(map)) => {
            for (key, value) in map {
                check(&format!("{at}.{key}"), value, item, out);
            }
        }
        (Fields(fields), Value::Object(map)) => check_fields(at, map, fields, out),
        (Either(shapes), value) => {
            if !shapes.iter().any(|shape| fits(value, shape)) {
                out.push((at.to_string(), expectation(shape)));
            }
        }
        (shape, value) => {
            if !fits_scalar(value, shape) {
                out.push((at.to_string(), expectation(shape)));
            }
        }
    }
}

fn check_fields(at: &str, map: &Map<String, Value>, fields: &[(&str, bool, &Shape)], out: &mut Vec<Offence>) {
    let mut missing = None;
    for (key, required, shape) in fields {
        match map.get(*key) {
            Some(value) => check(&format!("{at}.{key}"), value, shape, out),
            // The first one that is missing speaks for all.
            None if *required => missing = missing.or(Some(key)),
            None => {}
        }
    }
    out.extend(missing.map(|key| (format!("{at}.{key}"), "is missing".to_string())));
}

fn fits(value: &Value, shape: &Shape) -> bool {
    let mut offences = Vec::new();
    check("", value, shape, &mut offences);
    offences.is_empty()
}

fn fits_scalar(value: &Value, shape: &Shape) -> bool {
    let number = value.as_f64();
    match shape {
        Any => true,
        Text => value.is_string(),
        Word => value.as_str().is_some_and(|text| !text.is_empty()),
        Flag => value.is_boolean(),
        Number => value.is_number(),
        Positive => number.is_some_and(|number| number > 0.0),
        // A whole number may be written as `5.0`.
        Whole(limit) => number.is_some_and(|n| n >= 1.0 && n <= *limit as f64 && n % 1.0 == 0.0),
        OneOf(names) => value.as_str().is_some_and(|text| names.contains(&text)),
        Null => value.is_null(),
        Either(_) | List(_) | Shape::Map(_) | Fields(_) => false,
    }
}

fn expectation(shape: &Shape) -> String {
    let text = match shape {
        Any => "anything",
        Text => "a string",
        Word => "a string that is not empty",
        Flag => "true or false",
        Number => "a number",
        Positive => "a number above 0",
        Whole(u64::MAX) => "a whole number above 0",
        Whole(limit) => return format!("must be a whole number from 1 to {limit}"),
        OneOf(names) => return format!("must be one of {}", names.join(", ")),
        Either(shapes) => {
            let each: Vec<String> = shapes.iter().map(|s| expectation(s).replace("must be ", "")).collect();
            return format!("must be {}", each.join(" or "));
        }
        Null => "null",
        List(_) => "a list",
        Shape::Map(_) | Fields(_) => "an object",
    };
    format!("must be {text}")
}

const WHOLE: Shape = Whole(u64::MAX);
const OBJECT: Shape = Shape::Map(&Any);
const TEXTS: Shape = List(&Text);
const HEADERS: Shape = Shape::Map(&Text);
const LEVEL_MAP: Shape = Fields(&[
    ("off", false, &LEVEL_VALUE),
    ("minimal", false, &LEVEL_VALUE),
    ("low", false, &LEVEL_VALUE),
    ("medium", false, &LEVEL_VALUE),
    ("high", false, &LEVEL_VALUE),
    ("xhigh", false, &LEVEL_VALUE),
    ("max", false, &LEVEL_VALUE),
]);
const LEVEL_VALUE: Shape = Either(&[Text, Null]);
const LEVEL_PARAMS: Shape = Fields(&[
    ("off", false, &OBJECT),
    ("minimal", false, &OBJECT),
    ("low", false, &OBJECT),
    ("medium", false, &OBJECT),
    ("high", false, &OBJECT),
    ("xhigh", false, &OBJECT),
    ("max", false, &OBJECT),
]);
const INPUT: Shape = List(&OneOf(&["text", "image"]));
const RESIZE: Shape = Fields(&[
    ("maxWidth", false, &WHOLE),
    ("maxHeight", false, &WHOLE),
    ("maxBytes", false, &WHOLE),
    ("jpegQuality", false, &Whole(100)),
]);
const INPUT_LIMITS: Shape = Fields(&[
    ("maxRequestBytes", false, &WHOLE),
    (
        "images",
        false,
        &Fields(&[
            ("resize", false, &RESIZE),
            ("maxPerMessage", false, &WHOLE),
            ("maxPerRequest", false, &WHOLE),
        ]),
    ),
]);
const TIERS: Shape = List(&Fields(&[
    ("inputTokensAbove", true, &Number),
    ("input", true, &Number),
    ("output", true, &Number),
    ("cacheRead", true, &Number),
    ("cacheWrite", true, &Number),
]));
const COST: Shape = Fields(&[
    ("input", true, &Number),
    ("output", true, &Number),
    ("cacheRead", true, &Number),
    ("cacheWrite", true, &Number),
    ("tiers", false, &TIERS),
]);
const COST_OVERRIDE: Shape = Fields(&[
    ("input", false, &Number),
    ("output", false, &Number),
    ("cacheRead", false, &Number),
    ("cacheWrite", false, &Number),
    ("tiers", false, &TIERS),
]);
const PROMPT_CACHE: Shape = Fields(&[("short", false, &Positive), ("long", false, &Positive)]);
const TEMPLATE_VALUE: Shape = Either(&[
    Text,
    Number,
    Flag,
    Null,
    Fields(&[
        ("$var", true, &OneOf(&["thinking.enabled", "thinking.effort", "thinking.budget"])),
        ("omitWhenOff", false, &Flag),
    ]),
]);
const TEMPLATE: Shape = Shape::Map(&TEMPLATE_VALUE);
const PERCENTILES: Shape = Either(&[
    Number,
    Fields(&[
        ("p50", false, &Number),
        ("p75", false, &Number),
        ("p90", false, &Number),
        ("p99", false, &Number),
    ]),
]);
const PRICE: Shape = Either(&[Number, Text]);
const OPEN_ROUTER: Shape = Fields(&[
    ("allow_fallbacks", false, &Flag),
    ("require_parameters", false, &Flag),
    ("data_collection", false, &OneOf(&["deny", "allow"])),
    ("zdr", false, &Flag),
    ("enforce_distillable_text", false, &Flag),
    ("order", false, &TEXTS),
    ("only", false, &TEXTS),
    ("ignore", false, &TEXTS),
    ("quantizations", false, &TEXTS),
    (
        "sort",
        false,
        &Either(&[Text, Fields(&[("by", false, &Text), ("partition", false, &Either(&[Text, Null]))])]),
    ),
    (
        "max_price",
        false,
        &Fields(&[
            ("prompt", false, &PRICE),
            ("completion", false, &PRICE),
            ("image", false, &PRICE),
            ("audio", false, &PRICE),
            ("request", false, &PRICE),
        ]),
    ),
    ("preferred_min_throughput", false, &PERCENTILES),
    ("preferred_max_latency", false, &PERCENTILES),
]);
const VERCEL: Shape = Fields(&[("only", false, &TEXTS), ("order", false, &TEXTS)]);
const THINKING_FORMAT: Shape = OneOf(&[
    "openai",
    "openrouter",
    "deepseek",
    "together",
    "baseten",
    "zai",
    "qwen",
    "chat-template",
    "qwen-chat-template",
    "string-thinking",
    "ant-ling",
]);
const FALLBACKS: Shape =
    List(&Fields(&[("provider", true, &Word), ("model", true, &Word), ("cost", true, &COST)]));
const COMPAT: Shape = Fields(&[
    ("supportsStore", false, &Flag),
    ("supportsDeveloperRole", false, &Flag),
    ("supportsReasoningEffort", false, &Flag),
    ("supportsUsageInStreaming", false, &Flag),
    ("supportsFinishReason", false, &Flag),
    ("maxTokensField", false, &OneOf(&["max_completion_tokens", "max_tokens"])),
    ("requiresToolResultName", false, &Flag),
    ("requiresAssistantAfterToolResult", false, &Flag),
    ("requiresNonNullAssistantContent", false, &Flag),
    ("requiresToolsWithToolHistory", false, &Flag),
    ("requiresThinkingAsText", false, &Flag),
    ("requiresReasoningContentOnAssistantMessages", false, &Flag),
    ("thinkingFormat", false, &THINKING_FORMAT),
    ("chatTemplateKwargs", false, &TEMPLATE),
    ("chatTemplateArgs", false, &TEMPLATE),
    ("openRouterRouting", false, &OPEN_ROUTER),
    ("vercelGatewayRouting", false, &VERCEL),
    ("zaiToolStream", false, &Flag),
    (
        "thinkingTokenBudgetField",
        false,
        &OneOf(&["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"]),
    ),
    ("supportsThinkingTokenBudget", false, &Flag),
    ("supportsOpenAIGrammarTools", false, &Flag),
    ("supportsMidConvoSystemMessages", false, &Flag),
    ("supportsMidConvoToolAdditions", false, &Flag),
    ("supportsStrictMode", false, &Flag),
    ("cacheControlFormat", false, &OneOf(&["anthropic"])),
    ("sendSessionAffinityHeaders", false, &Flag),
    ("sessionAffinityFormat", false, &OneOf(&["openai", "openai-nosession", "openrouter"])),
    ("promptCacheKeyMode", false, &OneOf(&["auto", "enabled", "disabled"])),
    ("supportsLongCacheRetention", false, &Flag),
    ("vllmPriority", false, &Number),
    ("supportsAdditionalTools", false, &Flag),
    ("supportsToolSearch", false, &Flag),
    ("supportsExplicitPromptCacheMode", false, &Flag),
    ("supportsMidConvoEffort", false, &Flag),
    ("supportsMaxOutputTokens", false, &Flag),
    ("supportsEagerToolInputStreaming", false, &Flag),
    ("supportsCacheControlOnTools", false, &Flag),
    ("supportsTemperature", false, &Flag),
    ("forceAdaptiveThinking", false, &Flag),
    ("allowEmptySignature", false, &Flag),
    ("supportsStrictTools", false, &Flag),
    ("supportsMidConvoToolChanges", false, &Flag),
    ("supportsMessageThreads", false, &Flag),
    ("allowedFallbackModels", false, &FALLBACKS),
    ("imageInput", false, &OneOf(&["assets", "images", "state-image-urls"])),
    ("sendImageOptInHeader", false, &Flag),
]);
const MODEL: Shape = Fields(&[
    ("id", true, &Word),
    ("name", false, &Word),
    ("api", false, &Word),
    ("baseUrl", false, &Word),
    ("reasoning", false, &Flag),
    ("thinkingLevelMap", false, &LEVEL_MAP),
    ("input", false, &INPUT),
    ("inputLimits", false, &INPUT_LIMITS),
    ("cost", false, &COST),
    ("promptCache", false, &PROMPT_CACHE),
    ("contextWindow", false, &Positive),
    ("maxTokens", false, &Positive),
    ("samplingParams", false, &OBJECT),
    ("samplingParamsByThinkingLevel", false, &LEVEL_PARAMS),
    ("headers", false, &HEADERS),
    ("compat", false, &COMPAT),
]);
const OVERRIDE: Shape = Fields(&[
    ("name", false, &Word),
    ("reasoning", false, &Flag),
    ("thinkingLevelMap", false, &LEVEL_MAP),
    ("input", false, &INPUT),
    ("inputLimits", false, &INPUT_LIMITS),
    ("cost", false, &COST_OVERRIDE),
    ("promptCache", false, &PROMPT_CACHE),
    ("contextWindow", false, &Positive),
    ("maxTokens", false, &Positive),
    ("samplingParams", false, &OBJECT),
    ("samplingParamsByThinkingLevel", false, &LEVEL_PARAMS),
    ("headers", false, &HEADERS),
    ("compat", false, &COMPAT),
]);
const PROVIDER: Shape = Fields(&[
    ("name", false, &Word),
    ("baseUrl", false, &Word),
    ("apiKey", false, &Word),
    ("api", false, &Word),
    ("oauth", false, &OneOf(&["radius"])),
    ("headers", false, &HEADERS),
    ("compat", false, &COMPAT),
    ("authHeader", false, &Flag),
    ("models", false, &List(&MODEL)),
    ("modelOverrides", false, &Shape::Map(&OVERRIDE)),
]);
