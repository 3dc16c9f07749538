//! Errors of the operating system as faults.

use std::fmt::Display;
use std::io::{Error, ErrorKind};

use tau_core::fault::{FaultKind, IoFault};

/// The fault for an error that happened to `what` (a path, a program, a host).
#[must_use]
pub fn of(error: &Error, what: impl Display) -> IoFault {
    IoFault::new(kind(error), format!("{what}: {}", text(error)))
}

/// For `map_err`: the fault for an error that happened to `what`.
pub fn at<D: Display>(what: D) -> impl FnOnce(Error) -> IoFault {
    move |error| of(&error, what)
}

/// The kind of fault for an error of the operating system.
#[must_use]
pub fn kind(error: &Error) -> FaultKind {
    match error.kind() {
        ErrorKind::NotFound => FaultKind::NotFound,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => FaultKind::Denied,
        ErrorKind::NotADirectory => FaultKind::NotDir,
        ErrorKind::IsADirectory => FaultKind::IsDir,
        ErrorKind::AlreadyExists => FaultKind::Exists,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FaultKind::NoSpace,
        ErrorKind::FileTooLarge => FaultKind::TooBig,
        ErrorKind::InvalidInput | ErrorKind::InvalidFilename => FaultKind::Invalid,
        ErrorKind::TimedOut => FaultKind::TimedOut,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => FaultKind::Reset,
        _ => FaultKind::Other,
    }
}

/// What happened, in words, without the number of the error.
#[must_use]
pub fn text(error: &Error) -> String {
    let known = match error.kind() {
        ErrorKind::NotFound => "no such file or folder",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::NotADirectory => "not a folder",
        ErrorKind::IsADirectory => "is a folder",
        ErrorKind::AlreadyExists => "already exists",
        ErrorKind::StorageFull => "no space left on the device",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    let full = error.to_string();
    let mut words = full.split(" (os error").next().unwrap_or_default().to_owned();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_thing_and_no_number() {
        let fault = of(&Error::from_raw_os_error(2), "/x/y");
        assert_eq!(
            (fault.kind, fault.detail.as_str()),
            (FaultKind::NotFound, "/x/y: no such file or folder")
        );
        let fault = of(&Error::from_raw_os_error(40), "/loop");
        assert!(!fault.detail.contains("os error"), "{fault}");
    }
}
