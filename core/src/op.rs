//! Effects: everything the machine can want from the world, and the facts it gets back.
//!
//! An op is the largest unit that needs no decision of the core, and its limits travel inside it, so a backend
//! cannot flood the machine. Paths are text; a name that is not UTF-8 is shown lossily and cannot be opened.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::agent::{HookCall, HookReply};
use crate::auth::sigv4;
use crate::json::Value;
use crate::message::Text;

/// One effect.
#[derive(Clone, Debug)]
pub enum Op {
    /// One HTTP exchange, body streamed back in chunks.
    Http(HttpRequest),
    /// One file operation.
    Fs(FsOp),
    /// Content search below a folder; answered by [`Outcome::Hits`].
    Search(SearchSpec),
    /// Name search below a folder; answered by [`Outcome::Paths`].
    Walk(WalkSpec),
    /// One child process; output in chunks, then [`Outcome::Exit`].
    Proc(ProcSpec),
    /// Lines for a session file; answered by [`Outcome::Appended`].
    Append(AppendOp),
    /// Credentials for one request; answered by [`Outcome::Secret`].
    Secret(SecretOp),
    /// A tool of the embedding program; answered by [`Outcome::Host`].
    Host(HostCall),
    /// A question about the run to the embedding program; answered by [`Outcome::Hook`].
    Hook(Box<HookCall>),
}

/// Ordering domain of an op: ops of the same lane run first in, first out, one at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// No order.
    Free,
    /// The session file.
    Session,
    /// Looking up the key of a `Path` lane, so that changes queue in the order of their calls.
    Keys,
    /// Changes of one file (key: its real path; the path as resolved when nothing is there). The hub keeps this
    /// lane for a tool call from its first op in it until the call is done: reading and writing back is one step.
    Path(String),
    /// The credential store.
    Secrets,
}

/// Header name (lower case) and value pairs in order.
pub type Headers = Vec<(String, String)>;

/// A request. `Debug` shows neither header values nor the body.
#[derive(Clone)]
pub struct HttpRequest {
    /// `GET`, `POST` …
    pub method: &'static str,
    /// Absolute URL.
    pub url: String,
    /// Request headers; values may be secret.
    pub headers: Headers,
    /// Body; shared so that the encoder can keep using the buffer.
    pub body: Arc<Vec<u8>>,
    /// Limit for the connection to stand and the head to arrive, ms; `None` = no limit.
    pub head_timeout_ms: Option<u64>,
    /// Limit between two pieces of the body, ms; `None` = no limit.
    pub idle_timeout_ms: Option<u64>,
    /// Proxy setting of the user; `None` = environment.
    pub proxy: Option<String>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("host", &host_of(&self.url))
            .field("headers", &names)
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Scheme and authority of a URL, without user info, path and query (those may be secret).
#[must_use]
pub fn host_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { host.into() } else { alloc::format!("{scheme}://{host}") }
}

/// A file operation.
#[derive(Clone, Debug)]
pub enum FsOp {
    /// Facts about a path, links followed; [`Outcome::Meta`].
    Stat {
        /// Absolute path.
        path: String,
    },
    /// The whole file; [`Outcome::Bytes`]. Larger than `limit` → `TooBig`.
    Read {
        /// Absolute path.
        path: String,
        /// Most bytes to return.
        limit: u64,
    },
    /// Lines of a file, streamed through [`LineSelect`](crate::tools::LineSelect); [`Outcome::Text`]. The file may
    /// be huge. Anything but a regular file is refused (`IsDir`, `Special`) without blocking.
    ReadText(ReadText),
    /// An image file, decoded and resized to fit; [`Outcome::Image`].
    ReadImage {
        /// Absolute path.
        path: String,
        /// Limits to meet.
        limits: ImageLimits,
    },
    /// Writes a file; [`Outcome::Unit`].
    Write {
        /// Absolute path.
        path: String,
        /// New content.
        bytes: Arc<Vec<u8>>,
        /// How.
        how: WriteHow,
    },
    /// Creates a folder and its parents; [`Outcome::Unit`].
    MkdirAll {
        /// Absolute path.
        path: String,
    },
    /// Entries of a folder, unsorted; [`Outcome::Entries`].
    ReadDir {
        /// Absolute path.
        path: String,
    },
    /// Images given inline (base64), decoded and resized to fit; [`Outcome::Image`].
    FitImage {
        /// Base64 data.
        data: Text,
        /// Declared type.
        mime_type: String,
        /// Limits to meet.
        limits: ImageLimits,
    },
}

/// Lines to read. Lines are split at LF; the empty piece after a final LF is a line (spec 50 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadText {
    /// Absolute path.
    pub path: String,
    /// First line wanted, from 1.
    pub first_line: u64,
    /// Most lines to select; `None` = all that follow.
    pub max_lines: Option<u64>,
    /// Head truncation applied to the selection: lines.
    pub keep_lines: u64,
    /// Head truncation applied to the selection: bytes.
    pub keep_bytes: u64,
}

/// Selected and head-truncated lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSlice {
    /// Kept text (lossy UTF-8), lines joined by LF. Empty when the first line alone was too long.
    pub text: String,
    /// Lines of the whole file.
    pub total_lines: u64,
    /// Lines of the selection before truncation.
    pub selected_lines: u64,
    /// Bytes of the selection (decoded, joined by LF) before truncation.
    pub selected_bytes: u64,
    /// Bytes of the first selected line (decoded).
    pub first_line_bytes: u64,
    /// The last selected line is empty: truncation does not count it as a line (spec 50 §1.4).
    pub ends_empty: bool,
    /// First bytes of the file (at most 4100), to tell images from text.
    pub head: Vec<u8>,
}

/// Limits for images (spec 50 §2, step 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Whether to resize at all.
    pub resize: bool,
    /// Largest width, pixels.
    pub max_width: u32,
    /// Largest height, pixels.
    pub max_height: u32,
    /// Largest size as base64, bytes.
    pub max_bytes: u64,
    /// JPEG quality tried first.
    pub jpeg_quality: u8,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self { resize: true, max_width: 2000, max_height: 2000, max_bytes: 4_718_592, jpeg_quality: 80 }
    }
}

/// An image ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageData {
    /// Base64 data.
    pub data: Text,
    /// Type of `data`.
    pub mime_type: String,
    /// Type of the source, when it was converted.
    pub converted_from: Option<String>,
    /// Width and height of the source (after orientation), when it was resized.
    pub original: Option<(u32, u32)>,
    /// Width and height as sent, when it was resized.
    pub shown: Option<(u32, u32)>,
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteHow {
    /// Truncates an existing file through links and keeps its mode; creates it otherwise.
    Through,
    /// Fails when something is there.
    Create {
        /// Mode bits of the new file.
        mode: u32,
    },
    /// Temporary file and rename; an existing file keeps its mode, a link stays a link.
    Replace {
        /// Mode bits of a new file.
        mode: u32,
    },
}

/// Kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A device, socket or pipe.
    Other,
    /// A link whose target does not exist (only in listings).
    Broken,
}

/// Facts about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What it is, links followed.
    pub kind: EntryKind,
    /// Size in bytes.
    pub size: u64,
    /// Unix mode bits.
    pub mode: u32,
    /// Modification time, Unix ms.
    pub mtime_ms: i64,
    /// The path with links resolved.
    pub real: String,
}

/// A content search (spec 50 §6.1). Files are visited in path order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSpec {
    /// File or folder, absolute.
    pub root: String,
    /// Regular expression or literal text.
    pub pattern: String,
    /// Take the pattern literally.
    pub literal: bool,
    /// Ignore case.
    pub ignore_case: bool,
    /// Glob that file paths must match.
    pub glob: Option<String>,
    /// Context lines before and after.
    pub context: u32,
    /// Most matching lines.
    pub limit: u64,
    /// Longest line returned, UTF-16 units; longer ones are clipped.
    pub max_line: u32,
}

/// One line of a search result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Path relative to the root (base name when the root is a file), with `/`.
    pub path: String,
    /// Line number from 1.
    pub line: u64,
    /// Whether the line matches; otherwise it is context.
    pub is_match: bool,
    /// The line without its terminator, clipped.
    pub text: String,
    /// Whether it was clipped.
    pub clipped: bool,
}

/// A name search (spec 50 §6.2). Results are sorted by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkSpec {
    /// Folder, absolute.
    pub root: String,
    /// Glob, as the `find` tool understands it.
    pub pattern: String,
    /// Most results.
    pub limit: u64,
}

/// A child process. The contract (bugs 51–61): stdin is the null device; a session and process group of its own;
/// both pipes are drained by byte; a cancel kills the group; after the shell's exit the op ends once the pipes
/// were idle for `idle_after_exit_ms`, at the latest after `max_after_exit_ms`; no zombie is left. A backend may join
/// both streams in one pipe to keep the order of writing; the chunks are then marked [`Stream::Stdout`].
#[derive(Clone)]
pub struct ProcSpec {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Working directory, absolute.
    pub cwd: String,
    /// Changes of the inherited environment; `None` removes.
    pub env: Vec<(String, Option<String>)>,
    /// Wait for idle pipes after the exit, ms.
    pub idle_after_exit_ms: u64,
    /// Hard limit after the exit, ms; then what is left of the group is killed.
    pub max_after_exit_ms: u64,
    /// Keep the raw output in a file once it is larger than what the model sees.
    pub spill: Option<SpillSpec>,
}

impl fmt::Debug for ProcSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProcSpec")
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

/// Where the complete output of a process goes (D38: mode 0600, a folder per session).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillSpec {
    /// Folder; created with mode 0700.
    pub dir: String,
    /// Start of the file name.
    pub prefix: String,
    /// Spill when more bytes than this arrived …
    pub over_bytes: u64,
    /// … or more lines.
    pub over_lines: u64,
}

/// How a process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcExit {
    /// Exit code; 128 + signal number when killed by a signal that we did not send.
    pub code: Option<i32>,
    /// The op was cancelled and the group killed.
    pub killed: bool,
    /// Something of the group still held the pipes when the limit after the exit ran out.
    pub leftovers_killed: bool,
    /// The shell had exited by itself before the cancel came.
    pub exited_before_cancel: bool,
    /// File with the complete raw output.
    pub spill: Option<String>,
}

/// Lines to append to a session file in one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendOp {
    /// Absolute path.
    pub path: String,
    /// Complete lines; shared, so that lines of a failed append are not lost.
    pub bytes: Arc<Vec<u8>>,
    /// Create the file exclusively (and its folder); fail when it exists.
    pub create: bool,
    /// Size the file should have; when it differs, someone else wrote, and the reply says so.
    pub expect_len: Option<u64>,
}

/// Which credentials are needed. Resolved anew for each request (spec 40 §1.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretOp {
    /// Provider id.
    pub provider: String,
    /// Model id, for headers that are configured for one model.
    pub model: String,
    /// Address of the model.
    pub base_url: String,
}

/// Credentials of one request. `Debug` shows only what is present.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credential {
    /// The key or token.
    pub api_key: Option<String>,
    /// Headers that replace those of the model; `None` deletes.
    pub headers: Vec<(String, Option<String>)>,
    /// Base URL that replaces that of the model.
    pub base_url: Option<String>,
    /// Variables that tell where a service is, see [`crate::provider::azure`].
    pub env: Vec<(String, String)>,
    /// What authorises requests to AWS, when that is not [`Self::api_key`].
    pub aws: Option<AwsAccess>,
}

/// What authorises a request to AWS. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub enum AwsAccess {
    /// A token that is sent as it is.
    Bearer(String),
    /// Keys that sign.
    Keys(sigv4::Keys),
}

impl fmt::Debug for AwsAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer(_) => f.write_str("Bearer(***)"),
            Self::Keys(keys) => keys.fmt(f),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("api_key", &self.api_key.as_ref().map(|_| "***"))
            .field("headers", &self.headers.len())
            .field("aws", &self.aws)
            .finish_non_exhaustive()
    }
}

/// A call of a tool that the embedding program provides.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// Tool name.
    pub tool: String,
    /// Id of the call.
    pub call_id: String,
    /// Validated arguments.
    pub args: Arc<Value>,
}

/// Which pipe or body a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// HTTP body.
    Body,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What an op that went well brought.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Done.
    Unit,
    /// The HTTP body is complete.
    BodyEnd,
    /// Facts about a path.
    Meta(Meta),
    /// File content.
    Bytes(Vec<u8>),
    /// Lines of a file.
    Text(TextSlice),
    /// An image; `Err` = could not be decoded or made small enough, with the reason.
    Image(Result<ImageData, String>),
    /// Entries of a folder.
    Entries(Vec<(String, EntryKind)>),
    /// Search result.
    Hits {
        /// Matches and context in path order.
        hits: Vec<Hit>,
        /// Another match exists beyond the limit.
        more: bool,
    },
    /// Name search result; folders end in `/`.
    Paths {
        /// Sorted relative paths.
        paths: Vec<String>,
        /// Another result exists beyond the limit.
        more: bool,
    },
    /// A process ended.
    Exit(ProcExit),
    /// Lines were appended; `len` is the new size, `foreign` says that someone else had written.
    Appended {
        /// Size of the file now.
        len: u64,
        /// The size before was not the expected one.
        foreign: bool,
    },
    /// Credentials, or the reason why there are none.
    Secret(Result<Credential, String>),
    /// Result of a host tool.
    Host(crate::tools::ToolOutput),
    /// The answer to a hook.
    Hook(Box<HookReply>),
}
