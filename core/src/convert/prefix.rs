//! How much of a list is the same as last time.

use alloc::sync::Arc;

use crate::message::Message;

/// Number of leading messages that are the very same. A history mostly grows at its end, so this walk over addresses
/// is all that an unchanged part costs per request: no message is touched.
pub(crate) fn common(before: &[Arc<Message>], now: &[Arc<Message>]) -> usize {
    before.iter().zip(now).take_while(|(a, b)| Arc::ptr_eq(a, b)).count()
}
