//! How many values a line of JSON holds, before it is read: each takes many times the bytes that it is written in.

/// Most values of a line. A message with a thousand images has some thousands.
const MOST: usize = 100_000;

/// Whether a line holds more values than any command needs. What is no JSON is counted somehow.
pub(super) fn are_too_many(line: &str) -> bool {
    // Each value but the first stands behind one of these.
    if line.len() <= MOST {
        return false;
    }
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count > MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_outside_of_texts_counts() {
        for (part, times, wanted) in [
            ("0,", MOST + 1, true),
            ("0,", MOST - 1, false),
            ("[", MOST + 1, true),
            ("{\"a\":{", MOST, true),
            ("\",,,,,,\" ", MOST, false),
            ("\"\\\",,,\\\\\" ", MOST, false),
            ("\"\\\\\",", MOST + 1, true),
            ("a", 10 * MOST, false),
        ] {
            assert_eq!(are_too_many(&part.repeat(times)), wanted, "{part} {times}");
        }
    }
}
