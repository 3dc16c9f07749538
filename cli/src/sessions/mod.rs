//! Which session a run belongs to (spec 60 §1.1, §1.12; spec 40 §6 step 9), and reading it.

pub mod command;
mod find;
mod fork;
pub mod index;
mod list;
mod pick;
pub mod rows;
pub mod search;
mod strays;

pub use find::{Folder, is_same_directory};
pub use list::Found;
pub use strays::rehome;
use tau_io_std::sys::claim::claim;
pub use tau_io_std::sys::session::load;

use tau_core::entropy::Entropy;
use tau_core::ids::{UuidV7, is_valid_session_id};
use tau_core::now::Wall;
use tau_core::path::session_folder;
use tau_core::session::{Header, Session, Want, file_name};
use tau_io_std::sys::env;

use crate::args::Args;
use crate::surroundings::Surroundings;

/// Where sessions are looked for and stored, and what a new one needs.
pub struct Place<'a> {
    /// Where the program was started.
    pub surroundings: &'a Surroundings,
    /// The setting `sessionDir`.
    pub setting: Option<&'a str>,
    /// Wall-clock time.
    pub now: Wall,
}

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Something cannot be done.
    Failed(String),
    /// A question was answered with no; nothing is wrong.
    Declined(String),
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// Asks a question; the line that was answered, `None` when nobody can answer.
pub type Ask<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Whether a question is answered with yes. Without an answer it is not.
fn agreed(ask: Ask<'_>, question: &str) -> bool {
    ask(&format!("{question} [y/N]")).is_some_and(|line| line.trim().eq_ignore_ascii_case("y"))
}

/// The session of a run.
pub struct Opened {
    /// The session.
    pub session: Session,
    /// Whether it was read from a file.
    pub resumed: bool,
    /// What people should know.
    pub note: Option<String>,
}

impl Place<'_> {
    /// The folder: `--session-dir`, the environment, the setting, else the one of the working directory.
    ///
    /// # Errors
    /// When the place that was given is no path here.
    pub fn folder(&self, args: &Args) -> Result<Folder, String> {
        let given = args.session_dir.clone();
        let given = given.or_else(|| env::var("PI_CODING_AGENT_SESSION_DIR").filter(|dir| !dir.is_empty()));
        let given = given.or_else(|| self.setting.filter(|dir| !dir.is_empty()).map(str::to_owned));
        let path = match given {
            Some(dir) => self.surroundings.resolve(&dir)?,
            None => {
                let name = session_folder(&self.surroundings.cwd);
                format!("{}/sessions/{name}", self.surroundings.agent_dir)
            }
        };
        Ok(Folder { path })
    }

    /// Where index files are. Pi has no such folder.
    fn cache(&self) -> String {
        format!("{}/cache/sessions", self.surroundings.agent_dir)
    }

    /// The sessions of the working directory, newest activity first.
    #[must_use]
    pub fn list(&self, folder: &Folder) -> Vec<Found> {
        let mut found = folder.list(&self.cache());
        found.retain(|found| is_same_directory(&found.info.cwd, &self.surroundings.cwd));
        found
    }

    /// The sessions of all working directories, newest activity first.
    #[must_use]
    pub fn list_all(&self, folder: &Folder) -> Vec<Found> {
        let cache = self.cache();
        let mut found: Vec<Found> = self.everywhere(folder).flat_map(|folder| folder.list(&cache)).collect();
        tau_core::order::sort(&mut found, Found::order);
        found
    }

    /// The session with this id, in the folder or in that of another working directory.
    #[must_use]
    pub fn by_id(&self, folder: &Folder, id: &str) -> Option<String> {
        folder.with_id(id).or_else(|| self.everywhere(folder).find_map(|folder| folder.with_id(id)))
    }

    /// Removes the file of the session with this id; `false` when there is none.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn delete(&self, folder: &Folder, id: &str) -> Result<bool, String> {
        let Some(path) = self.by_id(folder, id) else { return Ok(false) };
        self.remove(&path)?;
        Ok(true)
    }

    /// Removes a file of a session, and what is remembered of it.
    fn remove(&self, path: &str) -> Result<(), String> {
        std::fs::remove_file(path)
            .map_err(|e| tau_io_std::sys::fault::of(&e, format!("{path} was not deleted")).to_string())?;
        if let Some((folder, file)) = path.rsplit_once('/') {
            Folder { path: folder.to_owned() }.forget(&self.cache(), &[file]);
        }
        Ok(())
    }

    /// Where the folders of all working directories are.
    fn all(&self) -> String {
        format!("{}/sessions", self.surroundings.agent_dir)
    }

    /// Every folder that holds sessions of any working directory. A place that was chosen holds them all itself.
    fn everywhere(&self, folder: &Folder) -> Box<dyn Iterator<Item = Folder>> {
        let all = self.all();
        match folder.path.rsplit_once('/') {
            Some((parent, _)) if parent == all => Box::new(find::folders(&all)),
            _ => Box::new(std::iter::once(folder.clone())),
        }
    }

    /// Opens, continues, copies or begins the session the flags ask for.
    ///
    /// # Errors
    /// What cannot be done, and what to do instead.
    pub fn open(&self, args: &Args, ask: Ask<'_>, rng: &mut Entropy) -> Result<Opened, Refusal> {
        check_flags(args)?;
        let folder = self.folder(args)?;
        let cwd = &self.surroundings.cwd;
        if let Some(wanted) = &args.fork {
            let source = match self.find(wanted, &folder)? {
                Match::Here(path) | Match::Elsewhere { path, .. } => path,
                Match::Nowhere => return Err(unknown(wanted, "--fork").into()),
            };
            return Ok(self.copy(&source, &folder, args.session_id.clone(), rng)?);
        }
        if args.no_session {
            return Ok(self.begin(None, args.session_id.clone(), rng));
        }
        if let Some(wanted) = &args.session {
            return match self.find(wanted, &folder)? {
                Match::Here(path) => Ok(self.read(&path, rng)?),
                Match::Elsewhere { path, cwd } => {
                    let question =
                        format!("session {wanted} belongs to {cwd}. Copy it into a new session here?");
                    if !agreed(ask, &question) {
                        let text = format!("nothing was done; --session {path} opens it where it belongs");
                        return Err(Refusal::Declined(text));
                    }
                    Ok(self.copy(&path, &folder, None, rng)?)
                }
                Match::Nowhere => Err(unknown(wanted, "--session").into()),
            };
        }
        if let Some(id) = &args.session_id {
            if let Some(path) = folder.exact(id, cwd) {
                return Ok(self.read(&path, rng)?);
            }
            let mut opened = self.begin(Some(&folder), Some(id.clone()), rng);
            opened.note = Some(format!("no session {id} here yet: beginning it"));
            return Ok(opened);
        }
        if args.resume {
            let path = pick::pick(self, self.list(&folder), ask)?;
            return Ok(self.read(&path, rng)?);
        }
        if args.continue_last
            && let Some(path) = folder.newest(cwd)
        {
            return Ok(self.read(&path, rng)?);
        }
        Ok(self.begin(Some(&folder), None, rng))
    }

    fn copy(
        &self,
        source: &str,
        folder: &Folder,
        id: Option<String>,
        rng: &mut Entropy,
    ) -> Result<Opened, String> {
        if let Some(id) = id.as_ref().filter(|id| folder.exact(id, &self.surroundings.cwd).is_some()) {
            return Err(format!("--session-id {id}: there is such a session already; choose another id"));
        }
        folder.create()?;
        let id = id.unwrap_or_else(|| UuidV7::default().next(self.now, rng));
        let header = Header::new(id, self.now, self.surroundings.cwd.clone(), Some(source.to_owned()));
        let target = format!("{}/{}", folder.path, file_name(&header));
        fork::fork(source, &target, &header, rng)?;
        self.read(&target, rng)
    }

    /// A new session, whatever the flags say about an existing one; `parent` is the file it descends from.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn fresh(&self, args: &Args, parent: Option<String>, rng: &mut Entropy) -> Result<Session, String> {
        let id = UuidV7::default().next(self.now, rng);
        let header = Header::new(id, self.now, self.surroundings.cwd.clone(), parent);
        if args.no_session {
            return Ok(Session::new(header, None));
        }
        let folder = self.folder(args)?;
        folder.create()?;
        let path = format!("{}/{}", folder.path, file_name(&header));
        Ok(Session::new(header, Some(path)))
    }

    /// The session in a file; a new one if nothing is there.
    ///
    /// # Errors
    /// When the path is none, or the file cannot be opened as a session.
    pub fn at_path(&self, path: &str, rng: &mut Entropy) -> Result<Opened, String> {
        self.read(&self.surroundings.resolve(path)?, rng)
    }

    /// The session in a file, with all of its branches.
    ///
    /// # Errors
    /// When the file cannot be opened as a session.
    pub fn whole(&self, path: &str, rng: &mut Entropy) -> Result<Opened, String> {
        self.load(path, Want::Everything, rng)
    }

    fn begin(&self, folder: Option<&Folder>, id: Option<String>, rng: &mut Entropy) -> Opened {
        let id = id.unwrap_or_else(|| UuidV7::default().next(self.now, rng));
        let header = Header::new(id, self.now, self.surroundings.cwd.clone(), None);
        let path = folder.map(|folder| format!("{}/{}", folder.path, file_name(&header)));
        Opened { session: Session::new(header, path), resumed: false, note: None }
    }

    fn read(&self, path: &str, rng: &mut Entropy) -> Result<Opened, String> {
        self.load(path, Want::Context, rng)
    }

    fn load(&self, path: &str, want: Want, rng: &mut Entropy) -> Result<Opened, String> {
        let begin = |rng: &mut Entropy| {
            let id = UuidV7::default().next(self.now, rng);
            Header::new(id, self.now, self.surroundings.cwd.clone(), None)
        };
        let others = claim(path);
        let mut session = load(path, &self.surroundings.cwd, want, begin, rng)?;
        let note = others.then(|| beside(&mut session));
        Ok(Opened { session, resumed: true, note })
    }

    /// A path, else an id or the beginning of one, here first.
    fn find(&self, wanted: &str, folder: &Folder) -> Result<Match, String> {
        if wanted.contains(['/', '\\']) || wanted.ends_with(".jsonl") {
            return Ok(Match::Here(self.surroundings.resolve(wanted)?));
        }
        let cwd = &self.surroundings.cwd;
        if let Some(path) = folder.exact(wanted, cwd).or_else(|| folder.by_prefix(wanted, cwd)) {
            return Ok(Match::Here(path));
        }
        let other = find::elsewhere(self.everywhere(folder), wanted);
        Ok(other.map_or(Match::Nowhere, |(path, cwd)| Match::Elsewhere { path, cwd }))
    }
}

/// Another process is at work in the session, maybe in the middle of a run: that one is not the beginning of ours.
fn beside(session: &mut Session) -> String {
    let run = session.before_unfinished_run().map(|before| before.map(str::to_owned));
    match run.map(|before| session.branch(before.as_deref())) {
        Some(Ok(())) => "another process is at work in this session: its open run is left out, what comes now is a branch beside it",
        _ => "another process has this session open: what both add are branches of it",
    }
    .to_owned()
}

enum Match {
    Here(String),
    Elsewhere { path: String, cwd: String },
    Nowhere,
}

fn unknown(wanted: &str, option: &str) -> String {
    format!("no session {wanted} was found; {option} takes a file, an id or the beginning of an id")
}

fn check_flags(args: &Args) -> Result<(), String> {
    let others = [
        ("--session", args.session.is_some()),
        ("--continue", args.continue_last),
        ("--resume", args.resume),
    ];
    let other = others.iter().find(|(_, given)| *given).map(|(name, _)| *name);
    if args.fork.is_some()
        && let Some(other) = other.or_else(|| args.no_session.then_some("--no-session"))
    {
        return Err(format!("--fork and {other} exclude each other"));
    }
    let Some(id) = &args.session_id else { return Ok(()) };
    if let Some(other) = other {
        return Err(format!("--session-id and {other} exclude each other"));
    }
    if !is_valid_session_id(id) {
        return Err(format!(
            "--session-id {id}: an id has letters, digits, '.', '_' and '-', and begins and ends with a letter or digit"
        ));
    }
    Ok(())
}
