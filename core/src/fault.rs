//! What can go wrong: faults of the world ([`IoFault`]) and errors for people and programs ([`Fault`]).

use alloc::string::String;
use core::fmt;

/// The kind of a fault a backend reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No such file, folder or program.
    NotFound,
    /// Permission denied.
    Denied,
    /// A folder was expected.
    NotDir,
    /// A folder stood where a file was expected.
    IsDir,
    /// Something is there already.
    Exists,
    /// Larger than the limit in the op.
    TooBig,
    /// A device, socket or pipe where a file was expected.
    Special,
    /// The request itself made no sense (bad pattern, bad URL, bad image …).
    Invalid,
    /// The connection could not be made.
    Connect,
    /// The host name could not be resolved.
    Dns,
    /// TLS failed; certificate errors are final.
    Tls,
    /// The proxy refused or failed.
    Proxy,
    /// The connection broke.
    Reset,
    /// Nothing arrived within the limit.
    TimedOut,
    /// Cancelled on demand.
    Cancelled,
    /// No space left.
    NoSpace,
    /// The file changed under us.
    Conflict,
    /// Anything else.
    Other,
}

impl FaultKind {
    /// Reads a code; one that is unknown is anything else.
    #[must_use]
    pub fn parse(code: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Other)
    }

    const ALL: [Self; 17] = [
        Self::NotFound,
        Self::Denied,
        Self::NotDir,
        Self::IsDir,
        Self::Exists,
        Self::TooBig,
        Self::Special,
        Self::Invalid,
        Self::Connect,
        Self::Dns,
        Self::Tls,
        Self::Proxy,
        Self::Reset,
        Self::TimedOut,
        Self::Cancelled,
        Self::NoSpace,
        Self::Conflict,
    ];

    /// Stable code for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::NotDir => "not_a_folder",
            Self::IsDir => "is_a_folder",
            Self::Exists => "exists",
            Self::TooBig => "too_big",
            Self::Special => "not_a_regular_file",
            Self::Invalid => "invalid",
            Self::Connect => "connect",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Proxy => "proxy",
            Self::Reset => "reset",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::NoSpace => "no_space",
            Self::Conflict => "conflict",
            Self::Other => "other",
        }
    }
}

/// A fault of the world, as a backend reports it. `detail` must hold no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoFault {
    /// What kind of fault.
    pub kind: FaultKind,
    /// What happened, with the path or host it happened to.
    pub detail: String,
}

impl IoFault {
    /// Builds a fault.
    #[must_use]
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// The fault of a cancelled op.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(FaultKind::Cancelled, "cancelled")
    }
}

impl fmt::Display for IoFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl core::error::Error for IoFault {}

/// An error for people and programs: says what failed and what to do, and carries a stable code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Stable code, e.g. `busy`, `no_model`, `no_key`.
    pub code: &'static str,
    /// What failed, where, and the next step.
    pub message: String,
}

impl Fault {
    /// Builds an error.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Fault {}
