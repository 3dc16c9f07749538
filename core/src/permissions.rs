//! Whether a tool call may run, must be asked about, or is refused (spec 20 §L.1, seed 003). Pure: who asks a person,
//! and whether a path lies outside, is the caller's affair.

/// How much a session may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionMode {
    /// Everything that changes something is asked about.
    #[default]
    Ask,
    /// Files of the workspace may be changed; commands are asked about.
    AcceptEdits,
    /// Nothing is asked.
    Auto,
}

impl PermissionMode {
    /// All, the most careful first.
    pub const ALL: [Self; 3] = [Self::Ask, Self::AcceptEdits, Self::Auto];

    /// Reads the name used in settings, flags and protocols.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The name used in settings, flags and protocols.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
        }
    }

    /// The mode of a call: that of its delegate, else of the session, else the usual one; names that are none do not
    /// count (PR-231).
    #[must_use]
    pub fn effective(delegate: Option<&str>, session: Option<&str>, usual: Option<&str>) -> Self {
        [delegate, session, usual].into_iter().flatten().find_map(Self::parse).unwrap_or_default()
    }
}

/// What a session is for. A contract session plans, and changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contract {
    /// Work.
    #[default]
    None,
    /// A plan or a goal is written first.
    Planning,
}

/// How much a call can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// It looks.
    Low,
    /// Nobody knows.
    Medium,
    /// It changes something.
    High,
}

/// What a tool is, as far as permission goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolClass {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Runs commands.
    Shell,
    /// Never asked about.
    Free,
    /// Anything else.
    Other(Risk),
}

/// Names of tools, in small letters, and what they are.
const CLASSES: &[(&str, ToolClass)] = &[
    ("read", ToolClass::Read),
    ("grep", ToolClass::Read),
    ("glob", ToolClass::Read),
    ("find", ToolClass::Read),
    ("ls", ToolClass::Read),
    ("write", ToolClass::Edit),
    ("edit", ToolClass::Edit),
    ("bash", ToolClass::Shell),
    ("browserpreview", ToolClass::Free),
    ("new_context", ToolClass::Free),
];

/// Beginning of the names of tools that come from an MCP server.
const MCP: &str = "mcp_";

impl ToolClass {
    /// The class of a tool; `declared` is the risk that its maker names.
    #[must_use]
    pub fn of(name: &str, declared: Option<&str>) -> Self {
        if let Some((_, class)) = CLASSES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
            return *class;
        }
        Self::Other(match declared {
            Some("low") => Risk::Low,
            Some("high") => Risk::High,
            None if name.starts_with(MCP) => Risk::Low,
            _ => Risk::Medium,
        })
    }

    const fn is_harmless(self) -> bool {
        matches!(self, Self::Read | Self::Free | Self::Other(Risk::Low))
    }
}

/// A call that is about to run.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The mode that counts for it.
    pub mode: PermissionMode,
    /// What its session is for.
    pub contract: Contract,
    /// What its tool is.
    pub class: ToolClass,
    /// It names a path outside the places of the session.
    pub outside: bool,
    /// A person allowed this tool for the whole session.
    pub granted: bool,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow,
    /// It runs, because a person allowed it for the session.
    Granted,
    /// A person must say.
    Ask,
    /// It does not run, whatever anyone says.
    Deny,
}

impl Request {
    /// Decides, in the order of PR-232.
    #[must_use]
    pub const fn decide(self) -> Decision {
        let planning = matches!(self.contract, Contract::Planning);
        if planning && matches!(self.class, ToolClass::Edit | ToolClass::Other(_)) {
            return Decision::Deny;
        }
        let free = matches!(self.class, ToolClass::Free);
        if matches!(self.mode, PermissionMode::Auto) || free || self.class.is_harmless() && !self.outside {
            return Decision::Allow;
        }
        let edits = matches!((self.mode, self.class), (PermissionMode::AcceptEdits, ToolClass::Edit));
        match (edits && !self.outside, self.granted) {
            (true, _) => Decision::Allow,
            (false, true) => Decision::Granted,
            (false, false) => Decision::Ask,
        }
    }
}
