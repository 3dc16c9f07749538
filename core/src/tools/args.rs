//! Reading validated arguments. Missing or odd values read as absent; validation already named them.

use crate::json::Value;

/// A text argument.
pub(super) fn text<'a>(args: &'a Value, name: &str) -> Option<&'a str> {
    args.get(name)?.as_str()
}

/// A flag; absent = off.
pub(super) fn flag(args: &Value, name: &str) -> bool {
    args.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// A number argument.
pub(super) fn number(args: &Value, name: &str) -> Option<f64> {
    args.get(name)?.as_f64()
}

/// A limit on a count: the default when absent, else rounded down, at least 1 (spec 50 §6).
pub(super) fn limit(args: &Value, default: u64) -> u64 {
    number(args, "limit").map_or(default, |n| whole(n).max(1))
}

/// Rounds down; negative numbers are 0, huge ones saturate.
pub(super) const fn whole(n: f64) -> u64 {
    // A cast from float to integer saturates and drops the fraction; NaN becomes 0.
    n as u64
}
