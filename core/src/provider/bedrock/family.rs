//! What the models behind the service can do, read from their ids: Bedrock has no flags for it.

use alloc::string::String;

use crate::model::Model;

/// Families that differ in thinking and caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Claude of a version, `(0, 0)` when the id does not tell.
    Claude(Version),
    /// OpenAI's open models.
    GptOss,
    /// OpenAI's other models.
    Gpt,
    /// Any other.
    Other,
}

/// A version of Claude; `fast` = Haiku.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    major: u32,
    minor: u32,
    fast: bool,
}

impl Family {
    /// By id, and by name where the id is that of an inference profile.
    pub(super) fn of(model: &Model) -> Self {
        let id = model.id.to_ascii_lowercase();
        let name = model.name.to_ascii_lowercase();
        let claude = |text: &str| text.contains("claude") || text.contains("anthropic.");
        if claude(&id) || claude(&name) {
            let of_id = Version::of(&id);
            return Self::Claude(if of_id.major == 0 { Version::of(&name) } else { of_id });
        }
        match [&id, &name] {
            texts if texts.iter().any(|text| text.contains("gpt-oss")) => Self::GptOss,
            texts if texts.iter().any(|text| text.contains("gpt-")) => Self::Gpt,
            _ => Self::Other,
        }
    }

    pub(super) const fn is_claude(self) -> bool {
        matches!(self, Self::Claude(_))
    }

    /// Whether prompts are cached where a marker says so.
    pub(super) fn caches(self) -> bool {
        let Self::Claude(Version { major, minor, fast }) = self else { return false };
        major >= 4 || (major, minor) == (3, 7) || ((major, minor) == (3, 5) && fast)
    }

    /// Whether the model thinks by effort, not by a number of tokens.
    pub(super) fn is_adaptive(self) -> bool {
        matches!(self, Self::Claude(Version { major, minor, .. }) if (major, minor) >= (4, 6))
    }

    /// Whether the model knows an effort above high.
    pub(super) fn thinks_harder(self) -> bool {
        matches!(self, Self::Claude(Version { major, minor, .. }) if (major, minor) >= (4, 7))
    }
}

impl Version {
    /// The first one or two short numbers behind "claude": `claude-sonnet-4-5-20250929-v1:0` is 4.5.
    fn of(text: &str) -> Self {
        let Some((_, rest)) = text.split_once("claude") else { return Self::default() };
        let parts = rest.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        let mut numbers = [None; 2];
        for part in parts {
            let number = Some(part).filter(|part| part.len() <= 2).and_then(|part| part.parse::<u32>().ok());
            match (&mut numbers, number) {
                ([major @ None, _], Some(number)) => *major = Some(number),
                ([_, minor @ None], Some(number)) => *minor = Some(number),
                // The two stand side by side.
                ([Some(_), _], None) => break,
                _ => {}
            }
        }
        let [major, minor] = numbers.map(Option::unwrap_or_default);
        Self { major, minor, fast: rest.contains("haiku") }
    }
}

/// Whether requests go to the isolated partition of the government, whose models lack some options.
pub(super) fn is_gov_cloud(model: &Model) -> bool {
    let id: String = model.id.to_ascii_lowercase();
    id.starts_with("us-gov.") || id.starts_with("arn:aws-us-gov:") || model.base_url.contains(".us-gov-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_what_a_model_can_do() {
        // Claude, caches, by effort, above high.
        for (id, name, wanted) in [
            ("anthropic.claude-sonnet-4-5-20250929-v1:0", "", [true, true, false, false]),
            ("us.anthropic.claude-sonnet-4-20250514-v1:0", "", [true, true, false, false]),
            ("us.anthropic.claude-opus-4-8-v1", "", [true, true, true, true]),
            ("global.anthropic.claude-opus-4-6-v1", "", [true, true, true, false]),
            ("anthropic.claude-fable-5", "", [true, true, true, true]),
            ("anthropic.claude-haiku-4-5-20251001-v1:0", "", [true, true, false, false]),
            ("anthropic.claude-3-7-sonnet-20250219-v1:0", "", [true, true, false, false]),
            ("anthropic.claude-3-5-haiku-20241022-v1:0", "", [true, true, false, false]),
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", "", [true, false, false, false]),
            ("anthropic.claude-v2:1", "", [true, false, false, false]),
            (
                "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x",
                "Claude",
                [true, false, false, false],
            ),
            ("arn:aws:bedrock:eu-west-1:1:inference-profile/x", "Claude Opus 5.5", [true, true, true, true]),
            ("openai.gpt-5.6-sol", "", [false; 4]),
            ("amazon.nova-pro-v1:0", "Nova Pro", [false; 4]),
        ] {
            let model = Model { id: id.into(), name: name.into(), ..Model::default() };
            let family = Family::of(&model);
            let got = [family.is_claude(), family.caches(), family.is_adaptive(), family.thinks_harder()];
            assert_eq!(got, wanted, "{id} {name}: {family:?}");
        }
        for (id, wanted) in [
            ("openai.gpt-oss-120b-1:0", Family::GptOss),
            ("global.openai.gpt-6.2-sol", Family::Gpt),
            ("deepseek.r1", Family::Other),
        ] {
            assert_eq!(Family::of(&Model { id: id.into(), ..Model::default() }), wanted);
        }
        let gov = Model { id: "us-gov.anthropic.claude-sonnet-4-5-v1:0".into(), ..Model::default() };
        assert!(is_gov_cloud(&gov) && !is_gov_cloud(&Model::default()));
    }
}
