//! Streaming UTF-8 with replacement: the same text for every split of the bytes (spec 50, text units).

/// Decodes bytes piece by piece; each ill-formed sequence becomes U+FFFD, as `String::from_utf8_lossy` does it.
#[derive(Debug, Default)]
pub(crate) struct Lossy {
    /// An unfinished but so far well-formed sequence.
    held: [u8; 3],
    held_len: usize,
}

const REPLACEMENT: &str = "\u{fffd}";

impl Lossy {
    /// Decodes what is complete; an unfinished sequence at the end waits for the next piece.
    pub(crate) fn push(&mut self, mut bytes: &[u8], emit: &mut dyn FnMut(&str)) {
        while self.held_len > 0 {
            let Some((&next, rest)) = bytes.split_first() else { return };
            let mut joined = [0; 4];
            let len = self.held_len + 1;
            if let (Some(to), Some(from)) = (joined.get_mut(..self.held_len), self.held.get(..self.held_len))
            {
                to.copy_from_slice(from);
            }
            if let Some(last) = joined.get_mut(self.held_len) {
                *last = next;
            }
            let joined = joined.get(..len).unwrap_or_default();
            match core::str::from_utf8(joined) {
                Ok(text) => emit(text),
                Err(error) if error.error_len().is_none() => {
                    self.hold(joined);
                    bytes = rest;
                    continue;
                }
                // The new byte does not continue the sequence: it is looked at again by itself.
                Err(_) => {
                    emit(REPLACEMENT);
                    self.held_len = 0;
                    continue;
                }
            }
            self.held_len = 0;
            bytes = rest;
        }
        loop {
            match core::str::from_utf8(bytes) {
                Ok("") => return,
                Ok(text) => return emit(text),
                Err(error) => {
                    let (good, rest) = bytes.split_at(error.valid_up_to());
                    if let Ok(text) = core::str::from_utf8(good)
                        && !text.is_empty()
                    {
                        emit(text);
                    }
                    let Some(bad) = error.error_len() else { return self.hold(rest) };
                    emit(REPLACEMENT);
                    bytes = rest.get(bad..).unwrap_or_default();
                }
            }
        }
    }

    /// The bytes ended: an unfinished sequence becomes one replacement.
    pub(crate) fn finish(&mut self, emit: &mut dyn FnMut(&str)) {
        if self.held_len > 0 {
            self.held_len = 0;
            emit(REPLACEMENT);
        }
    }

    /// Whether no sequence is unfinished.
    pub(crate) const fn is_clean(&self) -> bool {
        self.held_len == 0
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.held_len = bytes.len().min(3);
        for (to, from) in self.held.iter_mut().zip(bytes) {
            *to = *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn every_split_gives_the_lossy_text() {
        let inputs: [&[u8]; 8] = [
            "naïve 日本 😀".as_bytes(),
            b"a\xff\xfeb",
            b"\xe6\x97",
            b"\xe6\x97A\xf0\x9f\x98",
            b"\xf0\x9f\xf0\x9f\x98\x80",
            b"\xc0\x80\xe0\x80\x80",
            b"\xed\xa0\x80x",
            b"\xf4\x90\x80\x80\xf5",
        ];
        for input in inputs {
            for step in 1..5 {
                let (mut lossy, mut out) = (Lossy::default(), String::new());
                input.chunks(step).for_each(|part| lossy.push(part, &mut |t| out.push_str(t)));
                lossy.finish(&mut |t| out.push_str(t));
                assert_eq!(out, String::from_utf8_lossy(input), "{input:?} by {step}");
            }
        }
    }
}
