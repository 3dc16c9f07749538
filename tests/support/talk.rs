//! A program that is driven over its standard input while its output is read.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::Run;

/// How long a record or the end may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The running program.
pub struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    out: Vec<String>,
    /// Records up to here were looked at by [`Talk::wait`].
    seen: usize,
    errors: Option<thread::JoinHandle<String>>,
}

impl Talk {
    /// Starts a command made by [`crate::program::Sandbox::command`].
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let (sender, lines) = channel();
        let stdout = child.stdout.take();
        thread::spawn(move || {
            let reader = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).split(b'\n'));
            for line in reader.map_while(Result::ok) {
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let errors = child.stderr.take().map(|mut pipe| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = pipe.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Self { stdin: child.stdin.take(), child, lines, out: Vec::new(), seen: 0, errors }
    }

    /// Sends one record.
    pub fn send(&mut self, record: &Value) {
        self.send_bytes(format!("{record}\n").as_bytes());
    }

    /// Sends bytes as they are. A program that is gone takes none.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
        }
    }

    /// Closes standard input.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Its process number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its number.
    pub fn signal(&self, number: i32) {
        let _ = Command::new("kill").arg(format!("-{number}")).arg(self.child.id().to_string()).status();
    }

    /// The next record, after those that were waited for before, that has all fields of `wanted`.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn wait(&mut self, wanted: &Value) -> Value {
        self.wait_within(wanted, LIMIT).unwrap_or_else(|why| panic!("{why}; output: {:#?}", self.out))
    }

    /// As [`Talk::wait`], with a limit.
    ///
    /// # Errors
    /// When it does not come within the limit.
    pub fn wait_within(&mut self, wanted: &Value, limit: Duration) -> Result<Value, String> {
        let end = Instant::now() + limit;
        loop {
            while let Some(line) = self.out.get(self.seen) {
                self.seen += 1;
                if let Ok(record) = serde_json::from_str(line)
                    && has_all(&record, wanted)
                {
                    return Ok(record);
                }
            }
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.out.push(line),
                Err(RecvTimeoutError::Timeout) => return Err(format!("waited for {wanted}")),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("the program ended while waiting for {wanted}"));
                }
            }
        }
    }

    /// Sends a command and gives its response.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn ask(&mut self, id: &str, mut command: Value) -> Value {
        command["id"] = json!(id);
        self.send(&command);
        self.wait(&json!({"type": "response", "id": id}))
    }

    /// As [`Talk::ask`]; gives the data of a response that tells success.
    ///
    /// # Panics
    /// When it tells something else.
    pub fn data(&mut self, id: &str, command: Value) -> Value {
        let response = self.ask(id, command);
        assert_eq!(response["success"], true, "{response}");
        response["data"].clone()
    }

    /// Closes standard input and waits for the end.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn finish(mut self) -> Run {
        self.close();
        self.wait_exit()
    }

    /// Waits for the end; standard input stays as it is.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn wait_exit(mut self) -> Run {
        let end = Instant::now() + LIMIT;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                _ if Instant::now() > end => {
                    let _ = self.child.kill();
                    panic!("the program did not end; output: {:#?}", self.out);
                }
                _ => thread::sleep(Duration::from_millis(3)),
            }
        };
        while let Ok(line) = self.lines.recv_timeout(LIMIT) {
            self.out.push(line);
        }
        let out = self.out.iter().map(|line| format!("{line}\n")).collect();
        let err = self.errors.take().map(thread::JoinHandle::join).and_then(Result::ok).unwrap_or_default();
        Run { code: status.code(), out, err }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a value has everything of another; lists compare element by element.
#[must_use]
pub fn has_all(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| value.get(key).is_some_and(|value| has_all(value, wanted)))
        }
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() == wanted.len() && value.iter().zip(wanted).all(|(a, b)| has_all(a, b))
        }
        _ => value == wanted,
    }
}
