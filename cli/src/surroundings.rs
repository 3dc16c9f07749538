//! Facts about the place where the program was started: read once, then data (decision D26).

use std::collections::BTreeSet;
use std::path::Path;

use tau_core::path::{self, Style};
use tau_io_std::sys::env;

/// Entries of a large folder that are looked at before single names are tried instead.
const MOST_ENTRIES: usize = 2048;

/// Where a run takes place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Working directory, absolute.
    pub cwd: String,
    /// Home folder.
    pub home: Option<String>,
    /// Folder of settings, credentials and sessions.
    pub agent_dir: String,
}

impl Surroundings {
    /// Reads them.
    ///
    /// # Errors
    /// When the working directory is gone, or there is no place for the agent directory.
    pub fn gather() -> Result<Self, String> {
        let cwd = env::cwd()
            .map_err(|e| format!("the working directory cannot be used ({e}); change to one that exists"))?;
        let home = env::home();
        let agent_dir = match env::var("PI_CODING_AGENT_DIR").filter(|dir| !dir.is_empty()) {
            Some(dir) => {
                let home = home.as_deref().unwrap_or("/");
                path::resolve(&dir, &cwd, home, Style::Posix)
                    .map_err(|e| format!("PI_CODING_AGENT_DIR={dir}: {e}"))?
            }
            None => match &home {
                Some(home) => format!("{home}/.pi/agent"),
                None => return Err("there is no home folder; set HOME or PI_CODING_AGENT_DIR".into()),
            },
        };
        Ok(Self { cwd, home, agent_dir })
    }

    /// A path of the user, absolute and normalised.
    ///
    /// # Errors
    /// When it is a URL that names no file here.
    pub fn resolve(&self, given: &str) -> Result<String, String> {
        path::resolve(given, &self.cwd, self.home_or_root(), Style::Posix)
            .map_err(|e| format!("{given}: {e}"))
    }

    /// The spellings a file argument may mean, best first.
    ///
    /// # Errors
    /// When it is a URL that names no file here.
    pub fn candidates(&self, given: &str) -> Result<Vec<String>, String> {
        path::candidates(given, &self.cwd, self.home_or_root(), Style::Posix)
            .map_err(|e| format!("{given}: {e}"))
    }

    /// Home folder, or `/` where there is none.
    #[must_use]
    pub fn home_or_root(&self) -> &str {
        self.home.as_deref().unwrap_or("/")
    }

    /// A file of the agent directory.
    #[must_use]
    pub fn agent_file(&self, name: &str) -> String {
        format!("{}/{name}", self.agent_dir)
    }
}

/// What a folder holds. One reading instead of one look-up for each name; in a huge folder the names are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// All names.
    Names(BTreeSet<String>),
    /// Too many to list.
    Huge(String),
}

impl Listing {
    /// Lists a folder; one that cannot be read is empty.
    #[must_use]
    pub fn of(folder: &str) -> Self {
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if names.len() == MOST_ENTRIES {
                return Self::Huge(folder.to_owned());
            }
            if let Ok(name) = entry.file_name().into_string() {
                names.insert(name);
            }
        }
        Self::Names(names)
    }

    /// Whether something of this name is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::Names(names) => names.contains(name),
            Self::Huge(folder) => Path::new(folder).join(name).symlink_metadata().is_ok(),
        }
    }
}
