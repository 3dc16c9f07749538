//! Time as data: the machine never reads a clock, each input carries [`Now`].

use alloc::format;
use alloc::string::String;

/// Monotonic milliseconds since an arbitrary start. Never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The instant `ms` milliseconds later; saturates instead of wrapping.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`, 0 when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall-clock time: Unix milliseconds. May jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub i64);

/// The time an input carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For durations and deadlines.
    pub mono: Mono,
    /// For timestamps people and files see.
    pub wall: Wall,
}

const DAY_MS: i64 = 86_400_000;

impl Wall {
    /// ISO 8601 in UTC with milliseconds, as session entries carry it: `2026-09-02T02:26:27.887Z`.
    ///
    /// Years outside 0–9999 are written in the expanded form of ECMAScript (`+010000-…`).
    #[must_use]
    pub fn to_iso(self) -> String {
        let (days, ms) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        let (y, m, d) = civil_from_days(days);
        let (h, mi, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        let year = match y {
            0..=9999 => format!("{y:04}"),
            _ if y < 0 => format!("-{:06}", -y),
            _ => format!("+{y:06}"),
        };
        format!("{year}-{m:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{ms:03}Z")
    }

    /// Reads the ISO 8601 forms that sessions contain: date, or date and time with optional fraction and
    /// `Z` or `±hh:mm`. A date alone, and a time without offset, count as UTC. `None` for anything else.
    #[must_use]
    pub fn from_iso(text: &str) -> Option<Self> {
        let b = text.as_bytes();
        let num = |range: core::ops::Range<usize>| -> Option<i64> {
            let part = text.get(range)?;
            if part.is_empty() || !part.bytes().all(|c| c.is_ascii_digit()) {
                return None;
            }
            part.parse().ok()
        };
        let (y, mut at) = match b.first()? {
            b'+' => (num(1..7)?, 7),
            b'-' => (-num(1..7)?, 7),
            _ => (num(0..4)?, 4),
        };
        let sep = |at: usize, c: u8| (b.get(at) == Some(&c)).then_some(());
        sep(at, b'-')?;
        let m = num(at + 1..at + 3)?;
        sep(at + 3, b'-')?;
        let d = num(at + 4..at + 6)?;
        if !(1..=12).contains(&m) || d < 1 || d > days_in_month(y, m) {
            return None;
        }
        at += 6;
        let days = days_from_civil(y, m, d);
        if at == b.len() {
            return Some(Self(days * DAY_MS));
        }
        if !matches!(b.get(at), Some(b'T' | b't' | b' ')) {
            return None;
        }
        let (h, mi) = (num(at + 1..at + 3)?, num(at + 4..at + 6)?);
        sep(at + 3, b':')?;
        at += 6;
        let (mut s, mut ms) = (0, 0);
        if b.get(at) == Some(&b':') {
            s = num(at + 1..at + 3)?;
            at += 3;
            if b.get(at) == Some(&b'.') {
                let digits = b.get(at + 1..)?.iter().take_while(|c| c.is_ascii_digit()).count();
                if digits == 0 {
                    return None;
                }
                let kept = digits.min(3);
                ms = num(at + 1..at + 1 + kept)? * [1, 100, 10, 1][kept];
                at += 1 + digits;
            }
        }
        if h > 24 || mi > 59 || s > 59 || (h == 24 && (mi, s, ms) != (0, 0, 0)) {
            return None;
        }
        let offset = match (b.get(at), b.len() - at) {
            (None, _) | (Some(b'Z' | b'z'), 1) => 0,
            (Some(sign @ (b'+' | b'-')), 6) => {
                sep(at + 3, b':')?;
                let minutes = num(at + 1..at + 3)? * 60 + num(at + 4..at + 6)?;
                if *sign == b'-' { -minutes } else { minutes }
            }
            _ => return None,
        };
        Some(Self(days * DAY_MS + h * 3_600_000 + (mi - offset) * 60_000 + s * 1000 + ms))
    }

    /// Reads an HTTP date (`Sun, 06 Nov 1994 08:49:37 GMT`). Obsolete forms are not accepted.
    #[must_use]
    pub fn from_http_date(text: &str) -> Option<Self> {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let mut parts = text.split_once(',').map_or(text, |p| p.1).split_ascii_whitespace();
        let d: i64 = parts.next()?.parse().ok()?;
        let month = parts.next()?;
        let m = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as i64 + 1;
        let y: i64 = parts.next()?.parse().ok()?;
        let mut clock = parts.next()?.split(':').map(str::parse::<i64>);
        let (h, mi, s) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
        if clock.next().is_some() || !matches!(parts.next(), Some("GMT" | "UTC")) || parts.next().is_some() {
            return None;
        }
        let sane = (1..=9999).contains(&y)
            && (1..=days_in_month(y, m)).contains(&d)
            && (0..24).contains(&h)
            && (0..60).contains(&mi)
            && (0..61).contains(&s);
        sane.then(|| Self(days_from_civil(y, m, d) * DAY_MS + h * 3_600_000 + mi * 60_000 + s * 1000))
    }
}

const fn days_in_month(y: i64, m: i64) -> i64 {
    match m {
        4 | 6 | 9 | 11 => 30,
        2 if y % 4 == 0 && (y % 100 != 0 || y % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a proleptic Gregorian date (years start in March, eras of 400 years).
const fn days_from_civil(y: i64, m: i64, d: i64) -> i64 {
    let y = if m <= 2 { y - 1 } else { y };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((m + 9) % 12) + 2) / 5 + d - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (d, m) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    (yoe + era * 400 + (m <= 2) as i64, m, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_round_trip() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_788_315_987_887, "2026-09-02T02:26:27.887Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Wall(ms).to_iso(), text);
            assert_eq!(Wall::from_iso(text), Some(Wall(ms)));
        }
    }

    #[test]
    fn iso_variants() {
        let base = Wall::from_iso("2026-09-02T02:26:27.000Z");
        assert_eq!(Wall::from_iso("2026-09-02T04:26:27+02:00"), base);
        assert_eq!(Wall::from_iso("2026-09-02T02:26:27.0001Z"), base);
        for bad in [
            "",
            "x",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "2026-09-02T",
            "2026-09-02T02:26:27.Z",
            "2026-09-02T25:00",
        ] {
            assert_eq!(Wall::from_iso(bad), None, "{bad}");
        }
    }

    #[test]
    fn http_date() {
        assert_eq!(Wall::from_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Wall(784_111_777_000)));
        assert_eq!(Wall::from_http_date("Sun, 06 Nov 1994 08:49:37"), None);
        assert_eq!(Wall::from_http_date("soon"), None);
    }
}
