//! JSON as this project needs it: ordered values, a writer with ECMAScript numbers, tolerant parsers for
//! streamed tool arguments, and JSON Schema validation with coercion.
//!
//! Dynamic values are `serde_json`'s (objects keep insertion order). Everything that leaves the core is written
//! by [`Writer`], so that numbers look as JavaScript would write them.

mod coerce;
mod format;
mod members;
mod number;
mod parse;
mod partial;
mod pattern;
mod pretty;
mod repair;
mod scan;
mod schema;
mod tolerant;
mod writer;

pub use members::members;
pub use number::{write_f64, write_number};
pub use parse::{JsonError, parse};
pub use partial::{ArgsError, PartialArgs, finish_text};
pub use pretty::to_pretty;
pub(crate) use pretty::{write_key, write_pretty};
pub use repair::repair;
pub use scan::MAX_DEPTH;
pub use schema::{SchemaError, error_text, validate};
pub use serde_json::{Map, Number, Value};
pub use writer::Writer;

use alloc::string::String;

/// Compact JSON text of a value, byte for byte what `JSON.stringify` would give for it.
#[must_use]
pub fn to_string(value: &Value) -> String {
    let mut w = Writer::new();
    w.value(value);
    w.into_string()
}
