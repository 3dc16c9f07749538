//! From arguments to a machine that is ready to run (seed 000 §01; spec 40 §6): settings, session, model, prompt,
//! tools. Each step reads only what it needs, and what is wrong is told before anything starts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tau_core::agent::AgentConfig;
use tau_core::auth::resolve::Commands;
use tau_core::entropy::Entropy;
use tau_core::harness::DeskBoot;
use tau_core::hub::Boot;
use tau_core::json::Writer;
use tau_core::message::Text;
use tau_core::model::Model;
use tau_core::now::Wall;
use tau_core::op::ImageLimits;
use tau_core::prompt::files::{Where, gather};
use tau_core::prompt::system::{Facts, ToolFacts, sections};
use tau_core::provider::{CacheRetention, RequestOptions};
use tau_core::session::Session;
use tau_core::settings::{DEFAULT_TOOLS, Settings};
use tau_core::tools::selection::{ToolFlags, active_tools};
use tau_core::tools::shell_env::{SessionFacts, session_variables};
use tau_core::tools::{BUILTIN_NAMES, BuiltinOptions, Tool, ToolEnv, builtins};
use tau_io_std::sys::{clock, env, random};

use crate::args::Args;
use crate::choose::{Chosen, choose};
use crate::config::{self, Access};
use crate::credentials::Credentials;
use crate::prompt_files::Disk;
use crate::prompts::{self, Prompt};
use crate::sessions::{Opened, Place};
use crate::surroundings::{Listing, Surroundings};
use crate::{file_args, trust};

/// Everything a run needs.
pub struct Ready {
    /// For the hub.
    pub boot: Boot,
    /// For requests.
    pub credentials: Credentials,
    /// Prompts in order.
    pub prompts: VecDeque<Prompt>,
    /// The header record of the session.
    pub header: String,
    /// `--name`
    pub name: Option<String>,
    /// What people should know.
    pub warnings: Vec<String>,
}

/// Settings and what they depend on.
pub struct Base {
    /// Where the run takes place.
    pub place: Surroundings,
    /// Merged settings.
    pub settings: Settings,
    /// What is in the agent directory.
    pub agent: Listing,
    /// Whether the files of the project count.
    pub trusted: bool,
    /// What people should know.
    pub warnings: Vec<String>,
}

impl Base {
    /// Reads settings for the working directory of `place`.
    ///
    /// # Errors
    /// When the store of trust decisions cannot be understood.
    pub fn read(place: Surroundings, args: &Args) -> Result<Self, String> {
        let agent = Listing::of(&place.agent_dir);
        let project = Listing::of(&format!("{}/.pi", place.cwd));
        let (global, _) = config::settings(&place, &agent, None);
        let needed = trust::needs_decision(&place, &project);
        let trusted = trust::decide(&place, args.approve, global.default_project_trust(), needed, &agent)?;
        let (settings, warnings) = config::settings(&place, &agent, Some(&project).filter(|_| trusted));
        Ok(Self { place, settings, agent, trusted, warnings })
    }
}
