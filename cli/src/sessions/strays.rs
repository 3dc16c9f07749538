//! Session files that very old versions left in the agent directory itself find their way home (spec 60 §1.1).

use std::fs;
use std::path::Path;

use tau_core::path::session_folder;

use super::find::header;
use crate::surroundings::{Listing, Surroundings};

/// Moves them to the folders of their working directories. What cannot be moved stays.
pub fn rehome(place: &Surroundings, agent: &Listing) {
    let Listing::Names(names) = agent else { return };
    for name in names.iter().filter(|name| name.ends_with(".jsonl")) {
        let path = place.agent_file(name);
        let Some(cwd) = header(&path).and_then(|header| header.cwd) else { continue };
        let folder = format!("{}/sessions/{}", place.agent_dir, session_folder(&cwd));
        let target = format!("{folder}/{name}");
        if !Path::new(&target).exists() && tau_io_std::sys::fs::private_dir(&folder).is_ok() {
            let _ = fs::rename(&path, &target);
        }
    }
}
