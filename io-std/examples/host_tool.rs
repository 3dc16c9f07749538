//! A tool and a hook of the program. The model is a scripted server on the loopback device, as `Options::server` would
//! reach any other server that speaks the protocol.
//!
//! `cargo run -p tau-io-std --example host_tool`

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use tau_core::agent::ToolVerdict;
use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_io_std::Agent;
use tau_io_std::embed::{HostTool, Options};

fn main() -> Result<(), Fault> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| Fault::new("no_port", e.to_string()))?;
    let address = listener.local_addr().map_err(|e| Fault::new("no_port", e.to_string()))?;
    thread::spawn(move || serve(&listener));

    let schema = r#"{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}"#;
    let weather = HostTool::new("weather", "The weather in a city, now.", schema, |call| {
        call.update("asking the station …");
        Ok(format!("It rains in {}.", call.text("city")))
    });
    let options = Options::server(&format!("http://{address}/v1"), "openai-completions", "scripted")
        .key("no key is needed there")
        .system_prompt("You tell the weather.")
        .host_tool(weather)
        .before_tool_call(|call, args, _| match args.get("city").and_then(|city| city.as_str()) {
            Some("Atlantis") => {
                ToolVerdict::Block { reason: Some("That city is lost.".into()), terminate: false }
            }
            _ => {
                println!("allowed: {}", call.name);
                ToolVerdict::Run(None)
            }
        })
        .on_exchange(|exchange| eprintln!("{exchange:?}"));
    let agent = Agent::start(options)?;
    let mut run = agent.run("Do I need an umbrella in Lisbon?")?;
    for event in run.by_ref() {
        match event {
            Event::ToolUpdate { partial, .. } => println!("so far: {:?}", partial.content),
            Event::ToolEnd { result, .. } => println!("result: {:?}", result.content),
            _ => {}
        }
    }
    println!("answer: {}", run.finish()?);
    Ok(())
}

/// Plays the model: a call of the tool first, an answer then.
fn serve(listener: &TcpListener) {
    const CALL: &str = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"weather","arguments":"{\"city\":\"Lisbon\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    const ANSWER: &str = r#"{"choices":[{"delta":{"content":"Take an umbrella."},"finish_reason":"stop"}]}"#;
    for stream in listener.incoming().flatten() {
        let _ = answer(stream, CALL, ANSWER);
    }
}

fn answer(mut stream: TcpStream, call: &str, then: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        if length == 0 {
            return Ok(());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let has_result = String::from_utf8_lossy(&body).contains("It rains in Lisbon.");
        let reply = format!("data: {}\n\ndata: [DONE]\n\n", if has_result { then } else { call });
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{reply}", reply.len())?;
    }
}
