//! Images: type by content, target size, and the note that maps coordinates (spec 50 §2 steps 2 and 5).

use alloc::format;
use alloc::string::String;

/// The image type of a file by its first bytes, never by its name. `None` = not an image that models take.
#[must_use]
pub fn detect(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(&[0xff, 0xd8, 0xff]) && head.get(3) != Some(&0xf7) {
        return Some("image/jpeg");
    }
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        return still_png(head).then_some("image/png");
    }
    if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        return Some("image/gif");
    }
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    (head.starts_with(b"BM") && sound_bmp(head)).then_some("image/bmp")
}

fn be32(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn le32(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn le16(head: &[u8], at: usize) -> Option<u16> {
    head.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

/// A PNG whose first chunk is a header and that has no animation chunk before its picture data.
fn still_png(head: &[u8]) -> bool {
    if be32(head, 8) != Some(13) || head.get(12..16) != Some(b"IHDR") {
        return false;
    }
    let mut at = 8;
    while let (Some(length), Some(name)) = (be32(head, at), head.get(at + 4..at + 8)) {
        match name {
            b"acTL" => return false,
            b"IDAT" => return true,
            _ => {}
        }
        // Length, name and checksum are four bytes each.
        let Some(next) = usize::try_from(length).ok().and_then(|n| (at + 12).checked_add(n)) else { break };
        at = next;
    }
    true
}

/// A BMP whose header fields make sense; two letters alone also start many texts.
fn sound_bmp(head: &[u8]) -> bool {
    let fields = || -> Option<bool> {
        let (size, offset, header) = (le32(head, 2)?, le32(head, 10)?, le32(head, 14)?);
        let (planes, bits) = match header {
            12 => (le16(head, 22)?, le16(head, 24)?),
            40..=124 => (le16(head, 26)?, le16(head, 28)?),
            _ => return Some(false),
        };
        let sized = size == 0 || (size >= 26 && offset < size);
        let placed = offset >= 14 + header;
        Some(sized && placed && planes == 1 && matches!(bits, 1 | 4 | 8 | 16 | 24 | 32))
    };
    fields().unwrap_or(false)
}

/// Width and height that fit the limits: width is clamped first, then height, the ratio kept, sides rounded half
/// up and at least 1.
#[must_use]
pub fn target_size(width: u32, height: u32, max_width: u32, max_height: u32) -> (u32, u32) {
    let (mut w, mut h) = (width, height);
    if w > max_width {
        h = scaled(h, max_width, w);
        w = max_width;
    }
    if h > max_height {
        w = scaled(w, max_height, h);
        h = max_height;
    }
    (w.max(1), h.max(1))
}

/// `side × to ÷ from`, rounded half up.
fn scaled(side: u32, to: u32, from: u32) -> u32 {
    let (side, to, from) = (u64::from(side), u64::from(to), u64::from(from).max(1));
    u32::try_from((side * to * 2 + from) / (from * 2)).unwrap_or(u32::MAX)
}

/// The next size to try when no encoding is small enough: both sides × 0.75, rounded down. `None` below 1×1.
#[must_use]
pub fn smaller_size(width: u32, height: u32) -> Option<(u32, u32)> {
    let shrink = |side: u32| u32::try_from(u64::from(side) * 3 / 4).unwrap_or(side).max(1);
    ((width, height) != (1, 1)).then(|| (shrink(width), shrink(height)))
}

/// How coordinates in the shown image map to the original one.
#[must_use]
pub fn coordinate_hint(original: (u32, u32), shown: (u32, u32)) -> String {
    let (from, to) = (f64::from(original.0), f64::from(shown.0.max(1)));
    format!(
        "[Original size {}x{}, shown as {}x{}. Multiply coordinates by {:.2} to find them in the original.]",
        original.0,
        original.1,
        shown.0,
        shown.1,
        from / to
    )
}
