//! How each vector file is run. One folder per area, one file per topic.

pub mod config;
pub mod eco;
pub mod product;
pub mod providers;
pub mod runtime;
pub mod sessions;
pub mod tools;
