//! Tools of the embedding program.

use std::fmt;
use std::sync::Arc;

use tau_core::fault::Fault;
use tau_core::json::{self, JsonError, Value};
use tau_core::op::{HostCall, Outcome};
use tau_core::tools::{ExecutionMode, Runner, Tool, ToolOutput};

use super::guarded;
use crate::sys::CancelToken;

type Run = Arc<dyn Fn(&mut Call<'_>) -> Result<ToolOutput, String> + Send + Sync>;

/// One call of a [`HostTool`].
pub struct Call<'a> {
    id: String,
    args: Arc<Value>,
    cancel: &'a CancelToken,
    update: &'a mut dyn FnMut(ToolOutput),
}

impl Call<'_> {
    /// Id of the call, as events name it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The arguments: they agree with the schema of the tool.
    #[must_use]
    pub fn args(&self) -> &Value {
        &self.args
    }

    /// An argument that is a text; empty when there is none.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.args.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Shows an intermediate result; it replaces the one before. The model sees the last result only.
    pub fn update(&mut self, text: impl Into<String>) {
        (self.update)(ToolOutput::text(text));
    }

    /// Whether the run was aborted: the call should end soon; its result is not used any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The token behind [`is_cancelled`](Self::is_cancelled), for work on other threads.
    #[must_use]
    pub const fn cancel(&self) -> &CancelToken {
        self.cancel
    }
}

/// A tool that is a function of the embedding program. It runs on a thread where it may block.
///
/// ```
/// use tau_io_std::embed::HostTool;
///
/// let schema = r#"{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}"#;
/// let weather = HostTool::new("weather", "The weather in a city, now.", schema, |call| {
///     Ok(format!("It rains in {}.", call.text("city")))
/// });
/// ```
#[derive(Clone)]
pub struct HostTool {
    pub(super) tool: Tool,
    /// Why no agent can have it.
    pub(super) fault: Option<Fault>,
    run: Run,
}

impl HostTool {
    /// A tool whose result is a text. The name has 1 to 64 letters, digits, `_` and `-`. The description tells the
    /// model when to use it, `schema` is the JSON Schema of the arguments, of the type `object`: a call that does not
    /// agree with it is refused before the function sees it. An `Err` is told to the model as the failure of the call,
    /// and so is a panic. What is wrong with name or schema is said when an agent starts.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: &str,
        run: impl Fn(&mut Call<'_>) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        Self::with_output(name, description, schema, move |call| run(call).map(ToolOutput::text))
    }

    /// As [`new`](Self::new), for results with images, details or structured content.
    #[must_use]
    pub fn with_output(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: &str,
        run: impl Fn(&mut Call<'_>) -> Result<ToolOutput, String> + Send + Sync + 'static,
    ) -> Self {
        let (name, parsed) = (name.into(), json::parse(schema));
        let fault = bad_name(&name).or_else(|| bad_schema(&name, &parsed));
        let tool = Tool {
            label: name.clone(),
            name,
            description: description.into(),
            prompt_snippet: None,
            prompt_rules: Vec::new(),
            parameters: Arc::new(parsed.unwrap_or_default()),
            mode: ExecutionMode::Parallel,
            prepare: None,
            run: Runner::Host,
        };
        Self { tool, fault, run: Arc::new(run) }
    }

    /// Calls of one reply that include one of this tool run one after the other.
    #[must_use]
    pub const fn sequential(mut self) -> Self {
        self.tool.mode = ExecutionMode::Sequential;
        self
    }

    /// A line for the list of tools in the usual system prompt.
    #[must_use]
    pub fn snippet(mut self, line: impl Into<String>) -> Self {
        self.tool.prompt_snippet = Some(line.into());
        self
    }

    /// A rule for the usual system prompt.
    #[must_use]
    pub fn rule(mut self, rule: impl Into<String>) -> Self {
        self.tool.prompt_rules.push(rule.into());
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    pub(super) fn call(
        &self,
        call: HostCall,
        update: &mut dyn FnMut(ToolOutput),
        cancel: &CancelToken,
    ) -> Outcome {
        let mut call = Call { id: call.call_id, args: call.args, cancel, update };
        let result = guarded("the tool", || (self.run)(&mut call)).and_then(|result| result);
        Outcome::Host(result.unwrap_or_else(ToolOutput::error))
    }
}

/// What every service takes.
fn bad_name(name: &str) -> Option<Fault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let good = (1..=64).contains(&name.len()) && name.chars().all(fits);
    (!good).then(|| {
        let rule = "names are 1 to 64 letters, digits, _ and -";
        Fault::new("bad_tool_name", format!("A tool cannot be called {name:?}: {rule}."))
    })
}

fn bad_schema(name: &str, schema: &Result<Value, JsonError>) -> Option<Fault> {
    let why = match schema {
        Ok(Value::Object(fields)) if fields.get("type").and_then(Value::as_str) == Some("object") => {
            return None;
        }
        Ok(_) => "is not one of an object: it needs \"type\": \"object\"".to_owned(),
        Err(why) => format!("is not JSON: {why}"),
    };
    Some(Fault::new("bad_schema", format!("The schema of the tool {name} {why}.")))
}

impl fmt::Debug for HostTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTool").field("name", &self.tool.name).finish_non_exhaustive()
    }
}
