//! x
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use super::Value;
/// x
#[derive(Debug)]
pub struct SchemaError;
/// x
pub fn validate(_s: &Value, a: &Arc<Value>) -> Result<Arc<Value>, Vec<SchemaError>> { Ok(a.clone()) }
/// x
pub fn error_text(_t: &str, _e: &[SchemaError], _a: &Value) -> String { String::new() }
