//! A chat on the terminal: lines of standard input are prompts, the answers stream to standard output.
//!
//! `cargo run -p tau-io-std --example blocking_chat -- anthropic/claude-sonnet-5` with `ANTHROPIC_API_KEY` set;
//! without a model it is the embedded demo, which needs no key.

use std::io::{self, BufRead, Write};

use tau_core::event::{Event, MessageUpdate};
use tau_core::fault::Fault;
use tau_core::model::catalog::Catalog;
use tau_io_std::Agent;
use tau_io_std::embed::Options;

fn main() -> Result<(), Fault> {
    let options = match std::env::args().nth(1) {
        Some(name) => Options::named(&Catalog::default(), &name)?.keys_from_environment(),
        None => Options::demo(),
    };
    let agent = Agent::start(options.tools(["read", "grep", "find", "ls"]))?;
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        for event in agent.run(line)? {
            show(&event);
        }
        println!();
    }
    let stats = agent.stats();
    eprintln!(
        "{} replies, {} tokens, ${:.4}",
        stats.assistant_messages,
        stats.total_tokens(),
        stats.usage.cost.total
    );
    Ok(())
}

fn show(event: &Event) {
    match event {
        Event::MessageUpdate { update: MessageUpdate::TextDelta { delta, .. }, .. } => {
            print!("{delta}");
            let _ = io::stdout().flush();
        }
        Event::ToolStart { name, args, .. } => println!("\n[{name} {args}]"),
        Event::Error(fault) => eprintln!("{fault}"),
        _ => {}
    }
}
