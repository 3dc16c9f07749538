//! The command line of Tau. A library so that tests reach its pure parts.

pub mod args;
pub mod auth_command;
pub mod auth_login;
pub mod auth_store;
pub mod auth_talk;
pub mod backend;
pub mod bootstrap;
pub mod choose;
pub mod cloud;
pub mod config;
pub mod config_command;
pub mod credentials;
pub mod export;
pub mod file_args;
pub mod files;
pub mod list_models;
pub mod local_servers;
pub mod memory;
pub mod mode;
pub mod models_command;
pub mod old_credentials;
pub mod old_layout;
pub mod out;
pub mod outputs;
pub mod permission;
pub mod prompt_files;
pub mod prompts;
pub mod recording;
pub mod replay_command;
pub mod resource_files;
pub mod resources;
pub mod run;
pub mod sessions;
pub mod settings_store;
pub mod signals;
pub mod stored_lists;
pub mod surroundings;
pub mod table;
pub mod trust;
pub mod visible;

use std::io::IsTerminal;
use std::process::ExitCode;

use args::Args;
use bootstrap::Base;
use config::Access;
use mode::totals::Totals;
use mode::{Mode, Surface};
use sessions::Refusal;
use surroundings::Surroundings;

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    signals::survive_limits();
    let mut items = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).peekable();
    if items.next_if(|first| first == "config").is_some() {
        return match config_command::run(items) {
            Ok(text) => answer(&text),
            Err(why) => fail([why]),
        };
    }
    if items.next_if(|first| first == "auth").is_some() {
        return credentials_of(items);
    }
    if items.next_if(|first| first == "models").is_some() {
        return lists_of_models(items);
    }
    if items.next_if(|first| first == "sessions").is_some() {
        return stored_sessions(items);
    }
    if items.next_if(|first| first == "replay").is_some() {
        let done = replay_command::run(items);
        if !done.text.is_empty() {
            out::note(&done.text);
        }
        return ExitCode::from(done.code);
    }
    if items.next_if(|first| first == "acp").is_some() {
        return agent_of_an_editor(items);
    }
    let args = args::parse(items);
    let errors: Vec<&str> = args.errors().collect();
    if !errors.is_empty() {
        return fail(errors);
    }
    if args.version {
        return answer(&format!("{}\n", args::help::VERSION));
    }
    if args.help {
        return answer(&args::help::text());
    }
    if let Some(session) = &args.export {
        return export(&args, session);
    }
    let stdin_is_terminal = std::io::stdin().is_terminal();
    let stdout_is_terminal = std::io::stdout().is_terminal();
    let mode = Mode::choose(&args, stdin_is_terminal, stdout_is_terminal);
    let refusals: Vec<String> =
        args.unknown_texts().chain(not_built(&args, mode)).chain(nonsense(&args, mode)).collect();
    if !refusals.is_empty() {
        return fail(refusals);
    }
    args.warnings().for_each(out::note);
    if let Some(wanted) = &args.list_models {
        return list_models(&args, wanted);
    }
    memory::one_heap();
    let totals = args.totals.then(Totals::default);
    let mut warnings = Vec::new();
    let prepared = bootstrap::prepare(args, mode == Mode::Rpc, stdin_is_terminal, &mut warnings);
    warnings.iter().for_each(|warning| out::note(warning));
    let ready = match prepared {
        Ok(ready) => ready,
        Err(Refusal::Failed(why)) => return fail([why]),
        Err(Refusal::Declined(text)) => {
            out::note(&text);
            return ExitCode::SUCCESS;
        }
    };
    let surface: Box<dyn Surface + Send> = match mode {
        Mode::Rpc => return mode::rpc::run(ready),
        Mode::Json => Box::new(mode::json::Json::new(&ready.header, totals)),
        _ => Box::new(mode::print::Print::new(stdout_is_terminal, totals)),
    };
    run::run(ready, surface)
}

/// `tau acp`: everything else comes over standard input.
fn agent_of_an_editor(items: impl Iterator<Item = String>) -> ExitCode {
    let args = args::parse(items);
    if args.help {
        return answer(&args::help::text());
    }
    let errors: Vec<String> = args.errors().map(str::to_owned).chain(args.unknown_texts()).collect();
    if !errors.is_empty() {
        return fail(errors);
    }
    if args.messages == [mode::acp::sign_in::LOGIN] {
        return done(mode::acp::sign_in::run());
    }
    if !args.messages.is_empty() || !args.files.is_empty() || args.mode.is_some() {
        return fail(["tau acp takes no messages, files or modes: they come from the editor"]);
    }
    args.warnings().for_each(out::note);
    memory::one_heap();
    mode::acp::run(args)
}

/// Options whose feature this version does not have: said, never ignored.
fn not_built(args: &Args, mode: Mode) -> impl Iterator<Item = String> {
    let table = [
        ("--extension", !args.extensions.is_empty()),
        ("--theme", !args.themes.is_empty()),
        ("--use-theme", args.use_theme.is_some()),
        ("--tui-mode", args.tui_mode.is_some()),
    ];
    let options = table.into_iter().filter(|(_, given)| *given);
    let options = options.map(|(name, _)| format!("{name} is not part of this version"));
    let interactive = (mode == Mode::Interactive && args.list_models.is_none()).then(|| {
        "the terminal interface is not part of this version; `tau -p \"…\"` answers a prompt, `tau --help` tells more"
            .to_owned()
    });
    options.chain(interactive)
}

/// Options that make no sense as given.
fn nonsense(args: &Args, mode: Mode) -> impl Iterator<Item = String> {
    let blank_name = args.name.as_ref().is_some_and(|name| name.trim().is_empty());
    let table = [
        (blank_name, "--name needs a name with at least one visible character"),
        (
            mode == Mode::Rpc && !args.files.is_empty(),
            "--mode rpc takes no @file arguments: messages come as commands",
        ),
        (mode == Mode::Rpc && args.totals, "--totals: in mode rpc the command get_session_stats tells them"),
    ];
    table.into_iter().filter(|(wrong, _)| *wrong).map(|(_, text)| text.to_owned())
}

fn stored_sessions(items: impl Iterator<Item = String>) -> ExitCode {
    let args = match args::sessions::parse(items) {
        Ok(args) => args,
        Err(why) => return fail([why]),
    };
    if args.help {
        return answer(&args::sessions::help());
    }
    match sessions::command::run(&args) {
        Ok(done) => {
            answer(&done.text);
            if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => fail([why]),
    }
}

fn lists_of_models(items: impl Iterator<Item = String>) -> ExitCode {
    match args::models::parse(items).and_then(|args| models_command::run(&args)) {
        Ok((text, good)) => {
            let code = answer(&text);
            if good { code } else { ExitCode::FAILURE }
        }
        Err(why) => fail([why]),
    }
}

fn credentials_of(items: impl Iterator<Item = String>) -> ExitCode {
    let args = match args::auth::parse(items) {
        Ok(args) => args,
        Err(misuse) => {
            out::note(&misuse.text);
            return ExitCode::from(misuse.code);
        }
    };
    done(auth_command::run(&args))
}

fn done(outcome: Result<auth_command::Done, String>) -> ExitCode {
    match outcome {
        Ok(done) => {
            answer(&done.text);
            ExitCode::from(done.code)
        }
        Err(why) => fail([why]),
    }
}

fn list_models(args: &Args, wanted: &args::ListModels) -> ExitCode {
    let table = || -> Result<String, String> {
        let mut warnings = Vec::new();
        let Base { place, agent, .. } = Base::read(Surroundings::gather()?, args, &mut warnings)?;
        let access = Access::read(&place, &agent, None, &mut warnings)?;
        let unmatched = access.catalog.unmatched();
        if !unmatched.is_empty() {
            warnings.push(format!("models.json: modelOverrides of unknown models: {}", unmatched.join(", ")));
        }
        let table = list_models::table(&access, wanted);
        warnings.extend(access.catalog.list_remarks().iter().map(ToString::to_string));
        warnings.iter().for_each(|warning| out::note(warning));
        Ok(table)
    };
    match table() {
        Ok(table) => answer(&table),
        Err(why) => fail([why]),
    }
}

/// Writes a session as a page and says where.
fn export(args: &Args, session: &str) -> ExitCode {
    let page = || -> Result<String, String> {
        if let Some(unknown) = args.unknown_texts().next() {
            return Err(unknown);
        }
        if args.messages.len() > 1 || !args.files.is_empty() {
            return Err("--export takes a session file and at most one name for the page".into());
        }
        let place = Surroundings::gather()?;
        let session = place.resolve(session)?;
        let target = args.messages.first().cloned().unwrap_or_else(|| export::default_name(&session));
        export::export(&session, &place.resolve(&target)?, None)?;
        Ok(target)
    };
    match page() {
        Ok(target) => answer(&format!("{target}\n")),
        Err(why) => fail([why]),
    }
}

/// Writes to stdout; a reader that went away is no failure.
fn answer(text: &str) -> ExitCode {
    let mut out = out::Out::default();
    out.buffer().push_str(text);
    out.flush();
    if out.complain() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn fail<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> ExitCode {
    lines.into_iter().for_each(|line| out::note(line.as_ref()));
    ExitCode::FAILURE
}
