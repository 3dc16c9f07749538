//! Environment variables that hold credentials, per provider (spec 40 §1.6).

/// How a provider turns a stored key or the environment into credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A key: the stored one, else the first variable that is not blank.
    Key(&'static [&'static str]),
    /// As [`Method::Key`], but the first variable is sent as a bearer token.
    Anthropic {
        /// Holds a bearer token.
        token: &'static str,
        /// Holds a key.
        key: &'static str,
    },
    /// Every part by itself: stored, else from the variable of that name; all must be there.
    Cloudflare {
        /// A gateway id is one of the parts, and the key goes into the gateway's own header.
        gateway: bool,
    },
    /// A bearer token, a profile, keys, or a role of the machine.
    Aws,
    /// A key, or what Google Cloud gives by a file.
    Vertex,
    /// Only a sign-in, no key.
    SignInOnly,
    /// No credentials at all.
    Free,
}

/// A provider's ways to get credentials.
#[derive(Clone, Copy, Debug)]
pub struct ProviderAuth {
    /// Provider id.
    pub id: &'static str,
    /// Keys and variables.
    pub method: Method,
    /// Whether it has a sign-in that stores `oauth` credentials.
    pub sign_in: bool,
}

const fn key(id: &'static str, variables: &'static [&'static str]) -> ProviderAuth {
    ProviderAuth { id, method: Method::Key(variables), sign_in: false }
}

const fn key_or_sign_in(id: &'static str, variables: &'static [&'static str]) -> ProviderAuth {
    ProviderAuth { id, method: Method::Key(variables), sign_in: true }
}

/// Variables of Cloudflare, in the order they are asked for.
pub(super) const CLOUDFLARE: [&str; 3] =
    ["CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"];

/// Variables of AWS, best first.
pub(super) const AWS: [&str; 7] = [
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
];

/// Variables of Vertex AI, best first.
pub(super) const VERTEX: [&str; 2] = ["GOOGLE_CLOUD_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];

const PROVIDERS: &[ProviderAuth] = &[
    ProviderAuth { id: "amazon-bedrock", method: Method::Aws, sign_in: false },
    key("ant-ling", &["ANT_LING_API_KEY"]),
    ProviderAuth {
        id: "anthropic",
        method: Method::Anthropic { token: "ANTHROPIC_AUTH_TOKEN", key: "ANTHROPIC_API_KEY" },
        sign_in: true,
    },
    key("azure", &["AZURE_OPENAI_API_KEY"]),
    key("baseten", &["BASETEN_API_KEY"]),
    key("cerebras", &["CEREBRAS_API_KEY"]),
    ProviderAuth {
        id: "cloudflare-ai-gateway",
        method: Method::Cloudflare { gateway: true },
        sign_in: false,
    },
    ProviderAuth {
        id: "cloudflare-workers-ai",
        method: Method::Cloudflare { gateway: false },
        sign_in: false,
    },
    key("deepseek", &["DEEPSEEK_API_KEY"]),
    ProviderAuth { id: "demo", method: Method::Free, sign_in: false },
    key("fireworks", &["FIREWORKS_API_KEY"]),
    key_or_sign_in("github-copilot", &["COPILOT_GITHUB_TOKEN"]),
    key("google", &["GEMINI_API_KEY"]),
    ProviderAuth { id: "google-vertex", method: Method::Vertex, sign_in: false },
    key("groq", &["GROQ_API_KEY"]),
    key("huggingface", &["HF_TOKEN"]),
    key_or_sign_in("kimi-coding", &["KIMI_API_KEY"]),
    key_or_sign_in("meta", &["META_API_KEY"]),
    key("minimax", &["MINIMAX_API_KEY"]),
    key("minimax-cn", &["MINIMAX_CN_API_KEY"]),
    key("mistral", &["MISTRAL_API_KEY"]),
    key("moonshotai", &["MOONSHOT_API_KEY"]),
    key("moonshotai-cn", &["MOONSHOT_API_KEY"]),
    key("nvidia", &["NVIDIA_API_KEY"]),
    key_or_sign_in("openai", &["OPENAI_API_KEY"]),
    ProviderAuth { id: "openai-codex", method: Method::SignInOnly, sign_in: true },
    key("opencode", &["OPENCODE_API_KEY"]),
    key("opencode-go", &["OPENCODE_API_KEY"]),
    key_or_sign_in("openrouter", &["OPENROUTER_API_KEY"]),
    key("qwen-token-plan", &["QWEN_TOKEN_PLAN_TEAM_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"]),
    key("qwen-token-plan-cn", &["QWEN_TOKEN_PLAN_TEAM_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"]),
    key("qwen-token-plan-individual", &["QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"]),
    key(
        "qwen-token-plan-individual-cn",
        &["QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"],
    ),
    key_or_sign_in("radius", &["RADIUS_API_KEY"]),
    key("together", &["TOGETHER_API_KEY"]),
    key("typesafe", &["TYPESAFE_API_KEY"]),
    key("vercel-ai-gateway", &["AI_GATEWAY_API_KEY"]),
    key_or_sign_in("xai", &["XAI_API_KEY"]),
    key("xiaomi", &["XIAOMI_API_KEY"]),
    key("xiaomi-token-plan-ams", &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"]),
    key("xiaomi-token-plan-cn", &["XIAOMI_TOKEN_PLAN_CN_API_KEY"]),
    key("xiaomi-token-plan-sgp", &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"]),
    key("zai", &["ZAI_API_KEY"]),
    key("zai-coding-cn", &["ZAI_CODING_CN_API_KEY"]),
];

/// How a built-in provider gets credentials.
#[must_use]
pub fn provider(id: &str) -> Option<&'static ProviderAuth> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}

/// Ids of all of them.
pub fn ids() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.id)
}

impl Method {
    /// Variables to name in a message, best first.
    pub fn variables(self) -> impl Iterator<Item = &'static str> {
        let (list, pair): (&[&str], [Option<&str>; 2]) = match self {
            Self::Key(variables) => (variables, [None, None]),
            Self::Anthropic { token, key } => (&[], [Some(key), Some(token)]),
            Self::Cloudflare { gateway: true } => (&CLOUDFLARE, [None, None]),
            Self::Cloudflare { gateway: false } => (CLOUDFLARE.split_at(2).0, [None, None]),
            Self::Aws => (&AWS, [None, None]),
            Self::Vertex => (&VERTEX, [None, None]),
            Self::SignInOnly | Self::Free => (&[], [None, None]),
        };
        pair.into_iter().flatten().chain(list.iter().copied())
    }
}
