//! The table of commands (spec 60 §3.3).

use super::Rpc;
use super::call::Call;

/// How a command is answered.
pub(super) enum Answer {
    /// Success without data.
    Done,
    /// Success with this JSON.
    Data(String),
    /// The response was written already, comes later, or there is none.
    Sent,
}

/// Follows one command, or says why not.
pub(super) type Follow = fn(&mut Rpc, &Call) -> Result<Answer, String>;

/// What is known of a name.
pub(super) enum Outlook {
    /// A command.
    Built(Follow),
    /// A record that gets no response.
    Ignored,
    /// Nothing.
    Unknown,
}

const BUILT: &[(&str, Follow)] = &[
    ("prompt", Rpc::prompt),
    ("steer", Rpc::steer),
    ("follow_up", Rpc::follow_up),
    ("abort", Rpc::abort),
    ("bash", Rpc::bash),
    ("abort_bash", Rpc::abort_bash),
    ("clear_queue", Rpc::clear_queue),
    ("set_steering_mode", Rpc::set_steering_mode),
    ("set_follow_up_mode", Rpc::set_follow_up_mode),
    ("set_session_name", Rpc::set_session_name),
    ("get_state", Rpc::get_state),
    ("get_messages", Rpc::get_messages),
    ("get_entries", Rpc::get_entries),
    ("get_tree", Rpc::get_tree),
    ("get_session_stats", Rpc::get_session_stats),
    ("get_last_assistant_text", Rpc::get_last_assistant_text),
    ("set_model", Rpc::set_model),
    ("cycle_model", Rpc::cycle_model),
    ("get_available_models", Rpc::get_available_models),
    ("set_thinking_level", Rpc::set_thinking_level),
    ("cycle_thinking_level", Rpc::cycle_thinking_level),
    ("get_available_thinking_levels", Rpc::get_available_thinking_levels),
    ("new_session", Rpc::new_session),
    ("switch_session", Rpc::switch_session),
    ("fork", Rpc::fork),
    ("clone", Rpc::clone_session),
    ("get_fork_messages", Rpc::get_fork_messages),
    ("export_html", Rpc::export_html),
    ("get_commands", Rpc::get_commands),
    ("compact", Rpc::compact),
    ("set_auto_compaction", Rpc::set_auto_compaction),
    ("set_auto_retry", Rpc::set_auto_retry),
    ("abort_retry", Rpc::abort_retry),
    // Ours; unknown to Pi.
    ("navigate_tree", Rpc::navigate_tree),
    ("set_label", Rpc::set_label),
    ("open_session", Rpc::open_session),
    ("close_session", Rpc::close_session),
    ("list_sessions", Rpc::list_sessions),
];

/// Answers to questions (spec 60 §3.7). They get no response.
pub(super) const ANSWERS: &str = "extension_ui_response";

/// Looks a name up.
pub(super) fn find(name: &str) -> Outlook {
    match BUILT.iter().find(|(known, _)| *known == name) {
        Some((_, follow)) => Outlook::Built(*follow),
        None if name == ANSWERS => Outlook::Ignored,
        None => Outlook::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_described() {
        let page = include_str!("../../../../docs/rpc.md");
        let missing: Vec<_> = BUILT
            .iter()
            .filter(|(name, _)| !page.contains(&format!("`{name}`")))
            .map(|(name, _)| name)
            .collect();
        assert!(missing.is_empty(), "docs/rpc.md does not tell of {missing:?}");
        assert!(page.contains(ANSWERS));
    }
}
