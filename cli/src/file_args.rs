//! `@file` arguments: texts framed with their path, images attached (spec 60 §2.2, spec 50 §10.3).

use tau_core::fault::FaultKind;
use tau_core::message::Block;
use tau_core::op::ImageLimits;
use tau_core::tools::image_rules;
use tau_io_std::sys::{fs, image};

use crate::prompts::FileInput;
use crate::surroundings::Surroundings;

/// A file named on the command line may be this large.
const LIMIT: u64 = 256 << 20;

/// Reads the files in order.
///
/// # Errors
/// The first file that is missing, no regular file, or not readable.
pub fn read(names: &[String], place: &Surroundings, limits: &ImageLimits) -> Result<FileInput, String> {
    let mut input = FileInput::default();
    for name in names {
        let (path, bytes) = open(name, place)?;
        if bytes.is_empty() {
            continue;
        }
        match image_rules::detect(&bytes) {
            Some(_) => add_image(&mut input, &path, bytes, limits),
            None => add_text(&mut input, &path, &String::from_utf8_lossy(&bytes)),
        }
    }
    Ok(input)
}

/// Opens the first spelling of a name that exists (spec 50 §1.3).
fn open(name: &str, place: &Surroundings) -> Result<(String, Vec<u8>), String> {
    let paths = place.candidates(name)?;
    for path in &paths {
        match fs::read(path, LIMIT) {
            Ok(bytes) => return Ok((path.clone(), bytes)),
            Err(fault) if matches!(fault.kind, FaultKind::NotFound | FaultKind::NotDir) => {}
            Err(fault) => return Err(format!("@{name}: {fault}")),
        }
    }
    Err(format!("@{name}: there is no file {}", paths.first().map_or(name, String::as_str)))
}

fn add_text(input: &mut FileInput, path: &str, text: &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for piece in ["<file name=\"", path, "\">\n", text, "\n</file>\n"] {
        input.text.push_str(piece);
    }
}

/// An image that cannot be shown leaves a note in its place.
fn add_image(input: &mut FileInput, path: &str, bytes: Vec<u8>, limits: &ImageLimits) {
    let note = match image::fit_bytes(bytes, limits) {
        Ok(fitted) => {
            let hint = match (fitted.original, fitted.shown) {
                (Some(original), Some(shown)) => image_rules::coordinate_hint(original, shown),
                _ => String::new(),
            };
            input.images.push(Block::image(fitted.data, fitted.mime_type));
            hint
        }
        Err(why) => format!("[image left out: {why}]"),
    };
    for piece in ["<file name=\"", path, "\">", &note, "</file>\n"] {
        input.text.push_str(piece);
    }
}
