//! What a world is made of: model, settings, tools, and how much goes wrong in it.

use std::sync::Arc;

use serde_json::json;
use tau_core::agent::{AgentConfig, HookSet};
use tau_core::harness::DeskBoot;
use tau_core::hub::Boot;
use tau_core::input::QueueMode;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::provider::RequestOptions;
use tau_core::session::Session;
use tau_core::settings::{self, Scope, Settings, Source};
use tau_core::tools::{BuiltinOptions, ExecutionMode, Runner, Tool, ToolEnv, builtins};

use super::dice::Dice;

/// The choices that hold for the whole life of a world.
pub(crate) struct Setup {
    seed: [u8; 32],
    /// Prompts and other things that a person does while nothing goes on.
    pub(crate) turns: u64,
    /// One in so many writes is the last thing that the program does; 0 = none.
    pub(crate) crashes: u64,
    /// Windows of the two models, tokens.
    pub(crate) windows: [u64; 2],
    /// Characters of a long text.
    pub(crate) talk: u64,
    /// Retries that the settings allow.
    pub(crate) max_retries: u64,
    settings: Arc<Settings>,
    modes: [QueueMode; 2],
    tool_execution: ExecutionMode,
    request_retries: u64,
    hooks: HookSet,
}

impl Setup {
    pub(crate) fn new(seed: [u8; 32], turns: Option<u64>, rng: &mut Dice) -> Self {
        let mode = |rng: &mut Dice| if rng.below(2) == 0 { QueueMode::OneAtATime } else { QueueMode::All };
        let modes = [mode(rng), mode(rng)];
        let is_sequential = rng.below(4) == 0;
        // The smaller ones hardly hold the declarations of the tools.
        let window = |rng: &mut Dice| [100_000, 100_000, 2_500, 4_000, 8_000, 20_000][rng.below(6) as usize];
        let windows = [window(rng), window(rng)];
        let max_retries = rng.below(5);
        let settings = settings(windows[0], max_retries, rng);
        Self {
            seed,
            turns: turns.unwrap_or_else(|| 1 + rng.below(4)),
            crashes: if turns.is_some() { 80 } else { [0, 0, 20][rng.below(3) as usize] },
            talk: [12, 400, 2_000][rng.below(3) as usize],
            windows,
            max_retries,
            settings,
            modes,
            tool_execution: if is_sequential { ExecutionMode::Sequential } else { ExecutionMode::Parallel },
            request_retries: rng.below(3),
            hooks: hooks(seed[0]),
        }
    }

    /// `m1` or `m2`.
    pub(crate) fn model(&self, which: usize) -> Model {
        Model {
            id: ["m1", "m2"][which].into(),
            api: "openai-completions".into(),
            provider: "mock".into(),
            base_url: "http://mock.invalid/v1".into(),
            text_input: true,
            reasoning: which == 1,
            context_window: self.windows[which],
            max_tokens: 4_000,
            ..Model::default()
        }
    }

    /// What the hub starts with; `life` counts the starts.
    pub(crate) fn boot(&self, session: Session, life: u64) -> Boot {
        let mut seed = self.seed;
        seed[8..16].copy_from_slice(&life.to_le_bytes());
        Boot {
            seed,
            desk: DeskBoot {
                session,
                model: Arc::new(self.model(0)),
                thinking: ThinkingLevel::Off,
                tools: tools(),
                prompt: vec![("base".into(), "You are a test.".into())],
                config: AgentConfig { tool_execution: self.tool_execution, hooks: self.hooks },
                settings: Arc::clone(&self.settings),
                steering_mode: self.modes[0],
                follow_up_mode: self.modes[1],
            },
            env: Arc::new(ToolEnv {
                cwd: "/w".into(),
                shell: vec!["/bin/sh".into(), "-c".into()],
                output_dir: "/tmp/out".into(),
                ..ToolEnv::default()
            }),
            options: RequestOptions { max_retries: self.request_retries, ..RequestOptions::default() },
            block_images: false,
        }
    }
}

/// In one of four worlds the program around the machine wants to be asked.
fn hooks(seed: u8) -> HookSet {
    let on = |bit: u8| seed % 4 == 3 && seed >> bit & 1 == 1;
    HookSet {
        before_tool_call: on(2),
        after_tool_call: on(3),
        finish_turn: on(4),
        prepare_request: on(5),
        transform_context: on(6),
        prepare_next_turn: false,
    }
}

fn settings(window: u64, max_retries: u64, rng: &mut Dice) -> Arc<Settings> {
    let reserve = [100, window / 4, window / 2, window + 1, 16_384][rng.below(5) as usize];
    let keep = [0, 100, window / 4, window + 1, 20_000][rng.below(5) as usize];
    let text = json!({
        "compaction": {"enabled": rng.below(8) > 0, "reserveTokens": reserve, "keepRecentTokens": keep},
        "retry": {"enabled": rng.below(8) > 0, "maxRetries": max_retries, "baseDelayMs": 1 + rng.below(2_000)},
        "branchSummary": {"reserveTokens": reserve},
    })
    .to_string();
    let source = Source { scope: Scope::Global, path: "/agent/settings.json", text: Ok(Some(&text)) };
    let (settings, faults) = settings::load(&[source]);
    assert!(faults.is_empty(), "{faults:?}");
    Arc::new(settings)
}

fn tools() -> Vec<Arc<Tool>> {
    let host = |name: &str, mode| {
        Arc::new(Tool {
            name: name.into(),
            label: name.into(),
            description: "A tool of the host".into(),
            prompt_snippet: None,
            prompt_rules: Vec::new(),
            parameters: Arc::new(json!({"type": "object", "properties": {"n": {"type": "number"}}})),
            mode,
            prepare: None,
            run: Runner::Host,
        })
    };
    let names = ["read", "write", "edit", "bash", "grep", "find", "ls"];
    let mut tools: Vec<Arc<Tool>> =
        builtins(names, BuiltinOptions::default()).into_iter().map(Arc::new).collect();
    tools.push(host("alpha", ExecutionMode::Parallel));
    tools.push(host("beta", ExecutionMode::Sequential));
    tools
}
