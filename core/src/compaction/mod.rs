//! (room compaction)
