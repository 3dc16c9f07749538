//! Columns for people.

/// Lines of cells with two blanks between columns, each as wide as its widest cell; the last one only if `filled`.
#[must_use]
pub fn columns(rows: &[Vec<String>], filled: bool) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cells(cell)));
    }
    let mut out = String::new();
    for row in rows {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if at > 0 {
                out.push_str("  ");
            }
            out.push_str(cell);
            if filled || at + 1 < row.len() {
                out.extend(std::iter::repeat_n(' ', width.saturating_sub(cells(cell))));
            }
        }
        out.push('\n');
    }
    out
}

/// Terminal cells of a text: two for a wide character, none for a mark on another.
#[must_use]
pub fn cells(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The text up to `most` cells; a mark says that it was cut.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    if cells(text) <= most {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += width(*c);
        used <= most
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

const fn width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_cells() {
        assert_eq!((cells("aé漢🚀"), cells("e\u{301}")), (6, 1));
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
        assert_eq!(cut("abc", 3), "abc");
        let rows = [["a", "漢", "x"], ["bb", "c", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows, false), "a   漢  x\nbb  c   \n");
        assert_eq!(columns(&rows, true), "a   漢  x\nbb  c    \n");
    }
}
