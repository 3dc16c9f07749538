//! Blocks of Markdown: what models write, as far as a page can show it without doubt. Everything else stays text.
//!
//! Known are headings, paragraphs, fenced code, lists, quotes, tables and rules. Line breaks inside a paragraph stay.

use super::html::Html;
use super::inline;

/// Deepest nesting of lists and quotes; what is deeper is a paragraph.
const MOST_DEPTH: u8 = 8;

/// Appends a text as markup.
pub fn render(out: &mut Html, source: &str) {
    let lines: Vec<&str> = source.lines().collect();
    blocks(out, &lines, 0);
}

fn blocks(out: &mut Html, mut lines: &[&str], depth: u8) {
    while let Some((first, rest)) = lines.split_first() {
        let used = match kind(first, rest.first().copied(), depth) {
            Kind::Blank => 1,
            Kind::Rule => {
                out.markup("<hr>");
                1
            }
            Kind::Heading(level, title) => {
                heading(out, level, title);
                1
            }
            Kind::Fence(fence) => code(out, &fence, rest),
            Kind::Quote => quote(out, lines, depth),
            Kind::Item(item) => list(out, lines, &item, depth),
            Kind::Table => table(out, lines),
            Kind::Text => paragraph(out, lines, depth),
        };
        lines = lines.get(used..).unwrap_or_default();
    }
}

/// What a line starts.
enum Kind<'a> {
    Blank,
    Rule,
    Heading(usize, &'a str),
    Fence(Fence<'a>),
    Quote,
    Item(Item<'a>),
    Table,
    Text,
}

struct Fence<'a> {
    mark: u8,
    run: usize,
    indent: usize,
    language: &'a str,
}

struct Item<'a> {
    /// Number of the first item; `None` = not numbered.
    number: Option<u32>,
    indent: usize,
    /// Column of the text.
    column: usize,
    text: &'a str,
}

fn kind<'a>(line: &'a str, next: Option<&str>, depth: u8) -> Kind<'a> {
    let start = line.trim_start();
    if start.is_empty() {
        return Kind::Blank;
    }
    if let Some(fence) = fence(line, start) {
        return Kind::Fence(fence);
    }
    if is_rule(start) {
        return Kind::Rule;
    }
    if let Some((level, title)) = heading_of(start) {
        return Kind::Heading(level, title);
    }
    if depth < MOST_DEPTH {
        if start.starts_with('>') {
            return Kind::Quote;
        }
        if let Some(item) = item(line, start) {
            return Kind::Item(item);
        }
    }
    if start.contains('|') && next.is_some_and(is_table_rule) { Kind::Table } else { Kind::Text }
}

/// Columns of white space at the start; a tab reaches the next multiple of four.
fn indent(line: &str) -> usize {
    let blanks = line.bytes().take_while(|b| matches!(b, b' ' | b'\t'));
    blanks.fold(0, |column, b| if b == b'\t' { column / 4 * 4 + 4 } else { column + 1 })
}

/// The line without its first columns, as far as they are white space.
fn dedent(line: &str, columns: usize) -> &str {
    let mut column = 0;
    for (at, b) in line.bytes().enumerate() {
        if column >= columns || !matches!(b, b' ' | b'\t') {
            return line.get(at..).unwrap_or_default();
        }
        column = if b == b'\t' { column / 4 * 4 + 4 } else { column + 1 };
    }
    ""
}

fn fence<'a>(line: &str, start: &'a str) -> Option<Fence<'a>> {
    let mark = *start.as_bytes().first().filter(|b| matches!(b, b'`' | b'~'))?;
    let run = start.bytes().take_while(|b| *b == mark).count();
    let language = start.get(run..)?.trim();
    // Backticks after them: code inside a line.
    let fits = run >= 3 && !(mark == b'`' && language.contains('`'));
    fits.then_some(Fence { mark, run, indent: indent(line), language })
}

fn is_rule(start: &str) -> bool {
    let mut marks = start.bytes().filter(|b| *b != b' ');
    let Some(first @ (b'-' | b'*' | b'_')) = marks.next() else { return false };
    let mut count = 1;
    marks.all(|b| {
        count += 1;
        b == first
    }) && count >= 3
}

fn heading_of(start: &str) -> Option<(usize, &str)> {
    let level = start.bytes().take_while(|b| *b == b'#').count();
    let title = start.get(level..)?;
    let fits = (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t']));
    fits.then(|| (level, title.trim()))
}

fn heading(out: &mut Html, level: usize, title: &str) {
    // The page itself has the two highest.
    let (open, close) = match level {
        1 => ("<h3>", "</h3>"),
        2 => ("<h4>", "</h4>"),
        3 => ("<h5>", "</h5>"),
        _ => ("<h6>", "</h6>"),
    };
    let closed = title.trim_end_matches('#');
    let title = if closed.ends_with(' ') || closed.is_empty() { closed.trim_end() } else { title };
    out.markup(open);
    inline::render(out, title);
    out.markup(close);
}

/// The fence and its lines; one that is never closed reaches to the end.
fn code(out: &mut Html, fence: &Fence<'_>, rest: &[&str]) -> usize {
    let closes = |line: &&str| {
        let start = line.trim();
        start.len() >= fence.run && start.bytes().all(|b| b == fence.mark)
    };
    let end = rest.iter().position(closes);
    let lines = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
    match fence.language {
        "" => out.markup("<pre><code>"),
        language => out.around("<pre data-lang=\"", language, "\"><code>"),
    }
    for (at, line) in lines.iter().enumerate() {
        let line = dedent(line, fence.indent);
        if at == 0 && line.is_empty() {
            out.keep_first_line_feed("\n");
        }
        out.around("", line, "\n");
    }
    out.markup("</code></pre>");
    1 + lines.len() + usize::from(end.is_some())
}

fn quote(out: &mut Html, lines: &[&str], depth: u8) -> usize {
    let quoted: Vec<&str> = lines.iter().map_while(|line| quoted_text(line)).collect();
    out.markup("<blockquote>");
    blocks(out, &quoted, depth + 1);
    out.markup("</blockquote>");
    quoted.len()
}

fn quoted_text(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

fn item<'a>(line: &str, start: &'a str) -> Option<Item<'a>> {
    let (number, mark) = match start.as_bytes().first()? {
        b'-' | b'*' | b'+' => (None, 1),
        b'0'..=b'9' => {
            let digits = start.bytes().take_while(u8::is_ascii_digit).count();
            let ends = matches!(start.as_bytes().get(digits), Some(b'.' | b')'));
            let number = start.get(..digits)?.parse().ok().filter(|_| ends && digits <= 9)?;
            (Some(number), digits + 1)
        }
        _ => return None,
    };
    let rest = start.get(mark..)?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let blanks = rest.len() - rest.trim_start().len();
    // More blanks belong to the text.
    let blanks = if blanks > 4 || rest.trim().is_empty() { 1.min(blanks) } else { blanks };
    let indent = indent(line);
    Some(Item { number, indent, column: indent + mark + blanks.max(1), text: rest.get(blanks..)? })
}

fn list(out: &mut Html, lines: &[&str], first: &Item<'_>, depth: u8) -> usize {
    let close = match first.number {
        Some(number) => {
            out.number("<ol start=", number, ">");
            "</ol>"
        }
        None => {
            out.markup("<ul>");
            "</ul>"
        }
    };
    let mut at = 0;
    loop {
        let rest = lines.get(at..).unwrap_or_default();
        let blanks = rest.iter().take_while(|line| line.trim().is_empty()).count();
        let Some((line, rest)) = rest.get(blanks..).and_then(|rest| rest.split_first()) else { break };
        let start = line.trim_start();
        let is_next = |item: &Item<'_>| {
            item.number.is_some() == first.number.is_some()
                && item.indent < first.indent + 2
                && !is_rule(start)
        };
        let Some(item) = item(line, start).filter(is_next) else { break };
        at += blanks;
        let more = item_lines(rest, item.text, first.indent);
        let mut own = Vec::with_capacity(more + 1);
        own.push(item.text);
        own.extend(rest.iter().take(more).map(|line| dedent(line, item.column)));
        out.markup("<li>");
        blocks(out, &own, depth + 1);
        out.markup("</li>");
        at += 1 + more;
    }
    out.markup(close);
    at
}

/// How many of the lines behind the `first` one of an item belong to it: what is indented, what goes on with its
/// paragraph, and blank lines between.
fn item_lines(lines: &[&str], first: &str, base: usize) -> usize {
    let fence_of = |line: &str| fence(line, line.trim_start()).map(|fence| (fence.mark, fence.run));
    let (mut used, mut after_blank, mut fenced) = (0, false, fence_of(first));
    for (at, line) in lines.iter().enumerate() {
        let start = line.trim_start();
        let is_inside = indent(line) >= base + 2;
        if let Some((mark, run)) = fenced {
            let closed = start.trim_end();
            if closed.len() >= run && closed.bytes().all(|b| b == mark) {
                fenced = None;
            }
        } else if start.is_empty() {
            after_blank = true;
            continue;
        } else if is_inside {
            fenced = fence_of(line);
        } else if after_blank || !matches!(kind(line, None, 0), Kind::Text) {
            break;
        }
        after_blank = false;
        used = at + 1;
    }
    used
}

fn is_table_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('|') && line.contains('-') && line.bytes().all(|b| matches!(b, b'|' | b'-' | b':' | b' '))
}

fn table(out: &mut Html, lines: &[&str]) -> usize {
    let rows = lines.iter().skip(2).take_while(|line| line.contains('|')).count();
    out.markup("<div class=w><table>");
    let shown = lines.iter().take(1).chain(lines.iter().skip(2).take(rows));
    for (at, line) in shown.enumerate() {
        let (open, close) = if at == 0 { ("<th>", "</th>") } else { ("<td>", "</td>") };
        out.markup("<tr>");
        for cell in cells(line) {
            out.markup(open);
            inline::render(out, cell.trim());
            out.markup(close);
        }
        out.markup("</tr>");
    }
    out.markup("</table></div>");
    rows + 2
}

/// Cells of a row; a bar behind a backslash is text.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, b) in line.bytes().enumerate() {
        if b == b'|' && !escaped {
            cells.push(line.get(start..at).unwrap_or_default());
            start = at + 1;
        }
        escaped = b == b'\\' && !escaped;
    }
    let last = line.get(start..).unwrap_or_default();
    if !last.trim().is_empty() || cells.is_empty() {
        cells.push(last);
    }
    cells
}

fn paragraph(out: &mut Html, lines: &[&str], depth: u8) -> usize {
    let goes_on = |(at, line): (usize, &&str)| {
        let next = lines.get(at + 1).copied();
        match kind(line, next, depth) {
            Kind::Text => true,
            // A number at the start of a line is mostly just that.
            Kind::Item(Item { number, .. }) => number.is_some_and(|number| number != 1),
            _ => false,
        }
    };
    let more = lines.iter().enumerate().skip(1).take_while(|line| goes_on(*line)).count();
    let whole = lines.iter().take(1 + more).copied().collect::<Vec<_>>().join("\n");
    out.markup("<p>");
    inline::render(out, whole.trim());
    out.markup("</p>");
    1 + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_by_their_marks() {
        for (given, wanted) in [
            ("", ""),
            ("a\nb\n\n\nc", "<p>a\nb</p><p>c</p>"),
            ("# T #\n###### x\n#no", "<h3>T</h3><h6>x</h6><p>#no</p>"),
            ("C#\n# C#", "<p>C#</p><h3>C#</h3>"),
            ("---\n* * *\n--", "<hr><hr><p>--</p>"),
            (
                "```rust ignore\nfn f<T>() {}\n\n```\nx",
                "<pre data-lang=\"rust ignore\"><code>fn f&lt;T&gt;() {}\n\n</code></pre><p>x</p>",
            ),
            ("~~~\n```\n~~~", "<pre><code>```\n</code></pre>"),
            ("```\nopen *x*", "<pre><code>open *x*\n</code></pre>"),
            ("```\n\nx\n```", "<pre><code>\n\nx\n</code></pre>"),
            ("``` a`b", "<p>``` a`b</p>"),
            ("> a\n> > b\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"),
            (
                "| a | b |\n|---|:-:|\n| 1 \\| 2 | *x* |\nend",
                "<div class=w><table><tr><th>a</th><th>b</th></tr><tr><td>1 | 2</td><td><em>x</em></td></tr></table></div><p>end</p>",
            ),
            ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ] {
            let mut out = Html::default();
            render(&mut out, given);
            assert_eq!(out.as_str(), wanted, "{given}");
        }
    }

    #[test]
    fn lists() {
        for (given, wanted) in [
            ("- a\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
            (
                "1. a\n  - b\n2. c",
                "<ol start=1><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ol>",
            ),
            ("3) x", "<ol start=3><li><p>x</p></li></ol>"),
            ("- a\nmore\n\n  own\n\nend", "<ul><li><p>a\nmore</p><p>own</p></li></ul><p>end</p>"),
            ("- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
            ("- a\n1. b", "<ul><li><p>a</p></li></ul><ol start=1><li><p>b</p></li></ol>"),
            (
                "- ```\n  x\n\n  y\n  ```\n- b",
                "<ul><li><pre><code>x\n\ny\n</code></pre></li><li><p>b</p></li></ul>",
            ),
            ("- a\n  ```\nno indent\n  ```", "<ul><li><p>a</p><pre><code>no indent\n</code></pre></li></ul>"),
            ("In\n2024. It was", "<p>In\n2024. It was</p>"),
            ("text\n- a", "<p>text</p><ul><li><p>a</p></li></ul>"),
            ("-no\n-5", "<p>-no\n-5</p>"),
            ("-", "<ul><li></li></ul>"),
            ("- - a", "<ul><li><ul><li><p>a</p></li></ul></li></ul>"),
        ] {
            let mut out = Html::default();
            render(&mut out, given);
            assert_eq!(out.as_str(), wanted, "{given}");
        }
    }

    /// Texts made to need many looks at the same place, or to nest without end.
    #[test]
    fn long_texts_take_little_time() {
        for unit in [
            "- ",
            "> ",
            "- a\n",
            "a\n",
            "| a |\n",
            "|-|\n",
            "1. \n\n",
            "```\n",
            "\t- a\n",
            "a|b\n|-|-|\n",
            "- a\n\n",
            "* ",
        ] {
            let mut out = Html::default();
            let start = std::time::Instant::now();
            render(&mut out, &unit.repeat(200_000 / unit.len()));
            assert!(start.elapsed().as_secs() < 5, "{unit}: {:?}", start.elapsed());
        }
    }
}
