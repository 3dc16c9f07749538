//! What an agent is to be, as a builder.

use std::fmt;
use std::sync::Arc;

use tau_core::agent::{ResultChange, ToolVerdict, TurnChange, TurnDecision};
use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_core::json::Value;
use tau_core::message::{Block, Message, ToolCall};
use tau_core::model::catalog::Catalog;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::op::{Credential, SecretOp};
use tau_core::provider::RequestOptions;
use tau_core::settings::Settings;
use tau_core::tools::{ExecutionMode, ToolOutput};

use super::hooks::Hooks;
use super::parts;
use super::store::Store;
use super::tool::HostTool;
use crate::machine::Exchange;
use crate::sys::CancelToken;

pub(super) type Secrets = Box<dyn Fn(&SecretOp) -> Result<Credential, String> + Send + Sync>;
pub(super) type OnEvent = Box<dyn FnMut(&Event) + Send>;
pub(super) type OnExchange = Box<dyn Fn(Exchange<'_>) + Send + Sync>;

/// A message to the agent. Texts become one by themselves.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    pub(crate) text: String,
    pub(crate) images: Vec<Block>,
}

impl Prompt {
    /// Adds an image: base64 data and its type, as `image/png`. It is sent as it is: what a service takes (kinds,
    /// bytes, pixels) is up to the caller.
    #[must_use]
    pub fn image(mut self, mime_type: &str, base64: &str) -> Self {
        self.images.push(Block::image(base64, mime_type));
        self
    }

    /// Text and image blocks.
    #[must_use]
    pub fn into_parts(self) -> (String, Vec<Block>) {
        (self.text, self.images)
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}

/// Everything about an agent. Made for a model; by default it has no tools, the usual system prompt, no credentials,
/// and its session is in memory only.
///
/// ```
/// use tau_io_std::embed::Options;
///
/// let options = Options::demo().system_prompt("You answer in rhymes.").tools(["read", "grep"]).cwd("/srv/app");
/// # drop(options);
/// ```
pub struct Options {
    pub(super) model: Arc<Model>,
    pub(super) thinking: ThinkingLevel,
    pub(super) cwd: Option<String>,
    pub(super) base: Option<String>,
    pub(super) addenda: Vec<String>,
    pub(super) sections: Vec<(String, String)>,
    pub(super) builtin: Vec<String>,
    pub(super) host: Vec<HostTool>,
    pub(super) execution: ExecutionMode,
    pub(super) variables: Vec<(String, Option<String>)>,
    pub(super) hooks: Hooks,
    pub(super) secrets: Option<Secrets>,
    pub(super) store: Store,
    pub(super) settings: Settings,
    pub(super) request: RequestOptions,
    pub(super) on_event: Option<OnEvent>,
    pub(super) on_exchange: Option<OnExchange>,
}

impl Options {
    /// For a model.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self {
            model: Arc::new(model),
            thinking: ThinkingLevel::Off,
            cwd: None,
            base: None,
            addenda: Vec::new(),
            sections: Vec::new(),
            builtin: Vec::new(),
            host: Vec::new(),
            execution: ExecutionMode::Parallel,
            variables: Vec::new(),
            hooks: Hooks::default(),
            secrets: None,
            store: Store::Memory,
            settings: Settings::default(),
            request: RequestOptions {
                head_timeout_ms: Some(Settings::HTTP_IDLE_TIMEOUT_MS),
                idle_timeout_ms: Some(Settings::HTTP_IDLE_TIMEOUT_MS),
                ..RequestOptions::default()
            },
            on_event: None,
            on_exchange: None,
        }
    }

    /// For a model of a catalogue, named `provider/id`. [`Catalog::default`] has the built-in ones,
    /// [`Catalog::load`] those of a `models.json` too.
    ///
    /// # Errors
    /// `unknown_model`.
    pub fn named(catalog: &Catalog, name: &str) -> Result<Self, Fault> {
        let model = name.split_once('/').and_then(|(provider, id)| catalog.find(provider, id));
        let unknown = || format!("There is no model {name}; name one as provider/id.");
        model.map(Self::new).ok_or_else(|| Fault::new("unknown_model", unknown()))
    }

    /// For a model of a server of your own: its address, the protocol it speaks (`openai-completions`,
    /// `anthropic-messages` …) and the id of the model. Limits and prices are those of [`Model::default`], that is
    /// unknown; use [`new`](Self::new) to say more.
    #[must_use]
    pub fn server(base_url: &str, api: &str, id: &str) -> Self {
        Self::new(Model {
            id: id.to_owned(),
            name: id.to_owned(),
            api: api.to_owned(),
            provider: "server".to_owned(),
            base_url: base_url.to_owned(),
            text_input: true,
            ..Model::default()
        })
    }

    /// For the embedded demo: a script that calls the built-in tools it is given. No network, no key.
    #[must_use]
    pub fn demo() -> Self {
        Self::new(Catalog::default().find("demo", "tour").unwrap_or_default())
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Sends requests to another address than the model's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.model).base_url = url.into();
        self
    }

    /// How much the model thinks; the nearest level that it knows.
    #[must_use]
    pub const fn thinking(mut self, level: ThinkingLevel) -> Self {
        self.thinking = level;
        self
    }

    // ----- credentials -----

    /// One key for all requests.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        let credential = Credential { api_key: Some(key.into()), ..Credential::default() };
        self.credentials(move |_| Ok(credential.clone()))
    }

    /// Keys from the variables that providers usually have (`ANTHROPIC_API_KEY` …).
    #[must_use]
    pub fn keys_from_environment(self) -> Self {
        self.credentials(parts::from_environment)
    }

    /// Asks the program before each request, so keys and tokens may change. May block. An `Err` fails the request
    /// with that text.
    #[must_use]
    pub fn credentials(
        mut self,
        find: impl Fn(&SecretOp) -> Result<Credential, String> + Send + Sync + 'static,
    ) -> Self {
        self.secrets = Some(Box::new(find));
        self
    }

    // ----- prompt -----

    /// Replaces the usual system prompt: who the agent is and how it works. The working directory is still told.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.base = Some(text.into());
        self
    }

    /// Adds to the system prompt.
    #[must_use]
    pub fn append_prompt(mut self, text: impl Into<String>) -> Self {
        self.addenda.push(text.into());
        self
    }

    /// Adds a named section to the system prompt, or replaces the one of that name. Names are lower case.
    #[must_use]
    pub fn prompt_section(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.sections.push((name.into(), text.into()));
        self
    }

    // ----- tools -----

    /// Working directory of the tools; that of the process if not given.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Switches built-in tools on: `read`, `bash`, `edit`, `write`, `grep`, `find`, `ls`.
    #[must_use]
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.builtin.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds a tool of the program; it takes the place of a built-in one of the same name.
    #[must_use]
    pub fn host_tool(mut self, tool: HostTool) -> Self {
        self.host.push(tool);
        self
    }

    /// Calls of one reply never run side by side.
    #[must_use]
    pub const fn sequential_tools(mut self) -> Self {
        self.execution = ExecutionMode::Sequential;
        self
    }

    /// Sets a variable for commands of the tool `bash`, or removes it (`None`).
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: Option<&str>) -> Self {
        self.variables.push((name.into(), value.map(str::to_owned)));
        self
    }

    // ----- hooks; all may block, and the run waits for them -----

    /// Asked before each valid call: run it, run it with other arguments, or not.
    #[must_use]
    pub fn before_tool_call(
        mut self,
        hook: impl Fn(&ToolCall, &Value, &CancelToken) -> ToolVerdict + Send + Sync + 'static,
    ) -> Self {
        self.hooks.before = Some(Box::new(hook));
        self
    }

    /// Asked after each call: parts of its result may be replaced.
    #[must_use]
    pub fn after_tool_call(
        mut self,
        hook: impl Fn(&ToolCall, &ToolOutput, &CancelToken) -> ResultChange + Send + Sync + 'static,
    ) -> Self {
        self.hooks.after = Some(Box::new(hook));
        self
    }

    /// Asked when a turn is complete, with the reply and the results of its calls: end the run, or make another
    /// request, or `None` for what would happen anyway.
    #[must_use]
    pub fn finish_turn(
        mut self,
        hook: impl Fn(&Message, &[Arc<Message>]) -> Option<TurnDecision> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.finish = Some(Box::new(hook));
        self
    }

    /// Asked before each request: model, level and context may be replaced.
    #[must_use]
    pub fn prepare_request(mut self, hook: impl Fn() -> TurnChange + Send + Sync + 'static) -> Self {
        self.hooks.request = Some(Box::new(hook));
        self
    }

    /// Makes, for each request, of the transcript what the model is to see. The transcript itself stays.
    #[must_use]
    pub fn transform_context(
        mut self,
        hook: impl Fn(Vec<Arc<Message>>) -> Vec<Arc<Message>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.context = Some(Box::new(hook));
        self
    }

    // ----- looking on -----

    /// Sees every event, in order, on the thread that made it: the shortest way from the socket to a surface. It
    /// must be quick, and must not call the agent (it would wait for itself). After a panic it is called with the next
    /// event.
    #[must_use]
    pub fn on_event(mut self, look: impl FnMut(&Event) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(look));
        self
    }

    /// Sees every request before it leaves, and the head of every response, on the thread that sends. Requests hold
    /// the key. A panic costs nothing but the look.
    #[must_use]
    pub fn on_exchange(mut self, look: impl Fn(Exchange<'_>) + Send + Sync + 'static) -> Self {
        self.on_exchange = Some(Box::new(look));
        self
    }

    // ----- session -----

    /// Keeps the session in this file, in Pi's format: goes on with what is in it, or begins it with the first
    /// message.
    #[must_use]
    pub fn session_file(mut self, path: impl Into<String>) -> Self {
        self.store = Store::File(path.into());
        self
    }

    /// Keeps the session wherever the program likes. `stored` is what was given to `append` before, all of it (empty
    /// for a new session); `append` gets complete lines, in order, and must be quick. If it fails, the agent goes on
    /// in memory, says so with an event, and gives the same lines again with the next ones.
    #[must_use]
    pub fn session_store(
        mut self,
        stored: Vec<u8>,
        append: impl FnMut(&[u8]) -> Result<(), String> + Send + 'static,
    ) -> Self {
        self.store = Store::Own { stored, append: Box::new(append) };
        self
    }

    // ----- the rest -----

    /// Retries, compaction and summaries go by these, see `docs/settings.md`.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Time limits, retries, cache, sampling and proxy of requests.
    #[must_use]
    pub fn request_options(mut self, options: RequestOptions) -> Self {
        self.request = options;
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("model", &format_args!("{}/{}", self.model.provider, self.model.id))
            .field("tools", &self.builtin)
            .field("host_tools", &self.host)
            .finish_non_exhaustive()
    }
}
