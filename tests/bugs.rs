//! Public failure cases, one folder each in `bugs/`: input files and `expected.json`.
//!
//! What a folder holds decides how it is run, see [`seams`]. `TAU_BUGS=DIR` runs another folder of the same format.

#![allow(unreachable_pub)]

mod seams;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

#[test]
fn cases_behave_as_expected() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("bugs");
    let foreign = std::env::var_os("TAU_BUGS").map(PathBuf::from);
    let root = foreign.as_ref().unwrap_or(&own);
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root).expect("the folder of cases").flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let (mut passed, mut failed, mut skipped) = (0, 0, Vec::new());
    for folder in folders {
        let Ok(text) = fs::read_to_string(folder.join("expected.json")) else { continue };
        let case: Value = serde_json::from_str(&text).expect("expected.json");
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match seams::check(&folder, &case) {
            Ok(0) => skipped.push(name),
            Ok(_) => passed += 1,
            Err(why) => {
                failed += 1;
                println!("FAIL {name}: {why}");
            }
        }
    }
    println!("{passed} passed, {failed} failed; no pure seam in: {}", skipped.join(", "));
    assert_eq!(failed, 0, "bug cases failed");
    assert!(passed > 0, "no case was run");
}
