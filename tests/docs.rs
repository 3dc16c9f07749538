//! What the documents show is what happens.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use tau_core::compaction::cut::{Part, choose, settle};
use tau_core::compaction::should_compact;
use tau_core::model::catalog::Catalog;
use tau_core::model::scope::{What, scope};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::op::Credential;
use tau_core::prompt::templates;
use tau_core::provider::{APIS, ModelRequest, RequestOptions, encoder};
use tau_core::settings::{CompactionSettings, Scope, Source, load};
use tau_core::skills::command::{self, Expansion};
use tau_core::skills::disk::{Disk, Entry, EntryKind, ReadFault, Target};
use tau_core::skills::scan_folder;

const SKILLS: &str = include_str!("../docs/skills.md");
const MODELS: &str = include_str!("../docs/models.md");
const COMPACTION: &str = include_str!("../docs/compaction.md");

/// The fenced blocks of a language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    document.split(start.as_str()).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// A folder with one file.
struct One(&'static str, String);

impl Disk for One {
    fn list(&mut self, _: &str) -> Option<Vec<Entry>> {
        Some(vec![Entry { name: self.0.into(), kind: EntryKind::File }])
    }

    fn follow(&mut self, _: &str) -> Target {
        Target::File
    }

    fn read(&mut self, _: &str, _: usize) -> Result<String, ReadFault> {
        Ok(self.1.clone())
    }

    fn real(&mut self, path: &str) -> Option<String> {
        Some(path.into())
    }
}

#[test]
fn the_skill_of_the_document_is_one() {
    let file = blocks(SKILLS, "markdown")[0];
    let folder = "/home/ada/.pi/agent/skills/release";
    let (skills, problems) = scan_folder(&mut One("SKILL.md", file.into()), folder);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((skills.len(), skills[0].name.as_str()), (1, "release"));
    let mut read = |_: &str| Ok(file.to_owned());
    let Expansion::Message(message) =
        command::expand("/skill:release 1.4, without a tag", &skills, &mut read)
    else {
        panic!("the command of the document names no skill");
    };
    // The document shows the beginning of the body.
    let (before, after) = blocks(SKILLS, "text")[0].split_once('…').unwrap();
    assert!(message.starts_with(before.trim_end()) && message.ends_with(after), "{message}");
}

#[test]
fn the_template_of_the_document_works() {
    let template = templates::load("review.md", blocks(SKILLS, "markdown")[1]).unwrap().unwrap();
    assert_eq!(template.argument_hint.as_deref(), Some("FILE [FOCUS]"));
    let sent = templates::expand("/review src/parse.rs 'error messages'", &[template]).unwrap();
    assert!(sent.starts_with("Review src/parse.rs. Look at error messages first"), "{sent}");
}

#[test]
fn arguments_are_filled_in_as_the_table_says() {
    let table = SKILLS.split("| in the template |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cell = |text: &str| text.trim().trim_matches('`').to_owned();
    let mut count = 0;
    for row in rows {
        let cells: Vec<String> = row.trim_matches('|').split('|').map(cell).collect();
        let [template, arguments, wanted] = &cells[..] else { panic!("{row}") };
        let found = templates::substitute(template, &templates::split_arguments(arguments));
        assert_eq!(&found, wanted, "{row}");
        count += 1;
    }
    assert!(count > 10);
}

#[test]
fn the_settings_of_the_document_count() {
    let text = Ok(Some(blocks(COMPACTION, "json")[0]));
    let (settings, faults) = load(&[Source { scope: Scope::Global, path: "settings.json", text }]);
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(settings.compaction("any", "model"), Ok(CompactionSettings::default()));
    let own = settings.compaction("local", "qwen3-coder").unwrap();
    assert_eq!((own.reserve_tokens, own.keep_recent_tokens), (6000, 8000));
    assert_eq!(settings.branch_summary().reserve_tokens, 16_384);
}

#[test]
fn the_figures_of_the_document_are_right() {
    let settings = CompactionSettings::default();
    assert!(COMPACTION.contains("183616 tokens are not too many, 183617 are"));
    assert!(!should_compact(183_616, 200_000, &settings) && should_compact(183_617, 200_000, &settings));
    let example = blocks(COMPACTION, "text")[0];
    let entries: Vec<(Part, u64)> = example
        .split(", ")
        .map(|entry| {
            let (what, tokens) = entry.split_once(' ').unwrap();
            let part = match what {
                "user" => Part::Start,
                "reply" => Part::Reply,
                _ => Part::Bound,
            };
            (part, tokens.trim().parse().unwrap())
        })
        .collect();
    let parts: Vec<Part> = entries.iter().map(|(part, _)| *part).collect();
    let choice = choose(&parts, settings.keep_recent_tokens, |at| entries[at].1);
    let cut = settle(&parts, choice.cut);
    let kept: u64 = entries[cut.first_kept..].iter().map(|(_, tokens)| tokens).sum();
    assert!(COMPACTION.contains("before the reply of 4000 behind it: 9000 tokens are kept"));
    assert_eq!((entries[cut.first_kept].1, kept, cut.turn_start), (4000, 9000, Some(0)));
}

#[test]
fn the_models_of_the_document_are_right() {
    let examples = blocks(MODELS, "json models");
    assert_eq!(examples.len(), 2);
    let catalogs: Vec<Catalog> =
        examples.iter().map(|text| Catalog::load("models.json", Ok(Some(text)))).collect();
    for catalog in &catalogs {
        assert!(catalog.faults().is_empty(), "{:?}", catalog.faults());
    }
    let plain = catalogs[0].find("workshop", "qwen3-coder").unwrap();
    assert_eq!((plain.context_window, plain.max_tokens), (128_000, 16_384));
    let glm = catalogs[0].find("workshop", "glm-5").unwrap();
    assert!(glm.image_input && glm.supports(ThinkingLevel::Max) && !glm.supports(ThinkingLevel::Minimal));
    let opus = catalogs[1].find("anthropic", "claude-opus-5-5").unwrap();
    assert_eq!((opus.context_window, opus.rates.input, opus.rates.output), (400_000, 3.0, 20.0));
    assert_eq!(opus.base_url, "https://gateway.example/anthropic");
    let kimi = catalogs[1].find("openrouter", "moonshotai/kimi-k2.7-code").unwrap();
    assert_eq!(kimi.compat.unwrap()["openRouterRouting"]["only"][0], "moonshotai");
}

#[test]
fn the_patterns_of_the_document_name_models() {
    let catalog = Catalog::default();
    let text = blocks(MODELS, "json settings")[0];
    let (settings, faults) =
        load(&[Source { scope: Scope::Global, path: "settings.json", text: Ok(Some(text)) }]);
    assert!(faults.is_empty(), "{faults:?}");
    let found = scope(&catalog.entries(), &|_| true, settings.enabled_models());
    let noted: Vec<String> = found
        .remarks
        .iter()
        .filter(|remark| !matches!(remark.what, What::Ambiguous(_)))
        .map(ToString::to_string)
        .collect();
    assert!(noted.is_empty(), "{noted:?}");
    assert!(found.models.len() > 400 && found.models[0].level == Some(ThinkingLevel::High));
}

/// The addresses of the table are asked, and every flag of a service that is looked at is in the tables.
#[test]
fn protocols_of_the_document() {
    let key = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.s";
    for api in APIS {
        let row = MODELS.lines().find(|line| line.starts_with(&format!("| `{api}` |"))).expect(api);
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let model = Model {
            id: "ID".into(),
            api: api.into(),
            provider: "p".into(),
            base_url: cells[2].into(),
            max_tokens: 100,
            ..Model::default()
        };
        let credential = Credential { api_key: Some(key.into()), ..Credential::default() };
        let options = RequestOptions::default();
        let request = ModelRequest {
            model: &model,
            messages: &[],
            options: &options,
            credential: &credential,
            now_ms: 0,
        };
        let made = encoder(api).unwrap().encode(&request).unwrap();
        assert_eq!(made.url, cells[3]);
        let header = made.headers.iter().find(|(_, value)| value.contains(key)).unwrap();
        let scheme = header.1.strip_suffix(key).unwrap().trim();
        let told = if scheme.is_empty() { header.0.clone() } else { format!("{}: {scheme}", header.0) };
        assert!(cells[4].starts_with(&told), "{api}: {told}");
    }
    let sources = [
        include_str!("../core/src/provider/openai_completions/compat.rs"),
        include_str!("../core/src/provider/openai_responses/compat.rs"),
        include_str!("../core/src/provider/anthropic/compat.rs"),
    ];
    let words = sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let is_flag = |word: &&str| {
        ["supports", "requires", "force", "allow", "send"].iter().any(|start| word.starts_with(start))
    };
    let flags: Vec<&str> = words.filter(is_flag).collect();
    assert!(flags.len() > 20, "{flags:?}");
    for flag in flags {
        assert!(MODELS.contains(&format!("`{flag}`")), "{flag} is not documented");
    }
}
