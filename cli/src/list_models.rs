//! `--list-models`: the models that can be used, as a table (spec 40 §3.7).

use tau_core::model::builtin;
use tau_core::model::catalog::Entry;
use tau_core::model::select::once_per_provider;
use tau_core::provider::demo;

use crate::args::ListModels;
use crate::config::Access;
use crate::table::columns;
use crate::visible::one_line;

const TITLES: [&str; 7] = ["provider", "model", "context", "max-out", "thinking", "images", "price"];

/// Stands for a price that is not known, or that nobody pays per token.
const NO_PRICE: &str = "-";

/// The table, or one line when there is nothing to show. Prices are USD per million tokens of input and output; a list
/// of nothing but models of one's own has the columns that Pi's has.
#[must_use]
pub fn table(access: &Access, wanted: &ListModels) -> String {
    let usable = |provider: &str| access.usable(provider);
    let mut is_usable = once_per_provider(&usable);
    let mut models = access.catalog.entries();
    models.retain(|entry| is_usable(entry.provider));
    // The demo is no model to work with; it is shown when there is nothing else.
    if models.iter().any(|entry| entry.provider != demo::API) {
        models.retain(|entry| entry.provider != demo::API);
    }
    if models.is_empty() {
        return "no model can be used: no provider has credentials\n".into();
    }
    if let ListModels::Search(search) = wanted {
        models.retain(|entry| is_meant(search, entry.provider, entry.id));
        if models.is_empty() {
            return format!("no model matches \"{}\"\n", one_line(search));
        }
    }
    models.sort_by_key(|entry| (entry.provider, entry.id));
    let titles = TITLES.map(str::to_owned).to_vec();
    let mut rows: Vec<Vec<String>> = std::iter::once(titles).chain(models.iter().map(row)).collect();
    let is_built_in = |entry: &Entry<'_>| builtin::sections().any(|section| section.id == entry.provider);
    if !models.iter().any(is_built_in) {
        rows.iter_mut().for_each(|row| row.truncate(TITLES.len() - 1));
    }
    columns(&rows, true)
}

fn row(entry: &Entry<'_>) -> Vec<String> {
    let facts = entry.facts();
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    vec![
        one_line(entry.provider),
        one_line(entry.id),
        tokens(facts.context_window),
        tokens(facts.max_tokens),
        yes(facts.reasoning),
        yes(facts.image_input),
        price(facts.input, facts.output),
    ]
}

fn price(input: f64, output: f64) -> String {
    if input == 0.0 && output == 0.0 { NO_PRICE.into() } else { format!("${input}/${output}") }
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

/// Whether a search is for a model: by words, or by a name as `--model` takes it.
fn is_meant(search: &str, provider: &str, id: &str) -> bool {
    fits(search, &format!("{provider} {id}"))
        || search.contains('/') && fits(search, &format!("{provider}/{id}"))
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
    fn prices_are_short() {
        assert_eq!([price(5.0, 25.0), price(0.25, 2.0), price(0.0, 0.0)], ["$5/$25", "$0.25/$2", "-"]);
    }

    #[test]
    fn letters_in_order() {
        assert!(fits("son", "anthropic claude-sonnet-5"));
        assert!(fits("open mini", "OpenAI gpt-mini"));
        assert!(!fits("two", "mock m2"));
        assert!(is_meant("openai/gpt", "openai", "gpt-5.5") && is_meant("moon/kimi", "p", "moonshot/kimi"));
        assert!(!is_meant("openai/gpt", "azure", "gpt-5.5"));
    }
}
