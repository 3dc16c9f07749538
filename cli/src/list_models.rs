//! `--list-models`: the models that can be used, as a table (spec 40 §3.7).

use tau_core::model::Model;

use crate::args::ListModels;
use crate::config::Access;
use crate::table::columns;

const TITLES: [&str; 6] = ["provider", "model", "context", "max-out", "thinking", "images"];

/// The table, or one line when there is nothing to show.
#[must_use]
pub fn table(access: &Access, wanted: &ListModels) -> String {
    let entries = access.catalog.entries();
    let mut usable: Vec<(&str, bool)> = Vec::new();
    let mut is_usable = |provider| match usable.iter().find(|(name, _)| *name == provider) {
        Some((_, known)) => *known,
        None => {
            let known = access.usable(provider);
            usable.push((provider, known));
            known
        }
    };
    let mut models: Vec<Model> =
        entries.iter().filter(|entry| is_usable(entry.provider)).map(|entry| entry.model()).collect();
    // The demo is no model to work with; it is shown when there is nothing else.
    if models.iter().any(|model| model.api != "demo") {
        models.retain(|model| model.api != "demo");
    }
    if models.is_empty() {
        return "no model can be used: no provider has credentials\n".into();
    }
    if let ListModels::Search(search) = wanted {
        models.retain(|model| fits(search, &format!("{} {}", model.provider, model.id)));
        if models.is_empty() {
            return format!("no model matches \"{search}\"\n");
        }
    }
    models.sort_by(|a, b| (&a.provider, &a.id).cmp(&(&b.provider, &b.id)));
    let titles = TITLES.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(titles).chain(models.iter().map(row)).collect();
    columns(&rows, true)
}

fn row(model: &Model) -> Vec<String> {
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    vec![
        model.provider.clone(),
        model.id.clone(),
        tokens(model.context_window),
        tokens(model.max_tokens),
        yes(model.reasoning),
        yes(model.image_input),
    ]
}

/// `100K`, `4.1K`, `1M`; small numbers as they are.
fn tokens(count: u64) -> String {
    let short = |unit: f64, mark: &str| {
        let tenths = (count as f64 / unit * 10.0).round() / 10.0;
        if tenths.fract() == 0.0 { format!("{tenths:.0}{mark}") } else { format!("{tenths:.1}{mark}") }
    };
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => short(1e3, "K"),
        _ => short(1e6, "M"),
    }
}

/// Every word of the search has its letters in the text, in order, case aside.
fn fits(search: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    search.to_lowercase().split_whitespace().all(|word| {
        let mut rest = text.chars();
        word.chars().all(|c| rest.any(|other| other == c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        let shown: Vec<String> = [999, 1000, 4096, 8192, 200_000, 1_048_576].map(tokens).into();
        assert_eq!(shown, ["999", "1K", "4.1K", "8.2K", "200K", "1M"]);
    }

    #[test]
    fn letters_in_order() {
        assert!(fits("son", "anthropic claude-sonnet-5"));
        assert!(fits("open mini", "OpenAI gpt-mini"));
        assert!(!fits("two", "mock m2"));
    }
}
