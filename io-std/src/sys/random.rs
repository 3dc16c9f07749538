//! Randomness of the operating system.

use tau_core::fault::{FaultKind, IoFault};

/// Fills a buffer with cryptographic random bytes.
///
/// # Errors
/// `Other` when the operating system has none to give.
pub fn fill(buffer: &mut [u8]) -> Result<(), IoFault> {
    // One system call; where it is missing (and where the statically linked C library hides it from `getrandom`, which
    // then reads two devices), the devices.
    #[cfg(target_os = "linux")]
    if rustix::rand::getrandom(&mut *buffer, rustix::rand::GetRandomFlags::empty()) == Ok(buffer.len()) {
        return Ok(());
    }
    getrandom::fill(buffer)
        .map_err(|e| IoFault::new(FaultKind::Other, format!("no randomness from the system: {e}")))
}

/// The seed of a machine.
///
/// # Errors
/// As [`fill`].
pub fn seed() -> Result<[u8; 32], IoFault> {
    let mut seed = [0; 32];
    fill(&mut seed)?;
    Ok(seed)
}

/// A name nobody else has: 16 hexadecimal digits.
///
/// # Errors
/// As [`fill`].
pub fn hex16() -> Result<String, IoFault> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
