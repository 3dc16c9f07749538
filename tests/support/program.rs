//! A place of its own for one run of the program: home, agent directory, workspace; and the run itself.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Reply, Server};
use crate::usage::{self, Usage};

/// How long any run may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Folders of one test; removed when dropped.
pub struct Sandbox {
    binary: PathBuf,
    root: PathBuf,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Run {
    /// Exit code; `None` = ended by a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// Demands exit code 0.
    ///
    /// # Panics
    /// When it was another.
    #[must_use]
    pub fn ok(self) -> Self {
        self.ended_with(0)
    }

    /// Demands an exit code.
    ///
    /// # Panics
    /// When it was another.
    #[must_use]
    pub fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// The lines of stdout as JSON.
    ///
    /// # Panics
    /// When a line is not JSON.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(read).collect()
    }
}

/// A run that goes on.
pub struct Running {
    child: Child,
    readers: Option<(thread::JoinHandle<String>, thread::JoinHandle<String>)>,
}

impl Running {
    /// Sends a signal by its number.
    pub fn signal(&self, number: i32) {
        let _ = Command::new("kill").arg(format!("-{number}")).arg(self.child.id().to_string()).status();
    }

    /// The pipe to its standard input, if there is one.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its process number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end; also tells what the run cost.
    ///
    /// # Panics
    /// When it does not come in time.
    #[must_use]
    pub fn finish_measured(mut self) -> (Run, Usage) {
        let (code, usage) = usage::wait(self.child.id(), LIMIT);
        let (out, err) = self.collect();
        (Run { code, out, err }, usage)
    }

    fn collect(&mut self) -> (String, String) {
        self.readers.take().map_or_else(Default::default, |(out, err)| {
            (out.join().unwrap_or_default(), err.join().unwrap_or_default())
        })
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn finish(mut self) -> Run {
        let end = Instant::now() + LIMIT;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                _ if Instant::now() > end => {
                    let _ = self.child.kill();
                    panic!("the program did not end");
                }
                _ => thread::sleep(Duration::from_millis(3)),
            }
        };
        let (out, err) = self.collect();
        Run { code: status.code(), out, err }
    }
}

impl Sandbox {
    /// Fresh folders for `binary`.
    ///
    /// # Panics
    /// When they cannot be made.
    #[must_use]
    pub fn new(binary: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let root = std::env::temp_dir().join(format!("tau-test-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for name in ["home", "agent", "work"] {
            fs::create_dir_all(root.join(name)).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
        }
        let root = fs::canonicalize(&root).unwrap_or(root);
        Self { binary: binary.into(), root }
    }

    /// The folder that holds all others.
    #[must_use]
    pub fn root(&self) -> String {
        self.root.display().to_string()
    }

    /// The workspace.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The agent directory.
    #[must_use]
    pub fn agent(&self) -> PathBuf {
        self.root.join("agent")
    }

    /// Writes a file below the sandbox, e.g. `work/a.txt`.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        let _ = fs::create_dir_all(path.parent().unwrap_or(&self.root));
        fs::write(&path, content).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path
    }

    /// A place for a program that is configured for a server, which gives these replies.
    #[must_use]
    pub fn served(binary: &str, script: impl IntoIterator<Item = Reply>) -> (Self, Server) {
        let (place, server) = (Self::new(binary), Server::start(script));
        place.configure(&server);
        (place, server)
    }

    /// Writes models.json (provider `mock`, models `m1` and `m2`) and settings.json (default `mock/m1`, no retry).
    pub fn configure(&self, server: &Server) {
        let models = json!({"providers": {"mock": {
            "baseUrl": format!("{}/v1", server.url()), "api": "openai-completions", "apiKey": "key-for-tests",
            "models": [
                {"id": "m1", "name": "Mock One", "contextWindow": 100_000, "maxTokens": 4096},
                {"id": "m2", "name": "Mock Two", "reasoning": true, "input": ["text", "image"],
                 "contextWindow": 200_000, "maxTokens": 8192},
            ],
        }}});
        self.put("agent/models.json", models.to_string());
        self.settings(&json!({}));
    }

    /// Writes settings.json: the defaults of [`Sandbox::configure`] and `more`.
    pub fn settings(&self, more: &Value) {
        let mut all = json!({
            "defaultProvider": "mock", "defaultModel": "m1", "retry": {"enabled": false},
        });
        if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        self.put("agent/settings.json", all.to_string());
    }

    /// The program with a clean environment, in the workspace, stdin empty.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_of(&self.binary.display().to_string(), args)
    }

    /// As [`command`](Self::command), of another program.
    #[must_use]
    pub fn command_of(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.join("home"))
            .env("PI_CODING_AGENT_DIR", self.agent())
            .env("LANG", "C.UTF-8")
            // What happens to run on this machine is no part of a test.
            .env("TAU_LOCAL_SERVERS", "")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs to the end.
    ///
    /// # Panics
    /// When the program cannot be started or does not end.
    #[must_use]
    pub fn run(&self, args: &[&str]) -> Run {
        self.start(self.command(args)).finish()
    }

    /// Runs to the end with text on stdin.
    ///
    /// # Panics
    /// When the program cannot be started or does not end.
    #[must_use]
    pub fn run_with_stdin(&self, args: &[&str], stdin: &str) -> Run {
        self.start_with_stdin(self.command(args), stdin.as_bytes()).finish()
    }

    /// Starts a command with bytes on stdin, which is closed after them.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start_with_stdin(&self, mut command: Command, stdin: &[u8]) -> Running {
        command.stdin(Stdio::piped());
        let mut running = self.start(command);
        if let Some(mut pipe) = running.child.stdin.take() {
            let _ = pipe.write_all(stdin);
        }
        running
    }

    /// Starts a command made by [`Sandbox::command`].
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(&self, mut command: Command) -> Running {
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{}: {e}", self.binary.display()));
        let out = child.stdout.take().map(read_all);
        let err = child.stderr.take().map(read_all);
        Running { child, readers: out.zip(err) }
    }

    /// The session files, sorted.
    #[must_use]
    pub fn sessions(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(&self.agent().join("sessions"), &mut files);
        files.sort();
        files
    }

    /// The records of the only session file.
    ///
    /// # Panics
    /// When there is not exactly one, or a line is not JSON.
    #[must_use]
    pub fn session(&self) -> Vec<Value> {
        let files = self.sessions();
        assert_eq!(files.len(), 1, "session files: {files:?}");
        records(&files[0])
    }
}

/// The records of a session file.
///
/// # Panics
/// When it cannot be read, or a line is not JSON.
#[must_use]
pub fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// Roles of the stored messages, system messages left out.
#[must_use]
pub fn roles(records: &[Value]) -> Vec<&str> {
    let roles = records.iter().filter_map(|record| record["message"]["role"].as_str());
    roles.filter(|role| *role != "system").collect()
}

/// Types of events in order, with the role of messages; updates and system messages left out.
#[must_use]
pub fn outline(events: &[Value]) -> Vec<String> {
    let mut names = Vec::new();
    for event in events {
        let kind = event["type"].as_str().unwrap_or_default();
        match (kind, event["message"]["role"].as_str()) {
            ("message_update" | "session" | "tool_execution_update", _) | (_, Some("system")) => {}
            ("message_start" | "message_end", Some(role)) => names.push(format!("{kind}({role})")),
            _ => names.push(kind.to_owned()),
        }
    }
    names
}

/// The bytes of base64 text.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn decode_base64(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_else(|e| panic!("base64: {e}"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ext| ext == "jsonl") {
            files.push(path);
        }
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
