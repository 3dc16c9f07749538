//! Opens an address in the browser of the person.

use std::process::{Command, Stdio};
use std::thread;

/// Programs that open an address, best first.
const OPENERS: &[&str] =
    if cfg!(target_os = "macos") { &["open"] } else { &["xdg-open", "sensible-browser", "wslview"] };

/// Asks the system to open an address, which must be one of the web. Whether a program for it began.
#[must_use]
pub fn open(address: &str) -> bool {
    if !(address.starts_with("https://") || address.starts_with("http://")) {
        return false;
    }
    OPENERS.iter().any(|opener| {
        let mut command = Command::new(opener);
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return false };
        // Nobody waits for it, but it must not stay behind as a zombie.
        thread::spawn(move || child.wait());
        true
    })
}
