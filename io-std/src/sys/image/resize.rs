//! Decoding, orientation, resizing and encoding.

use base64::Engine;
use tau_core::op::{ImageData, ImageLimits};

use super::picture::Picture;
use super::{BASE64, base64_len, unchanged};

/// JPEG qualities tried after the first one.
const QUALITIES: [u8; 4] = [85, 70, 55, 40];

pub(super) fn fit(bytes: Vec<u8>, mime: &'static str, limits: &ImageLimits) -> Result<ImageData, String> {
    // A model takes PNG, JPEG, GIF and WebP. What is already one of them and may stay is not touched.
    let convert = mime == "image/bmp";
    if !limits.resize && !convert {
        return Ok(unchanged(&bytes, mime));
    }
    let (mut image, orientation) = Picture::decode(&bytes)?;
    let (width, height) = image.size();
    let small = width <= limits.max_width && height <= limits.max_height;
    if convert {
        let png = image.png()?;
        if !limits.resize || (small && base64_len(png.len()) < limits.max_bytes) {
            return Ok(ImageData { converted_from: Some(mime.to_owned()), ..unchanged(&png, "image/png") });
        }
    } else if small && base64_len(bytes.len()) < limits.max_bytes {
        return Ok(unchanged(&bytes, mime));
    }
    drop(bytes);
    image.turn(orientation);
    let mut fitted = shrink(&image, limits)?;
    fitted.converted_from = convert.then(|| mime.to_owned());
    Ok(fitted)
}

/// Tries sizes from the largest that fits downwards, and at each size the encodings from the best.
fn shrink(image: &Picture, limits: &ImageLimits) -> Result<ImageData, String> {
    let original = image.size();
    let (mut width, mut height) = target(original, limits);
    loop {
        let resized;
        let shown = if (width, height) == original {
            image
        } else {
            resized = image.resized(width, height);
            &resized
        };
        if let Some((bytes, mime)) = encode(shown, limits)? {
            return Ok(ImageData {
                data: BASE64.encode(bytes).into(),
                mime_type: mime.to_owned(),
                converted_from: None,
                original: Some(original),
                shown: Some((width, height)),
            });
        }
        if (width, height) == (1, 1) {
            return Err("it cannot be made small enough".to_owned());
        }
        (width, height) = (less(width), less(height));
    }
}

fn less(side: u32) -> u32 {
    (u64::from(side) * 3 / 4).max(1) as u32
}

/// Width first, then height, the ratio kept, halves rounded up, no side below 1.
fn target((width, height): (u32, u32), limits: &ImageLimits) -> (u32, u32) {
    let scaled = |side: u32, to: u32, from: u32| {
        let (side, to, from) = (u64::from(side), u64::from(to), u64::from(from.max(1)));
        u32::try_from((side * to * 2 + from) / (from * 2)).unwrap_or(u32::MAX).max(1)
    };
    let (mut w, mut h) = (width.max(1), height.max(1));
    if w > limits.max_width {
        (w, h) = (limits.max_width.max(1), scaled(h, limits.max_width, w));
    }
    if h > limits.max_height {
        (w, h) = (scaled(w, limits.max_height, h), limits.max_height.max(1));
    }
    (w, h)
}

/// The smaller of PNG and JPEG, then the other, then JPEG of lower quality; the first that is small enough.
fn encode(image: &Picture, limits: &ImageLimits) -> Result<Option<(Vec<u8>, &'static str)>, String> {
    let fits = |bytes: &[u8]| base64_len(bytes.len()) < limits.max_bytes;
    let png = image.png()?;
    let jpeg = image.jpeg(limits.jpeg_quality)?;
    let mut candidates = [(png, "image/png"), (jpeg, "image/jpeg")];
    tau_core::order::sort(&mut candidates, |a, b| a.0.len().cmp(&b.0.len()));
    if let Some(found) = candidates.into_iter().find(|(bytes, _)| fits(bytes)) {
        return Ok(Some(found));
    }
    for quality in QUALITIES {
        let bytes = image.jpeg(quality)?;
        if fits(&bytes) {
            return Ok(Some((bytes, "image/jpeg")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_keep_the_ratio() {
        let limits = ImageLimits::default();
        for (from, to) in [
            ((2001, 10), (2000, 10)),
            ((4000, 1000), (2000, 500)),
            ((3000, 2500), (2000, 1667)),
            ((2500, 3000), (1667, 2000)),
            ((4001, 1), (2000, 1)),
            ((2333, 777), (2000, 666)),
        ] {
            assert_eq!(target(from, &limits), to);
        }
        let small = ImageLimits { max_width: 200, max_height: 200, ..limits };
        assert_eq!(target((801, 603), &small), (200, 151));
    }
}
