//! Tokens and money of a reply.

/// Tokens of one reply (spec 10 §4.2). `input` excludes cached tokens, `output` includes reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Fresh input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Part of `cache_write` kept for an hour.
    pub cache_write_1h: Option<u64>,
    /// Part of `output` spent on reasoning.
    pub reasoning: Option<u64>,
    /// Total as reported; 0 = not reported.
    pub total_tokens: u64,
    /// Money.
    pub cost: Cost,
}

/// USD per part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
    /// Sum, or what the provider said.
    pub total: f64,
    /// Whether `total` came from the provider.
    pub total_from_provider: Option<bool>,
}

impl Usage {
    /// `U`: the reported total, else the sum of the four parts (spec 10 §7.2).
    #[must_use]
    pub const fn context_tokens(&self) -> u64 {
        if self.total_tokens != 0 {
            return self.total_tokens;
        }
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Field-wise sum; optional counters appear if either side has them.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let either = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        let (a, b) = (&self.cost, &other.cost);
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: either(self.cache_write_1h, other.cache_write_1h),
            reasoning: either(self.reasoning, other.reasoning),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cost: Cost {
                input: a.input + b.input,
                output: a.output + b.output,
                cache_read: a.cache_read + b.cache_read,
                cache_write: a.cache_write + b.cache_write,
                total: a.total + b.total,
                total_from_provider: match (a.total_from_provider, b.total_from_provider) {
                    (None, None) => None,
                    (a, b) => Some(a == Some(true) && b == Some(true)),
                },
            },
        }
    }
}
