//! Programs of other people: running ones, whose addresses are in the environment, or started by scripts.

use std::env;
use std::fs::File;
use std::io::{Read, Seek};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A folder of start scripts: `NAME.sh start PORT`, `NAME.sh stop`.
const SCRIPTS: &str = "TAU_ECO";

/// A peer that answers at an address until it is dropped.
pub(crate) struct Peer {
    /// `http://host:port`
    pub(crate) url: String,
    script: Option<PathBuf>,
}

/// One peer after the other: scripts keep one instance of a kind.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    /// The peer whose address is in `variable`, else a new one of `script`, with these variables.
    ///
    /// # Panics
    /// When there is neither, or it does not start: a check that did not take place must not look like one that did.
    pub(crate) fn find(variable: &str, script: &str, env: &[(&str, &str)]) -> Self {
        if let Some(url) = given(variable) {
            return Self { url: url.trim_end_matches('/').to_owned(), script: None };
        }
        let script = script_of(script, variable);
        let port = free_port();
        run(&script, &["start", &port.to_string()], env);
        Self { url: format!("http://127.0.0.1:{port}"), script: Some(script) }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(script) = &self.script {
            let _ = Command::new(script).arg("stop").stdin(Stdio::null()).status();
        }
    }
}

/// A plain proxy, and a front with TLS before another peer whose authority nobody knows.
pub(crate) struct Proxies {
    /// The proxy that tunnels to the front and to nothing else: `http://host:port`.
    pub(crate) proxy: String,
    /// The front: `https://host:port`.
    pub(crate) front: String,
    /// File with the certificate of its authority.
    pub(crate) authority: String,
    script: Option<PathBuf>,
}

impl Proxies {
    /// Those of the environment, else new ones before `upstream`.
    pub(crate) fn find(upstream: &str) -> Self {
        let names = ["TAU_PEER_PROXY", "TAU_PEER_TLS", "TAU_PEER_CA"];
        if let [Some(proxy), Some(front), Some(authority)] = names.map(given) {
            return Self { proxy, front, authority, script: None };
        }
        let script = script_of("proxy.sh", &names.join(", "));
        let [proxy, front] = [free_port(), free_port()].map(|port| port.to_string());
        let env = [("AIMOCK_URL", upstream), ("PROXY_PORT", &proxy), ("TLS_PORT", &front)];
        run(&script, &["start"], &env);
        let told = run(&script, &["env"], &env);
        let authority = told.split_whitespace().find_map(|word| word.strip_prefix("SSL_CERT_FILE="));
        let authority = authority.unwrap_or_else(|| panic!("no SSL_CERT_FILE in: {told}")).to_owned();
        let (proxy, front) = (format!("http://127.0.0.1:{proxy}"), format!("https://localhost:{front}"));
        Self { proxy, front, authority, script: Some(script) }
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        if let Some(script) = &self.script {
            let _ = Command::new(script).arg("stop").stdin(Stdio::null()).status();
        }
    }
}

fn given(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.trim().is_empty())
}

fn script_of(name: &str, variables: &str) -> PathBuf {
    let Some(folder) = given(SCRIPTS) else {
        panic!(
            "there is no peer: set {variables} to the address of a running one, or {SCRIPTS} to a folder with the \
             start script {name}; docs/testing.md tells more"
        )
    };
    let script = PathBuf::from(folder).join(name);
    assert!(script.is_file(), "{SCRIPTS}: there is no {}", script.display());
    script
}

/// Runs a script to its end; what it starts goes on. What it prints goes through a file: a pipe would be open as long
/// as what it started.
fn run(script: &PathBuf, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut log = tempfile::tempfile().unwrap();
    let copy = |log: &File| Stdio::from(log.try_clone().unwrap());
    let status = Command::new(script)
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(copy(&log))
        .stderr(copy(&log))
        .status()
        .unwrap_or_else(|e| panic!("{}: {e}", script.display()));
    let mut told = String::new();
    log.rewind().unwrap();
    log.read_to_string(&mut told).unwrap();
    let name = script.display();
    assert!(
        status.success(),
        "`{name} {}` failed; is it installed (`{name} install`)?\n{told}",
        args.join(" ")
    );
    told
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
