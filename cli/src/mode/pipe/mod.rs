//! What modes that are driven over pipes have in common.

pub mod input;
pub mod patience;
pub mod seat;
mod values;
