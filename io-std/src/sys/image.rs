//! Images: decoded, turned upright and resized to fit the limits (spec 50 §2, step 5).
//!
//! Without the feature `images` nothing is decoded: an image within the limits passes as it is, others are refused
//! with the reason.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use tau_core::message::Text;
use tau_core::op::{ImageData, ImageLimits};

#[cfg(feature = "images")]
#[path = "image/picture.rs"]
mod picture;
#[cfg(feature = "images")]
#[path = "image/resize.rs"]
mod resize;

/// Largest image file that is looked at.
pub const MOST_BYTES: u64 = 256 << 20;

/// An image file made fit.
///
/// # Errors
/// Why there is no image: not decodable, or not to be made small enough.
pub fn fit_bytes(bytes: Vec<u8>, limits: &ImageLimits) -> Result<ImageData, String> {
    let Some(mime) = sniff(&bytes) else { return Err("not an image of a known type".to_owned()) };
    fit(bytes, mime, limits)
}

/// An inline image made fit; its type is taken from its content, the declared one only if that tells nothing.
///
/// # Errors
/// As [`fit_bytes`].
pub fn fit_base64(data: &Text, declared: &str, limits: &ImageLimits) -> Result<ImageData, String> {
    let clean: Vec<u8> = data.as_str().bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = BASE64.decode(&clean).map_err(|_| "its data is not valid base64".to_owned())?;
    match sniff(&bytes) {
        Some(mime) => fit(bytes, mime, limits),
        None => Err(format!("not an image of a known type (declared as {declared})")),
    }
}

fn fit(bytes: Vec<u8>, mime: &'static str, limits: &ImageLimits) -> Result<ImageData, String> {
    #[cfg(feature = "images")]
    return resize::fit(bytes, mime, limits);
    #[cfg(not(feature = "images"))]
    return pass(bytes, mime, limits);
}

/// Type by the first bytes.
fn sniff(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'B', b'M', ..] => "image/bmp",
        _ => return None,
    })
}

/// The bytes as they are.
fn unchanged(bytes: &[u8], mime: &str) -> ImageData {
    ImageData {
        data: BASE64.encode(bytes).into(),
        mime_type: mime.to_owned(),
        converted_from: None,
        original: None,
        shown: None,
    }
}

/// Length of the base64 form.
const fn base64_len(bytes: usize) -> u64 {
    bytes.div_ceil(3) as u64 * 4
}

#[cfg(not(feature = "images"))]
fn pass(bytes: Vec<u8>, mime: &'static str, limits: &ImageLimits) -> Result<ImageData, String> {
    let hint = "this build cannot change images";
    if mime == "image/bmp" {
        return Err(format!("bitmaps would have to be converted, and {hint}"));
    }
    if limits.resize {
        let (width, height) = size(&bytes, mime).ok_or("its size cannot be read")?;
        if width > limits.max_width
            || height > limits.max_height
            || base64_len(bytes.len()) >= limits.max_bytes
        {
            return Err(format!("{width}x{height} pixels, {} bytes are too large, and {hint}", bytes.len()));
        }
    }
    Ok(unchanged(&bytes, mime))
}

/// Width and height from the head of a file.
#[cfg(not(feature = "images"))]
fn size(bytes: &[u8], mime: &str) -> Option<(u32, u32)> {
    let at = |from: usize, len: usize| bytes.get(from..from + len);
    let be = |b: &[u8]| b.iter().fold(0u32, |n, c| n << 8 | u32::from(*c));
    let le = |b: &[u8]| b.iter().rev().fold(0u32, |n, c| n << 8 | u32::from(*c));
    match mime {
        "image/png" => Some((be(at(16, 4)?), be(at(20, 4)?))),
        "image/gif" => Some((le(at(6, 2)?), le(at(8, 2)?))),
        "image/webp" => match at(12, 4)? {
            b"VP8X" => Some((le(at(24, 3)?) + 1, le(at(27, 3)?) + 1)),
            b"VP8 " => Some((le(at(26, 2)?) & 0x3fff, le(at(28, 2)?) & 0x3fff)),
            b"VP8L" => {
                let bits = le(at(21, 4)?);
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            _ => None,
        },
        "image/jpeg" => {
            let mut from = 2;
            loop {
                let marker = *bytes.get(from + 1)?;
                let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
                if is_frame {
                    return Some((be(at(from + 7, 2)?), be(at(from + 5, 2)?)));
                }
                from += 2 + be(at(from + 2, 2)?) as usize;
            }
        }
        _ => None,
    }
}
