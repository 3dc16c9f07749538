//! One kind of picture: eight bits of red, green, blue and opacity for each pixel. The library knows ten, and brings code
//! for each wherever any may come.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{
    ColorType, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageReader, Limits, RgbImage,
    RgbaImage,
};

/// Memory a decoder may take, so that a small file cannot unfold without end.
const MOST_MEMORY: u64 = 512 << 20;

/// A decoded picture.
#[derive(Debug)]
pub(super) struct Picture {
    pixels: RgbaImage,
    /// What the pixels have in truth; the rest of them is made up.
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    color: bool,
    alpha: bool,
}

impl Picture {
    /// Decodes a file. The picture is as it is stored; which way up it belongs is told beside it.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, Orientation), String> {
        let why = |e: ImageError| format!("it cannot be decoded: {e}");
        let mut reader = ImageReader::new(Cursor::new(bytes))
            .with_guessed_format()
            .map_err(|e| format!("it cannot be read: {e}"))?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MOST_MEMORY);
        reader.limits(limits);
        let mut decoder = reader.into_decoder().map_err(why)?;
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let (width, height) = decoder.dimensions();
        let color = decoder.color_type();
        let total = usize::try_from(decoder.total_bytes().min(MOST_MEMORY + 1)).unwrap_or(usize::MAX);
        if total as u64 > MOST_MEMORY {
            return Err("it is too large to be decoded".to_owned());
        }
        let mut samples = vec![0; total];
        decoder.read_image(&mut samples).map_err(why)?;
        let pixels = rgba(samples, color).ok_or("its kind of color is not known")?;
        let pixels = RgbaImage::from_raw(width, height, pixels).ok_or("it has less pixels than it says")?;
        let kind = Kind { color: color.has_color(), alpha: color.has_alpha() };
        Ok((Self { pixels, kind }, orientation))
    }

    pub(super) fn size(&self) -> (u32, u32) {
        self.pixels.dimensions()
    }

    /// Turns it the right way up.
    pub(super) fn turn(&mut self, orientation: Orientation) {
        match orientation {
            Orientation::Rotate90 | Orientation::Rotate90FlipH => {
                self.pixels = imageops::rotate90(&self.pixels);
            }
            Orientation::Rotate180 => imageops::rotate180_in_place(&mut self.pixels),
            Orientation::Rotate270 | Orientation::Rotate270FlipH => {
                self.pixels = imageops::rotate270(&self.pixels);
            }
            Orientation::NoTransforms | Orientation::FlipHorizontal | Orientation::FlipVertical => {}
        }
        match orientation {
            Orientation::FlipHorizontal | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH => {
                imageops::flip_horizontal_in_place(&mut self.pixels);
            }
            Orientation::FlipVertical => imageops::flip_vertical_in_place(&mut self.pixels),
            _ => {}
        }
    }

    pub(super) fn resized(&self, width: u32, height: u32) -> Self {
        let pixels = imageops::resize(&self.pixels, width, height, FilterType::Lanczos3);
        Self { pixels, kind: self.kind }
    }

    pub(super) fn png(&self) -> Result<Vec<u8>, String> {
        let (channels, color): (&[usize], _) = match self.kind {
            Kind { color: true, alpha: true } => (&[0, 1, 2, 3], ExtendedColorType::Rgba8),
            Kind { color: true, alpha: false } => (&[0, 1, 2], ExtendedColorType::Rgb8),
            Kind { color: false, alpha: true } => (&[0, 3], ExtendedColorType::La8),
            Kind { color: false, alpha: false } => (&[0], ExtendedColorType::L8),
        };
        let (width, height) = self.size();
        let mut out = Vec::new();
        PngEncoder::new(&mut out)
            .write_image(&self.channels(channels), width, height, color)
            .map_err(|e| format!("it cannot be encoded: {e}"))?;
        Ok(out)
    }

    /// `quality` from 1 to 100.
    pub(super) fn jpeg(&self, quality: u8) -> Result<Vec<u8>, String> {
        let (width, height) = self.size();
        let pixels = RgbImage::from_raw(width, height, self.channels(&[0, 1, 2]));
        let pixels = pixels.ok_or("it cannot be encoded: it has no pixels")?;
        let mut out = Vec::new();
        JpegEncoder::new_with_quality(&mut out, quality.clamp(1, 100))
            .encode_image(&pixels)
            .map_err(|e| format!("it cannot be encoded: {e}"))?;
        Ok(out)
    }

    /// The samples of some channels.
    fn channels(&self, channels: &[usize]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.pixels.len() / 4 * channels.len());
        for pixel in self.pixels.pixels() {
            out.extend(channels.iter().filter_map(|channel| pixel.0.get(*channel)));
        }
        out
    }
}

/// Samples of any kind as red, green, blue and opacity; `None` for kinds that no format of ours has.
fn rgba(samples: Vec<u8>, color: ColorType) -> Option<Vec<u8>> {
    let samples = match color {
        ColorType::Rgba8 => return Some(samples),
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 => samples,
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => {
            let (pairs, _) = samples.as_chunks::<2>();
            pairs.iter().map(|pair| narrow(u16::from_ne_bytes(*pair))).collect()
        }
        _ => return None,
    };
    let mut out = Vec::with_capacity(samples.len() / usize::from(color.channel_count()).max(1) * 4);
    match color.channel_count() {
        1 => samples.iter().for_each(|l| out.extend([*l, *l, *l, 255])),
        2 => samples.as_chunks::<2>().0.iter().for_each(|[l, a]| out.extend([*l, *l, *l, *a])),
        3 => samples.as_chunks::<3>().0.iter().for_each(|[r, g, b]| out.extend([*r, *g, *b, 255])),
        _ => return Some(samples),
    }
    Some(out)
}

/// Sixteen bits as eight, rounded.
const fn narrow(sample: u16) -> u8 {
    ((sample as u32 + 128) / 257) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::DynamicImage;

    /// All kinds, as PNG files of two pixels in a row.
    fn files() -> Vec<(DynamicImage, Vec<u8>)> {
        let samples: Vec<u16> = vec![0, 65535, 300, 40_000, 1, 128, 32_768, 65_000];
        let bytes: Vec<u8> = samples.iter().map(|s| (s >> 8) as u8).collect();
        let b = |n: usize| bytes[..2 * n].to_vec();
        let w = |n: usize| samples[..2 * n].to_vec();
        let kinds = [
            DynamicImage::ImageLuma8(image::ImageBuffer::from_raw(2, 1, b(1)).unwrap()),
            DynamicImage::ImageLumaA8(image::ImageBuffer::from_raw(2, 1, b(2)).unwrap()),
            DynamicImage::ImageRgb8(image::ImageBuffer::from_raw(2, 1, b(3)).unwrap()),
            DynamicImage::ImageRgba8(image::ImageBuffer::from_raw(2, 1, b(4)).unwrap()),
            DynamicImage::ImageLuma16(image::ImageBuffer::from_raw(2, 1, w(1)).unwrap()),
            DynamicImage::ImageLumaA16(image::ImageBuffer::from_raw(2, 1, w(2)).unwrap()),
            DynamicImage::ImageRgb16(image::ImageBuffer::from_raw(2, 1, w(3)).unwrap()),
            DynamicImage::ImageRgba16(image::ImageBuffer::from_raw(2, 1, w(4)).unwrap()),
        ];
        let file = |image: DynamicImage| {
            let mut out = Cursor::new(Vec::new());
            image.write_to(&mut out, image::ImageFormat::Png).unwrap();
            (image, out.into_inner())
        };
        kinds.map(file).into()
    }

    #[test]
    fn every_kind_of_color_is_read_as_the_library_reads_it() {
        for (image, file) in files() {
            let (picture, orientation) = Picture::decode(&file).unwrap();
            assert_eq!(picture.pixels, image.to_rgba8(), "{:?}", image.color());
            assert_eq!(orientation, Orientation::NoTransforms);
            // And written without what was made up.
            let again = image::load_from_memory(&picture.png().unwrap()).unwrap();
            assert_eq!(again.color().channel_count(), image.color().channel_count());
            assert_eq!(again.to_rgba8(), picture.pixels);
            assert_eq!(image::load_from_memory(&picture.jpeg(90).unwrap()).unwrap().color(), ColorType::Rgb8);
        }
    }

    #[test]
    fn turned_and_resized_as_by_the_library() {
        let (image, file) = files().remove(3);
        for exif in 1..=8 {
            let orientation = Orientation::from_exif(exif).unwrap();
            let (mut picture, _) = Picture::decode(&file).unwrap();
            picture.turn(orientation);
            let mut turned = image.clone();
            turned.apply_orientation(orientation);
            assert_eq!(picture.pixels, turned.to_rgba8(), "{exif}");
            let resized = turned.resize_exact(5, 3, FilterType::Lanczos3);
            assert_eq!(picture.resized(5, 3).pixels, resized.to_rgba8(), "{exif}");
        }
    }
}
