//! A thousand agents on one thread, each with its own session and a tool of the program.
//!
//! `cargo run -p tau-io-smol --example many_agents`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smol::Executor;
use tau_core::fault::Fault;
use tau_io_smol::{Agent, http::Client};
use tau_io_std::embed::{HostTool, Options};

const AGENTS: usize = 1000;
const SCHEMA: &str =
    r#"{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}"#;

fn main() -> Result<(), Fault> {
    let calls = Arc::new(AtomicUsize::new(0));
    let http = Arc::new(Client::default());
    let executor = Executor::new();
    let mut tasks = Vec::new();
    for number in 0..AGENTS {
        let calls = Arc::clone(&calls);
        // The demo calls whatever is named `read`.
        let read = HostTool::new("read", "Reads a document.", SCHEMA, move |call| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(format!("{} of agent {number}", call.text("path")))
        });
        let (agent, driver) = Agent::start(Options::demo().host_tool(read), Arc::clone(&http))?;
        executor.spawn(driver).detach();
        tasks.push(executor.spawn(async move {
            let answer = agent.prompt("Show me around.").await?;
            agent.close().await;
            Ok::<String, Fault>(answer)
        }));
    }
    let answers = smol::block_on(executor.run(async {
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await?);
        }
        Ok::<_, Fault>(answers)
    }))?;
    println!("{} agents, {} tool calls", answers.len(), calls.load(Ordering::Relaxed));
    println!("the last one says: {}", answers.last().map_or("", String::as_str));
    Ok(())
}
