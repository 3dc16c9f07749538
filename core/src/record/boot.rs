//! What a machine was made of, as a record: session, model, tools, prompt, settings, surroundings, options.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::command::{level, model};
use super::value::{
    count, flag, full_pairs, pairs, read_bytes, text, texts, write_bytes, write_pairs, write_texts,
};
use crate::agent::{AgentConfig, HookSet};
use crate::harness::DeskBoot;
use crate::hub::Boot;
use crate::input::QueueMode;
use crate::json::{Value, Writer};
use crate::model::ThinkingLevel;
use crate::op::ImageLimits;
use crate::provider::headers::{Attribution, Identity};
use crate::provider::{CacheRetention, RequestOptions, ThinkingBudgets};
use crate::session::entry::EntryLine;
use crate::session::{Header, Session, Want, open};
use crate::settings::{self, Scope, Settings, Source};
use crate::tools::{BUILTIN_NAMES, BuiltinOptions, ExecutionMode, Runner, Tool, ToolEnv, builtin};

/// Where the lines of a session are.
#[derive(Clone, Copy, Debug)]
pub enum SessionSource<'a> {
    /// In its file, whose bytes are these.
    File(&'a [u8]),
    /// Nowhere yet: it writes them itself.
    Memory,
}

/// Writes the fields of a boot record.
pub fn write_boot(boot: &Boot, source: SessionSource<'_>, w: &mut Writer) {
    let desk = &boot.desk;
    w.begin_object();
    w.field_str("seed", &crate::text::base64::encode(&boot.seed));
    w.key("session");
    write_session(&desk.session, source, w);
    w.key("model");
    desk.model.write(w);
    w.field_str("level", desk.thinking.name());
    w.key("tools");
    w.begin_array();
    desk.tools.iter().for_each(|tool| write_tool(tool, w));
    w.end_array();
    write_pairs("prompt", desk.prompt.iter().map(|(name, text)| (&**name, Some(text.as_str()))), w);
    w.field_bool("sequential", desk.config.tool_execution == ExecutionMode::Sequential);
    write_texts("hooks", hooks(desk.config.hooks).filter_map(|(name, on)| on.then_some(name)), w);
    w.key("settings");
    write_settings(&desk.settings, w);
    w.field_str("steering", desk.steering_mode.name());
    w.field_str("follow_up", desk.follow_up_mode.name());
    w.key("env");
    write_env(&boot.env, w);
    w.key("options");
    write_options(&boot.options, w);
    w.field_bool("block_images", boot.block_images);
    w.end_object();
}

/// Reads them.
///
/// # Errors
/// What is missing or wrong.
pub fn read_boot(record: &Value) -> Result<Boot, String> {
    let need = |key: &str| format!("the record of the beginning lacks \"{key}\", or it is wrong");
    let part = |key: &str| record.get(key).ok_or_else(|| need(key));
    let seed = text(record, "seed").and_then(|seed| crate::text::base64::decode(&seed));
    let seed = seed.and_then(|seed| <[u8; 32]>::try_from(seed).ok()).ok_or_else(|| need("seed"))?;
    let mode =
        |key: &str| text(record, key).and_then(|name| QueueMode::parse(&name)).ok_or_else(|| need(key));
    let tools = part("tools")?.as_array().ok_or_else(|| need("tools"))?;
    let tools: Option<Vec<Arc<Tool>>> = tools.iter().map(|tool| read_tool(tool).map(Arc::new)).collect();
    let prompt = full_pairs(record, "prompt").into_iter().map(|(name, text)| (name, text.into())).collect();
    let desk = DeskBoot {
        session: read_session(part("session")?)?,
        model: Arc::new(model(record).ok_or_else(|| need("model"))?),
        thinking: level(record).ok_or_else(|| need("level"))?,
        tools: tools.ok_or_else(|| need("tools"))?,
        prompt,
        config: AgentConfig {
            tool_execution: if flag(record, "sequential") {
                ExecutionMode::Sequential
            } else {
                ExecutionMode::Parallel
            },
            hooks: read_hooks(&texts(record, "hooks")),
        },
        settings: Arc::new(read_settings(part("settings")?)?),
        steering_mode: mode("steering")?,
        follow_up_mode: mode("follow_up")?,
    };
    let env = read_env(part("env")?).ok_or_else(|| need("env"))?;
    let options = read_options(part("options")?);
    Ok(Boot { seed, desk, env: Arc::new(env), options, block_images: flag(record, "block_images") })
}

fn hooks(set: HookSet) -> impl Iterator<Item = (&'static str, bool)> {
    [
        ("before_tool_call", set.before_tool_call),
        ("after_tool_call", set.after_tool_call),
        ("finish_turn", set.finish_turn),
        ("prepare_request", set.prepare_request),
        ("transform_context", set.transform_context),
    ]
    .into_iter()
}

fn read_hooks(names: &[String]) -> HookSet {
    let on = |name: &str| names.iter().any(|own| own == name);
    HookSet {
        before_tool_call: on("before_tool_call"),
        after_tool_call: on("after_tool_call"),
        finish_turn: on("finish_turn"),
        prepare_request: on("prepare_request"),
        transform_context: on("transform_context"),
        prepare_next_turn: false,
    }
}

fn write_session(session: &Session, source: SessionSource<'_>, w: &mut Writer) {
    w.begin_object();
    w.field_opt_str("path", session.path());
    w.field_str("cwd", session.cwd());
    w.field_bool("stored", session.is_stored());
    w.field_bool("due", session.is_due());
    w.field_bool("frugal", session.is_frugal());
    let tree = session.tree();
    w.field_bool("whole", tree.nodes().iter().all(|node| node.body().is_some()));
    match source {
        SessionSource::File(bytes) => write_bytes(bytes, w),
        SessionSource::Memory => {
            let mut lines = Writer::new();
            session.header().write(&mut lines);
            let mut text = lines.into_string() + "\n";
            for slot in tree.slots() {
                let entry = tree.node(slot).and_then(|node| Some((node.body()?, node.time()?)));
                let Some((body, time)) = entry else { continue };
                let mut w = Writer::append_to(text);
                EntryLine { id: tree.id(slot), parent: tree.parent_id(slot), time, body }.write(&mut w);
                text = w.into_string() + "\n";
            }
            w.field_str("s", &text);
        }
    }
    w.key("header");
    session.header().write(w);
    w.end_object();
}

fn read_session(record: &Value) -> Result<Session, String> {
    let wrong = |why: &str| format!("the session of the record cannot be opened: {why}");
    let bytes = read_bytes(record).ok_or_else(|| wrong("its lines are missing"))?;
    let path = text(record, "path");
    let stored = flag(record, "stored");
    let frugal = |session: Session| if flag(record, "frugal") { session.frugal() } else { session };
    if stored && bytes.is_empty() {
        let header = record.get("header").cloned().and_then(Header::from_value);
        let header = header.ok_or_else(|| wrong("its header is missing"))?;
        return Ok(frugal(Session::in_empty_file(header, path.unwrap_or_default())));
    }
    let want = if flag(record, "whole") { Want::Everything } else { Want::Context };
    let cwd = text(record, "cwd").unwrap_or_default();
    let (session, _) =
        open(&bytes, path.clone().unwrap_or_default(), &cwd, want).map_err(|why| wrong(&why.to_string()))?;
    let session = if stored { session } else { session.unstored(path, bytes, flag(record, "due")) };
    Ok(frugal(session))
}

fn write_tool(tool: &Tool, w: &mut Writer) {
    w.begin_object();
    w.field_str("name", &tool.name);
    if let Runner::Host = tool.run {
        w.field_bool("host", true);
        w.field_str("label", &tool.label);
        w.field_str("description", &tool.description);
        w.field_opt_str("snippet", tool.prompt_snippet.as_deref());
        write_texts("rules", tool.prompt_rules.iter().map(String::as_str), w);
        w.field_value("parameters", &tool.parameters);
        w.field_bool("sequential", tool.mode == ExecutionMode::Sequential);
    }
    w.end_object();
}

fn read_tool(record: &Value) -> Option<Tool> {
    let name = text(record, "name")?;
    if !flag(record, "host") {
        return BUILTIN_NAMES.contains(&&*name).then(|| builtin(&name, BuiltinOptions::default()))?;
    }
    Some(Tool {
        name,
        label: text(record, "label")?,
        description: text(record, "description")?,
        prompt_snippet: text(record, "snippet"),
        prompt_rules: texts(record, "rules"),
        parameters: Arc::new(record.get("parameters")?.clone()),
        mode: if flag(record, "sequential") { ExecutionMode::Sequential } else { ExecutionMode::Parallel },
        prepare: None,
        run: Runner::Host,
    })
}

fn write_settings(settings: &Settings, w: &mut Writer) {
    w.begin_object();
    for (key, scope) in [("global", Scope::Global), ("project", Scope::Project)] {
        w.key(key);
        w.map(settings.of(scope));
    }
    w.end_object();
}

fn read_settings(record: &Value) -> Result<Settings, String> {
    let file = |key: &str| record.get(key).map(ToString::to_string);
    let (global, project) = (file("global"), file("project"));
    let source = |scope, path, text: &'_ Option<String>| (scope, path, text.clone());
    let files = [source(Scope::Global, "global", &global), source(Scope::Project, "project", &project)];
    let sources: Vec<Source<'_>> = files
        .iter()
        .map(|(scope, path, text)| Source { scope: *scope, path, text: Ok(text.as_deref()) })
        .collect();
    let (settings, faults) = settings::load(&sources);
    match faults.first() {
        Some(fault) => Err(format!("the settings of the record: {fault}")),
        None => Ok(settings),
    }
}

/// Writes the surroundings of tools. Values of variables may be secret; nothing depends on them.
pub(super) fn write_env(env: &ToolEnv, w: &mut Writer) {
    w.begin_object();
    w.field_str("cwd", &env.cwd);
    w.field_opt_str("home", env.home.as_deref());
    write_texts("shell", env.shell.iter().map(String::as_str), w);
    w.field_opt_str("shell_error", env.shell_error.as_deref());
    w.field_opt_str("prefix", env.command_prefix.as_deref());
    let starred = |(name, value): &'_ (String, Option<String>)| (name.clone(), value.is_some());
    let variables: Vec<(String, bool)> = env.command_env.iter().map(starred).collect();
    write_pairs("variables", variables.iter().map(|(name, set)| (&**name, set.then_some("***"))), w);
    w.field_str("outputs", &env.output_dir);
    let ImageLimits { resize, max_width, max_height, max_bytes, jpeg_quality } = env.images;
    w.field_bool("resize", resize);
    w.key("images");
    w.begin_array();
    [u64::from(max_width), u64::from(max_height), max_bytes, u64::from(jpeg_quality)]
        .into_iter()
        .for_each(|number| w.u64(number));
    w.end_array();
    w.field_opt_str("blind", env.blind_model.as_deref());
    w.end_object();
}

pub(super) fn read_env(record: &Value) -> Option<ToolEnv> {
    let image = |at: usize| record.get("images")?.get(at)?.as_u64();
    Some(ToolEnv {
        cwd: text(record, "cwd")?,
        home: text(record, "home"),
        shell: texts(record, "shell"),
        shell_error: text(record, "shell_error"),
        command_prefix: text(record, "prefix"),
        command_env: pairs(record, "variables"),
        output_dir: text(record, "outputs")?,
        images: ImageLimits {
            resize: flag(record, "resize"),
            max_width: u32::try_from(image(0)?).ok()?,
            max_height: u32::try_from(image(1)?).ok()?,
            max_bytes: image(2)?,
            jpeg_quality: u8::try_from(image(3)?).ok()?,
        },
        blind_model: text(record, "blind"),
    })
}

fn write_options(options: &RequestOptions, w: &mut Writer) {
    w.begin_object();
    w.field_opt_str("reasoning", options.reasoning.map(ThinkingLevel::name));
    w.field_bool("omit_thinking", options.omit_thinking);
    let ThinkingBudgets { minimal, low, medium, high } = options.budgets;
    let mut number = |key: &'static str, value: Option<u64>| {
        if let Some(value) = value {
            w.field_u64(key, value);
        }
    };
    for (key, value) in [("minimal", minimal), ("low", low), ("medium", medium), ("high", high)] {
        number(key, value);
    }
    number("max_tokens", options.max_tokens);
    number("head_timeout", options.head_timeout_ms);
    number("idle_timeout", options.idle_timeout_ms);
    number("total_timeout", options.total_timeout_ms);
    number("max_retries", Some(options.max_retries));
    number("max_retry_delay", Some(options.max_retry_delay_ms));
    if let Some(temperature) = options.temperature {
        w.field_f64("temperature", temperature);
    }
    for (key, map) in [("sampling", &options.sampling_params), ("metadata", &options.metadata)] {
        if let Some(map) = map {
            w.key(key);
            w.map(map);
        }
    }
    w.field_str(
        "cache",
        match options.cache {
            CacheRetention::None => "none",
            CacheRetention::Short => "short",
            CacheRetention::Long => "long",
        },
    );
    w.field_opt_str("session_id", options.session_id.as_deref());
    if let Some(choice) = &options.tool_choice {
        w.field_value("tool_choice", choice);
    }
    let stars = options.headers.iter().map(|(name, value)| (&**name, value.as_ref().map(|_| "***")));
    write_pairs("headers", stars, w);
    if let Some(identity) = &options.identity {
        w.key("identity");
        w.begin_object();
        w.field_opt_str("user_agent", identity.user_agent.as_deref());
        if let Some(attribution) = &identity.attribution {
            w.field_str("name", &attribution.name);
            w.field_str("url", &attribution.url);
            write_texts("categories", attribution.categories.iter().map(String::as_str), w);
        }
        w.end_object();
    }
    w.field_opt_str("proxy", options.proxy.as_ref().map(|_| "***"));
    w.end_object();
}

fn read_options(record: &Value) -> RequestOptions {
    let number = |key: &str| count(record, key);
    let map = |key: &str| record.get(key).and_then(Value::as_object).cloned();
    let identity = record.get("identity").map(|identity| {
        let attribution = text(identity, "name").map(|name| Attribution {
            name,
            url: text(identity, "url").unwrap_or_default(),
            categories: texts(identity, "categories"),
        });
        Arc::new(Identity { user_agent: text(identity, "user_agent"), attribution })
    });
    RequestOptions {
        reasoning: text(record, "reasoning").and_then(|name| ThinkingLevel::parse(&name)),
        omit_thinking: flag(record, "omit_thinking"),
        budgets: ThinkingBudgets {
            minimal: number("minimal"),
            low: number("low"),
            medium: number("medium"),
            high: number("high"),
        },
        max_tokens: number("max_tokens"),
        temperature: record.get("temperature").and_then(Value::as_f64),
        sampling_params: map("sampling"),
        cache: match text(record, "cache").as_deref() {
            Some("none") => CacheRetention::None,
            Some("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        },
        session_id: text(record, "session_id"),
        tool_choice: record.get("tool_choice").cloned(),
        metadata: map("metadata"),
        headers: pairs(record, "headers"),
        identity,
        head_timeout_ms: number("head_timeout"),
        idle_timeout_ms: number("idle_timeout"),
        total_timeout_ms: number("total_timeout"),
        proxy: text(record, "proxy"),
        max_retries: number("max_retries").unwrap_or_default(),
        max_retry_delay_ms: number("max_retry_delay").unwrap_or_default(),
    }
}
