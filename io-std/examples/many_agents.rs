//! Many agents in one process, each with its own directory, tools and session; a thread each while they work.
//!
//! `cargo run -p tau-io-std --example many_agents`

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tau_core::fault::Fault;
use tau_io_std::Agent;
use tau_io_std::embed::Options;

const AGENTS: usize = 16;

fn main() -> Result<(), Fault> {
    let root = std::env::temp_dir().join(format!("tau-many-agents-{}", std::process::id()));
    let calls = AtomicUsize::new(0);
    let work = |number: usize| -> Result<String, Fault> {
        let folder = root.join(number.to_string());
        fs::create_dir_all(&folder).map_err(|e| Fault::new("no_folder", e.to_string()))?;
        let options = Options::demo()
            .cwd(folder.to_string_lossy())
            .tools(["bash", "write", "edit", "read"])
            .session_file(folder.join("session.jsonl").to_string_lossy());
        let agent = Agent::start(options)?;
        let answer = agent.prompt("Show me around.")?;
        calls.fetch_add(usize::try_from(agent.stats().tool_calls).unwrap_or(0), Ordering::Relaxed);
        Ok(answer)
    };
    let answers: Vec<Result<String, Fault>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..AGENTS).map(|number| scope.spawn(move || work(number))).collect();
        let lost = || Err(Fault::new("panicked", "An agent's thread panicked."));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    });
    let _ = fs::remove_dir_all(&root);
    let answers: Vec<String> = answers.into_iter().collect::<Result<_, _>>()?;
    println!("{} agents, {} tool calls", answers.len(), calls.load(Ordering::Relaxed));
    println!("the last one says: {}", answers.last().map_or("", String::as_str));
    Ok(())
}
