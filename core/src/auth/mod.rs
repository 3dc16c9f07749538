//! **Vault**: where credentials come from (spec 40 §1).
//!
//! Pure: texts of files, variables and outputs of commands in, an [`op::Credential`](crate::op::Credential) or a
//! message out. Secrets are never part of a message or of `Debug` output.

pub mod cloud;
pub mod env;
pub mod file;
pub mod oauth;
pub mod resolve;
pub mod sha256;
pub mod sigv4;
pub mod value;
