//! The `format` names of JSON Schema that are checked; other names are no constraint.

use crate::json::pattern::Pattern;

/// Whether a text has the format.
pub(super) fn has_format(name: &str, text: &str) -> bool {
    match name {
        "date" => date(text),
        "time" => time(text),
        "date-time" => {
            let at = text.find(['T', 't', ' ']);
            at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)))
                .is_some_and(|(d, t)| date(d) && time(t))
        }
        "duration" => duration(text),
        "email" | "idn-email" => email(text),
        "hostname" | "idn-hostname" => hostname(text),
        "ipv4" => ipv4(text),
        "ipv6" => text.parse::<core::net::Ipv6Addr>().is_ok(),
        "uri" | "iri" | "url" => uri(text),
        "uri-reference" | "iri-reference" => uri_chars(text),
        "uuid" => uuid(text),
        "regex" => Pattern::new(text).is_some() || balanced(text),
        "json-pointer" => text.is_empty() || (text.starts_with('/') && tildes(text)),
        _ => true,
    }
}

fn number(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|c| c.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day)
}

/// `hh:mm:ss[.f](Z|±hh:mm)`
fn time(text: &str) -> bool {
    let Some(zone_at) = text.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = text.split_at_checked(zone_at).unwrap_or((text, ""));
    let (whole, fraction) = clock.split_once('.').map_or((clock, None), |(w, f)| (w, Some(f)));
    if fraction.is_some_and(|f| f.is_empty() || !f.bytes().all(|c| c.is_ascii_digit())) {
        return false;
    }
    let zone_fits = match zone {
        "Z" | "z" => true,
        _ => zone.get(1..).is_some_and(|zone| clock_fits(zone, &[23, 59])),
    };
    zone_fits && clock_fits(whole, &[23, 59, 60])
}

fn clock_fits(text: &str, limits: &[u32]) -> bool {
    text.split(':').count() == limits.len()
        && text.split(':').zip(limits).all(|(part, most)| number(part, 2).is_some_and(|n| n <= *most))
}

/// `P[nY][nM][nW][nD][T[nH][nM][nS]]` with at least one part.
fn duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    let (days, clock) = rest.split_once('T').map_or((rest, None), |(d, t)| (d, Some(t)));
    if clock == Some("") || (days.is_empty() && clock.is_none()) {
        return false;
    }
    units(days, "YMWD") && units(clock.unwrap_or_default(), "HMS")
}

fn units(text: &str, mut order: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some(unit) = rest.get(digits..).and_then(|r| r.chars().next()).filter(|_| digits > 0) else {
            return false;
        };
        let Some((_, later)) = order.split_once(unit) else { return false };
        order = later;
        rest = rest.get(digits + 1..).unwrap_or_default();
    }
    true
}

fn email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let dots = !local.starts_with('.') && !local.ends_with('.') && !local.contains("..");
    let plain = local
        .chars()
        .all(|c| !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c));
    !local.is_empty() && dots && plain && hostname(domain)
}

fn hostname(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn ipv4(text: &str) -> bool {
    text.parse::<core::net::Ipv4Addr>().is_ok()
}

fn uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !rest.is_empty()
        && uri_chars(rest)
}

fn uri_chars(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"{}|\\^`".contains(c))
        && text
            .split('%')
            .skip(1)
            .all(|rest| rest.get(..2).is_some_and(|hex| hex.bytes().all(|c| c.is_ascii_hexdigit())))
}

fn uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    text.split('-').count() == lengths.len()
        && text
            .split('-')
            .zip(lengths)
            .all(|(part, len)| part.len() == len && part.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// Syntax that [`Pattern`] does not read is taken for valid when its brackets pair up.
fn balanced(text: &str) -> bool {
    let (mut depth, mut escaped, mut class) = (0usize, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' if class => class = false,
            _ if class => {}
            '[' => class = true,
            '(' => depth += 1,
            ')' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => {}
        }
    }
    depth == 0 && !escaped && !class && !text.starts_with(['*', '+', '?'])
}

fn tildes(text: &str) -> bool {
    text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        for (name, good, bad) in [
            ("date", "2024-02-29", "2023-02-29"),
            ("time", "23:59:60.5+01:30", "24:00:00Z"),
            ("date-time", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00"),
            ("duration", "P1Y2DT3H", "PT"),
            ("email", "a.b+c@d.example", "nope"),
            ("hostname", "a-b.c", "-a.b"),
            ("ipv4", "127.0.0.1", "127.0.0.256"),
            ("ipv6", "::1", ":::1"),
            ("uri", "https://x/y?z#a%20", "x y"),
            ("uri-reference", "../a", "a b"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
            ("regex", "(?<=a)b", "(a"),
            ("json-pointer", "/a~1b", "/a~2"),
        ] {
            assert!(has_format(name, good), "{name}: {good}");
            assert!(!has_format(name, bad), "{name}: {bad}");
        }
        assert!(has_format("zzz", "anything"));
    }
}
