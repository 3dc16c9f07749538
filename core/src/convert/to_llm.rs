//! First conversion: every role of a transcript becomes one of the four public roles (spec 10 §4.4).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::memo::{Memo, Pass};
use crate::message::{BashExecution, Block, Content, CustomMessage, Message, UserMessage};

const BRANCH_INTRO: &str =
    "The conversation went down another branch and came back. What happened there, in short:";
const COMPACTION_INTRO: &str =
    "The earlier part of this conversation was compacted. What happened there, in short:";

/// The messages for a model: system, user, assistant and tool results keep their `Arc`, messages of the host
/// become user messages, unknown roles and excluded commands are left out. Order is kept.
#[must_use]
pub fn to_llm(messages: &[Arc<Message>], memo: &mut Memo) -> Vec<Arc<Message>> {
    memo.next_round();
    let converted = messages.iter().filter_map(|message| convert(message, memo)).collect();
    memo.end();
    converted
}

/// The public form of one message; `None` when a model does not see it.
pub(super) fn convert(message: &Arc<Message>, memo: &mut Memo) -> Option<Arc<Message>> {
    let content = match &**message {
        Message::System(_) | Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => {
            return Some(Arc::clone(message));
        }
        Message::Other(_) => return None,
        Message::Bash(bash) if bash.exclude_from_context => return None,
        Message::Bash(bash) => Made::Bash(bash),
        Message::Custom(custom) => Made::Custom(custom),
        Message::BranchSummary(branch) => Made::Summary(BRANCH_INTRO, &branch.summary, ""),
        Message::CompactionSummary(compaction) => Made::Summary(COMPACTION_INTRO, &compaction.summary, "\n"),
    };
    let make = || Message::User(UserMessage { content: content.blocks(), timestamp: message.timestamp() });
    Some(memo.rewrite(message, Pass::ToLlm, |_| true, make))
}

enum Made<'a> {
    Bash(&'a BashExecution),
    Custom(&'a CustomMessage),
    /// Introduction, summary, what stands before the closing tag.
    Summary(&'static str, &'a str, &'static str),
}

impl Made<'_> {
    fn blocks(&self) -> Content {
        let text = match self {
            Self::Bash(bash) => bash_text(bash).into(),
            Self::Summary(intro, summary, end) => {
                format!("{intro}\n\n<summary>\n{summary}{end}</summary>").into()
            }
            Self::Custom(custom) => match &custom.content {
                Content::Text(text) => text.clone(),
                blocks @ Content::Blocks(_) => return blocks.clone(),
            },
        };
        Content::Blocks(alloc::vec![Block::text(text)])
    }
}

fn bash_text(bash: &BashExecution) -> String {
    let mut text = format!("Ran `{}`\n", bash.command);
    if bash.output.is_empty() {
        text.push_str("(no output)");
    } else {
        text.push_str("```\n");
        text.push_str(&bash.output);
        text.push_str("\n```");
    }
    match bash.exit_code {
        _ if bash.cancelled => text.push_str("\n\n(cancelled by the user)"),
        Some(code) if code != 0 => text.push_str(&format!("\n\nExit code: {code}")),
        _ => {}
    }
    if let (true, Some(path)) = (bash.truncated, &bash.full_output_path) {
        text.push_str(&format!("\n\n[output shortened; all of it is in {path}]"));
    }
    text
}
