//! A terminal for programs under test.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

/// Both ends of a terminal. What is written is typed by its user.
pub struct Pty {
    user: File,
    program: File,
}

impl Pty {
    /// A new terminal.
    ///
    /// # Panics
    /// When the system has none to give.
    #[must_use]
    #[allow(unsafe_code)]
    pub fn open() -> Self {
        let mut name = [0_u8; 128];
        // SAFETY: plain calls; the descriptor is fresh and owned by nobody else, the buffer is as long as said.
        let user = unsafe {
            let user = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
            assert!(user >= 0, "no terminal: {}", std::io::Error::last_os_error());
            let ready = libc::grantpt(user) == 0
                && libc::unlockpt(user) == 0
                && libc::ptsname_r(user, name.as_mut_ptr().cast(), name.len()) == 0;
            assert!(ready, "no terminal: {}", std::io::Error::last_os_error());
            File::from_raw_fd(user)
        };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = std::str::from_utf8(name).unwrap_or_else(|e| panic!("{e}"));
        let program = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name);
        Self { user, program: program.unwrap_or_else(|e| panic!("{name}: {e}")) }
    }

    /// The program's end as standard input.
    ///
    /// # Panics
    /// When there are no descriptors left.
    #[must_use]
    pub fn stdin(&self) -> Stdio {
        self.program.try_clone().unwrap_or_else(|e| panic!("terminal: {e}")).into()
    }

    /// Types.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn write(&self, text: &str) {
        (&self.user).write_all(text.as_bytes()).unwrap_or_else(|e| panic!("terminal: {e}"));
    }
}
