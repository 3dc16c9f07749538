//! Which session a run belongs to (spec 60 §1.1, §1.12; spec 40 §6 step 9), and reading it.

mod find;
mod load;

pub use find::Folder;
pub use load::load;

use tau_core::entropy::Entropy;
use tau_core::ids::{UuidV7, is_valid_session_id};
use tau_core::now::Wall;
use tau_core::session::{Header, Session, file_name};
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
    #[must_use]
    pub fn folder(&self, args: &Args) -> Folder {
        let given = args.session_dir.clone();
        let given = given.or_else(|| env::var("PI_CODING_AGENT_SESSION_DIR").filter(|dir| !dir.is_empty()));
        let given = given.or_else(|| self.setting.filter(|dir| !dir.is_empty()).map(str::to_owned));
        match given {
            Some(dir) => Folder { path: self.surroundings.resolve(&dir), is_default: false },
            None => {
                let name = folder_name(&self.surroundings.cwd);
                Folder { path: format!("{}/sessions/{name}", self.surroundings.agent_dir), is_default: true }
            }
        }
    }

    /// Opens, continues or begins the session the flags ask for.
    ///
    /// # Errors
    /// What cannot be done, and what to do instead.
    pub fn open(&self, args: &Args, rng: &mut Entropy) -> Result<Opened, String> {
        check_flags(args)?;
        let folder = self.folder(args);
        if args.no_session {
            return Ok(self.begin(None, args.session_id.clone(), rng));
        }
        let cwd = &self.surroundings.cwd;
        if let Some(wanted) = &args.session {
            let path = self.named(wanted, &folder)?;
            return self.read(&path, rng);
        }
        if let Some(id) = &args.session_id {
            return match folder.exact(id, cwd) {
                Some(path) => self.read(&path, rng),
                None => {
                    let mut opened = self.begin(Some(&folder), Some(id.clone()), rng);
                    opened.note = Some(format!("no session {id} here yet: beginning it"));
                    Ok(opened)
                }
            };
        }
        if args.continue_last
            && let Some(path) = folder.newest(cwd)
        {
            return self.read(&path, rng);
        }
        Ok(self.begin(Some(&folder), None, rng))
    }

    fn begin(&self, folder: Option<&Folder>, id: Option<String>, rng: &mut Entropy) -> Opened {
        let id = id.unwrap_or_else(|| UuidV7::default().next(self.now, rng));
        let header = Header::new(id, self.now, self.surroundings.cwd.clone(), None);
        let path = folder.map(|folder| format!("{}/{}", folder.path, file_name(&header)));
        Opened { session: Session::new(header, path), resumed: false, note: None }
    }

    fn read(&self, path: &str, rng: &mut Entropy) -> Result<Opened, String> {
        let begin = |rng: &mut Entropy| {
            let id = UuidV7::default().next(self.now, rng);
            Header::new(id, self.now, self.surroundings.cwd.clone(), None)
        };
        let session = load(path, &self.surroundings.cwd, begin, rng)?;
        Ok(Opened { session, resumed: true, note: None })
    }

    /// `--session`: a path, else an id or the beginning of one.
    fn named(&self, wanted: &str, folder: &Folder) -> Result<String, String> {
        if wanted.contains(['/', '\\']) || wanted.ends_with(".jsonl") {
            return Ok(self.surroundings.resolve(wanted));
        }
        let cwd = &self.surroundings.cwd;
        if let Some(path) = folder.exact(wanted, cwd).or_else(|| folder.by_prefix(wanted, cwd)) {
            return Ok(path);
        }
        let all = format!("{}/sessions", self.surroundings.agent_dir);
        Err(match find::elsewhere(&all, wanted) {
            Some((path, home)) => format!(
                "session {wanted} belongs to {home}; start there, or open its file with --session {path}"
            ),
            None => format!(
                "no session {wanted} was found; `--session` takes a file, an id or the beginning of an id"
            ),
        })
    }
}

fn check_flags(args: &Args) -> Result<(), String> {
    let others = [
        ("--session", args.session.is_some()),
        ("--continue", args.continue_last),
        ("--resume", args.resume),
    ];
    if let Some(id) = &args.session_id {
        if let Some((other, _)) = others.iter().find(|(_, given)| *given) {
            return Err(format!("--session-id and {other} exclude each other"));
        }
        if !is_valid_session_id(id) {
            return Err(format!(
                "--session-id {id}: an id has letters, digits, '.', '_' and '-', and begins and ends with a letter or digit"
            ));
        }
    }
    Ok(())
}

/// The session folder of a working directory.
fn folder_name(cwd: &str) -> String {
    let inner = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    format!("--{}--", inner.replace(['/', '\\', ':'], "-"))
}
