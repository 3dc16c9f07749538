//! Inline marks of Markdown: code, emphasis, links. One pass, linear in the text.
//!
//! Marks are kept on one stack in the order of the text. A mark that closes takes its partner and everything above it off
//! the stack, so elements always nest.

use super::html::{Html, is_sly};

/// Longest run of backticks that can mark code.
const MOST_BACKTICKS: usize = 31;

/// Longest title of a link, characters.
const MOST_TITLE: usize = 200;

/// A piece of the result.
enum Piece<'a> {
    Text(&'a str),
    Tag(&'static str),
    Code(&'a str),
    /// Start of a link: its address, which was checked, and its title.
    Link(&'a str, &'a str),
}

/// What a mark on the stack may turn into.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Star,
    TwoStars,
    ThreeStars,
    Bar,
    TwoBars,
    ThreeBars,
    Waves,
    Bracket,
}

impl Mark {
    const fn of(byte: u8, run: usize) -> Option<Self> {
        Some(match (byte, run) {
            (b'*', 1) => Self::Star,
            (b'*', 2) => Self::TwoStars,
            (b'*', 3) => Self::ThreeStars,
            (b'_', 1) => Self::Bar,
            (b'_', 2) => Self::TwoBars,
            (b'_', 3) => Self::ThreeBars,
            (b'~', 2) => Self::Waves,
            _ => return None,
        })
    }

    const fn tags(self) -> (&'static str, &'static str) {
        match self {
            Self::Star | Self::Bar => ("<em>", "</em>"),
            Self::TwoStars | Self::TwoBars => ("<strong>", "</strong>"),
            Self::ThreeStars | Self::ThreeBars => ("<strong><em>", "</em></strong>"),
            Self::Waves => ("<del>", "</del>"),
            Self::Bracket => ("", "</a>"),
        }
    }
}

/// A mark that waits for its partner.
struct Open {
    mark: Mark,
    /// Its piece.
    at: usize,
}

struct Inline<'a> {
    text: &'a str,
    at: usize,
    /// Start of the plain text that is no piece yet.
    plain: usize,
    pieces: Vec<Piece<'a>>,
    stack: Vec<Open>,
    /// How many of each mark are on the stack.
    counts: [u32; 8],
    /// Brackets of pieces before this one can be no link any more: a link inside them is.
    dead: usize,
    /// Bit n: no run of n backticks follows.
    no_code: u32,
}

/// Appends text with inline marks as markup.
pub fn render(out: &mut Html, source: &str) {
    let mut inline = Inline {
        text: source,
        at: 0,
        plain: 0,
        pieces: Vec::new(),
        stack: Vec::new(),
        counts: [0; 8],
        dead: 0,
        no_code: 0,
    };
    inline.run();
    for piece in inline.pieces {
        match piece {
            Piece::Text(plain) => out.text(plain),
            Piece::Tag(tag) => out.markup(tag),
            Piece::Code(code) => out.around("<code>", code, "</code>"),
            Piece::Link(address, "") => out.around("<a rel=noreferrer href=\"", address, "\">"),
            Piece::Link(address, title) => {
                out.around("<a rel=noreferrer href=\"", address, "\" title=\"");
                out.around("", title, "\">");
            }
        }
    }
}

impl<'a> Inline<'a> {
    fn run(&mut self) {
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            match byte {
                b'\\' => self.escaped(),
                b'`' => self.code(),
                b'*' | b'_' | b'~' => self.emphasis(byte),
                b'[' => {
                    self.mark(1);
                    self.open(Mark::Bracket);
                }
                b']' => self.link(),
                b'h' => self.address(),
                _ => self.at += 1,
            }
        }
        self.flush(self.at);
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Plain text up to `end` becomes a piece.
    fn flush(&mut self, end: usize) {
        if let Some(plain) = self.text.get(self.plain..end).filter(|plain| !plain.is_empty()) {
            self.pieces.push(Piece::Text(plain));
        }
        self.plain = end;
    }

    /// The next `len` bytes become a piece of their own, as text so far.
    fn mark(&mut self, len: usize) {
        self.flush(self.at);
        self.at += len;
        self.flush(self.at);
    }

    /// The last piece waits for a partner.
    fn open(&mut self, mark: Mark) {
        self.stack.push(Open { mark, at: self.pieces.len().saturating_sub(1) });
        self.count(mark, 1);
    }

    fn count(&mut self, mark: Mark, by: i32) {
        if let Some(count) = self.counts.get_mut(mark as usize) {
            *count = count.saturating_add_signed(by);
        }
    }

    fn waits(&self, mark: Mark) -> bool {
        self.counts.get(mark as usize).is_some_and(|count| *count > 0)
    }

    /// Takes the partner of `mark` and what is above it off the stack. The partner's piece.
    fn partner(&mut self, mark: Mark) -> Option<usize> {
        while let Some(open) = self.stack.pop() {
            if open.mark != Mark::Bracket || open.at >= self.dead {
                self.count(open.mark, -1);
                if open.mark == mark {
                    return Some(open.at);
                }
            }
        }
        None
    }

    fn escaped(&mut self) {
        let next = self.text.as_bytes().get(self.at + 1);
        if next.is_some_and(u8::is_ascii_punctuation) {
            self.flush(self.at);
            // What follows is text, whatever it is.
            self.plain += 1;
            self.at += 2;
        } else {
            self.at += 1;
        }
    }

    fn code(&mut self) {
        let run = run_of(self.rest(), b'`');
        let after = self.at + run;
        let Some(end) = self.code_end(after, run) else {
            self.at = after;
            return;
        };
        let code = self.text.get(after..end).unwrap_or_default();
        // One blank beside the backticks is there for code that has backticks itself.
        let inner = code.strip_prefix(' ').and_then(|code| code.strip_suffix(' '));
        let code = inner.filter(|inner| !inner.trim().is_empty()).unwrap_or(code);
        self.flush(self.at);
        self.pieces.push(Piece::Code(code));
        self.at = end + run;
        self.plain = self.at;
    }

    /// Where the next run of exactly `run` backticks starts.
    fn code_end(&mut self, from: usize, run: usize) -> Option<usize> {
        if run > MOST_BACKTICKS || self.no_code & (1 << run) != 0 {
            return None;
        }
        let mut at = from;
        while let Some(found) = self.text.get(at..)?.find('`') {
            let here = at + found;
            let length = run_of(self.text.get(here..)?, b'`');
            if length == run {
                return Some(here);
            }
            at = here + length;
        }
        self.no_code |= 1 << run;
        None
    }

    fn emphasis(&mut self, byte: u8) {
        let run = run_of(self.rest(), byte);
        let Some(mark) = Mark::of(byte, run) else {
            self.at += run;
            return;
        };
        let before = self.text.get(..self.at).and_then(|text| text.chars().next_back());
        let after = self.text.get(self.at + run..).and_then(|text| text.chars().next());
        let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
        // A bar inside a word is part of it.
        let in_word = |c: Option<char>| byte == b'_' && c.is_some_and(char::is_alphanumeric);
        if !is_blank(before)
            && !in_word(after)
            && self.waits(mark)
            && let Some(at) = self.partner(mark)
        {
            self.mark(run);
            let (open, close) = mark.tags();
            self.turn(at, Piece::Tag(open));
            self.turn(self.pieces.len() - 1, Piece::Tag(close));
        } else if !is_blank(after) && !in_word(before) {
            self.mark(run);
            self.open(mark);
        } else {
            self.at += run;
        }
    }

    fn turn(&mut self, at: usize, piece: Piece<'a>) {
        if let Some(slot) = self.pieces.get_mut(at) {
            *slot = piece;
        }
    }

    /// `](address)` or `](address "title")`
    fn link(&mut self) {
        let inside = self.rest().strip_prefix("](").filter(|_| self.waits(Mark::Bracket));
        match inside.and_then(destination) {
            Some((address, title, len)) => {
                self.flush(self.at);
                if let Some(at) = self.partner(Mark::Bracket) {
                    self.turn(at, Piece::Link(address, title));
                    self.pieces.push(Piece::Tag(Mark::Bracket.tags().1));
                }
                self.at += 2 + len;
                self.plain = self.at;
            }
            None => self.at += 1,
        }
        // No link has another one inside, and what closed without an address is text.
        self.dead = self.pieces.len();
        self.counts[Mark::Bracket as usize] = 0;
    }

    /// An address that stands in the text as it is.
    fn address(&mut self) {
        let in_word = self.text.get(..self.at).is_some_and(|text| text.ends_with(char::is_alphanumeric));
        let rest = self.rest();
        let is_one = rest.starts_with("http://") || rest.starts_with("https://");
        if in_word || !is_one || self.waits(Mark::Bracket) {
            self.at += 1;
            return;
        }
        let ends = |c: char| !fits_address(c) || matches!(c, '*' | '|' | '[' | ']' | '\\' | '\'');
        let whole = rest.split(ends).next().unwrap_or_default();
        let mut address = whole.trim_end_matches(['.', ',', ';', ':', '!', '?', '_', '~']);
        if !address.contains('(') {
            address = address.trim_end_matches([')', '.', ',', ';', ':']);
        }
        if address.split_once("://").is_none_or(|(_, host)| host.is_empty()) {
            self.at += whole.len().max(1);
            return;
        }
        self.flush(self.at);
        self.pieces.push(Piece::Link(address, ""));
        self.pieces.push(Piece::Text(address));
        self.pieces.push(Piece::Tag(Mark::Bracket.tags().1));
        self.at += address.len();
        self.plain = self.at;
    }
}

fn run_of(text: &str, byte: u8) -> usize {
    text.bytes().take_while(|b| *b == byte).count()
}

/// Address and title of a link, and the length of everything up to its closing parenthesis. Addresses of other kinds
/// than these make no link.
fn destination(inside: &str) -> Option<(&str, &str, usize)> {
    let mut depth = 0usize;
    let end = inside.find(|c| match c {
        '(' => {
            depth += 1;
            false
        }
        ')' if depth > 0 => {
            depth -= 1;
            false
        }
        c => c == ')' || !fits_address(c) || c == '[' || c == ']',
    })?;
    let (address, rest) = inside.split_at_checked(end)?;
    let lower = address.get(..8.min(address.len())).unwrap_or_default().to_ascii_lowercase();
    if !["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme)) {
        return None;
    }
    let Some(title) = rest.strip_prefix(" \"") else {
        return rest.starts_with(')').then_some((address, "", end + 1));
    };
    let (len, _) = title.char_indices().take(MOST_TITLE).find(|(_, c)| *c == '"')?;
    let (title, rest) = title.split_at_checked(len)?;
    rest.starts_with("\")").then_some((address, title, end + len + 4))
}

fn fits_address(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !is_sly(c) && !matches!(c, '<' | '>' | '"' | '`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks() {
        for (given, wanted) in [
            ("plain", "plain"),
            (
                "a **b** *c* __d__ _e_ ~~f~~",
                "a <strong>b</strong> <em>c</em> <strong>d</strong> <em>e</em> <del>f</del>",
            ),
            ("***both***", "<strong><em>both</em></strong>"),
            ("**a *b* c**", "<strong>a <em>b</em> c</strong>"),
            ("**a *b** c*", "<strong>a *b</strong> c*"),
            ("snake_case_name 2 * 3 * 4", "snake_case_name 2 * 3 * 4"),
            ("** no ** ****", "** no ** ****"),
            ("*open", "*open"),
            ("`<b>` ``a`b`` `open", "<code>&lt;b&gt;</code> <code>a`b</code> `open"),
            ("`*x*`", "<code>*x*</code>"),
            ("\\*x\\* \\n", "*x* \\n"),
        ] {
            let mut out = Html::default();
            render(&mut out, given);
            assert_eq!(out.as_str(), wanted, "{given}");
        }
    }

    #[test]
    fn links() {
        let link = |address: &str, text: &str| format!("<a rel=noreferrer href=\"{address}\">{text}</a>");
        for (given, wanted) in [
            ("[t](https://a.b/c)", link("https://a.b/c", "t")),
            ("[t](https://a/b_(c)) x", link("https://a/b_(c)", "t") + " x"),
            ("[t](http://a \"title\").", "<a rel=noreferrer href=\"http://a\" title=\"title\">t</a>.".into()),
            ("[*t*](mailto:a@b)", link("mailto:a@b", "<em>t</em>")),
            ("*[t](http://a)*", format!("<em>{}</em>", link("http://a", "t"))),
            ("*a [b* c](http://a)", "<em>a [b</em> c](".to_owned() + &link("http://a", "http://a") + ")"),
            (
                "[a [b](http://b) c](http://c)",
                format!("[a {} c]({})", link("http://b", "b"), link("http://c", "http://c")),
            ),
            (
                "see https://a.b/c?d=1&e, (http://x.y).",
                format!(
                    "see {}, ({}).",
                    link("https://a.b/c?d=1&amp;e", "https://a.b/c?d=1&amp;e"),
                    link("http://x.y", "http://x.y"),
                ),
            ),
            ("[t](javascript:alert(1))", "[t](javascript:alert(1))".into()),
            ("[t](JaVaScRiPt:x)", "[t](JaVaScRiPt:x)".into()),
            ("[t](data:text/html,x)", "[t](data:text/html,x)".into()),
            ("[t](/etc/passwd) [t](#x)", "[t](/etc/passwd) [t](#x)".into()),
            ("[t](https://a\"onclick=x)", format!("[t]({}&quot;onclick=x)", link("https://a", "https://a"))),
            ("a[1] http://a", format!("a[1] {}", link("http://a", "http://a"))),
            ("https:// xhttp://a", "https:// xhttp://a".into()),
        ] {
            let mut out = Html::default();
            render(&mut out, given);
            assert_eq!(out.as_str(), wanted, "{given}");
        }
    }

    /// Texts made to need many looks at the same place.
    #[test]
    fn long_texts_take_little_time() {
        for unit in [
            "*a ",
            "_a* ",
            "[a](",
            "`",
            "` `` ``` ",
            "[",
            "*[a](http://b) ",
            "](",
            "https://",
            "h",
            "\\",
            "[a](http://a \"b",
        ] {
            let mut out = Html::default();
            let start = std::time::Instant::now();
            render(&mut out, &unit.repeat(300_000 / unit.len()));
            assert!(start.elapsed().as_secs() < 5, "{unit}: {:?}", start.elapsed());
        }
    }
}
