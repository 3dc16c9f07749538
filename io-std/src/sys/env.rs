//! The process environment, read once where a session begins; sessions themselves carry it as data.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A variable, when it is set and UTF-8.
#[must_use]
pub fn var(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// The home folder: `HOME`, else that of the user data base.
#[must_use]
pub fn home() -> Option<String> {
    env::home_dir().filter(|p| p.is_absolute()).map(|p| p.to_string_lossy().into_owned())
}

/// The working directory of this process.
///
/// # Errors
/// When it was removed or cannot be read.
pub fn cwd() -> std::io::Result<String> {
    env::current_dir().map(|p| p.to_string_lossy().into_owned())
}

/// The folder for temporary files.
#[must_use]
pub fn temp_dir() -> String {
    env::temp_dir().to_string_lossy().into_owned()
}

/// A program on `PATH`.
#[must_use]
pub fn which(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_absolute() && is_program(p))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The shell for commands and the arguments before the command (spec 50 §5.1): the configured one, which must
/// exist, else `/bin/bash`, `bash` on `PATH`, `sh`.
///
/// # Errors
/// What is wrong with the configured shell.
pub fn shell(configured: Option<&str>) -> Result<Vec<String>, String> {
    let program = match configured.filter(|path| !path.is_empty()) {
        Some(path) => {
            let full = match (path.strip_prefix('~'), home()) {
                (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home + rest,
                _ => path.to_owned(),
            };
            if !Path::new(&full).exists() {
                return Err(format!(
                    "the configured shell {full} does not exist; correct `shellPath` in settings.json"
                ));
            }
            full
        }
        None if is_program(Path::new("/bin/bash")) => "/bin/bash".to_owned(),
        None => which("bash").map_or_else(|| "sh".to_owned(), |p| p.to_string_lossy().into_owned()),
    };
    Ok(vec![program, "-c".to_owned()])
}
