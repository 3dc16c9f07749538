//! Arguments of `tau models`, and its help.

/// What to do with models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// The help text.
    #[default]
    Help,
    /// Looks for servers on this machine.
    Scan,
    /// Asks for newer lists of models.
    Refresh,
}

/// `tau models VERB …`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelsArgs {
    /// What to do.
    pub verb: Verb,
    /// Providers, for `refresh`; empty = all that have credentials.
    pub providers: Vec<String>,
    /// `--offline`
    pub offline: bool,
}

/// Reads what follows `models`.
///
/// # Errors
/// What is wrong, and what there is instead.
pub fn parse(items: impl IntoIterator<Item = String>) -> Result<ModelsArgs, String> {
    let mut items = items.into_iter();
    let mut args = ModelsArgs::default();
    args.verb = match items.next().as_deref() {
        None | Some("--help" | "-h" | "help") => return Ok(args),
        Some("scan") => Verb::Scan,
        Some("refresh") => Verb::Refresh,
        Some(word) => {
            return Err(format!("tau models {word}: there are scan and refresh; --list-models lists models"));
        }
    };
    for item in items {
        match item.as_str() {
            "--help" | "-h" => return Ok(ModelsArgs::default()),
            "--offline" => args.offline = true,
            name if args.verb == Verb::Refresh && !name.starts_with('-') => args.providers.push(item),
            _ => return Err(format!("tau models does not know {item}; see `tau models --help`")),
        }
    }
    Ok(args)
}

/// The help text.
#[must_use]
pub fn help() -> String {
    "tau models VERB\n\n  \
     scan                  find Ollama, llama.cpp, LM Studio and vLLM on this machine and write their\n  \
     \u{20}                     models into models.json; what is there stays\n  \
     refresh [PROVIDER …]  ask for newer lists, of all providers with credentials or of those named\n\n\
     Options: --help, --offline. The models themselves: tau --list-models [WORDS]\n"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ModelsArgs, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn lines() {
        let verb = |line: &str| read(line).map(|args| args.verb);
        assert_eq!(verb(""), Ok(Verb::Help));
        assert_eq!(verb("scan --help"), Ok(Verb::Help));
        assert_eq!(verb("scan"), Ok(Verb::Scan));
        assert_eq!(read("refresh openai groq").unwrap().providers, ["openai", "groq"]);
        assert!(read("refresh --offline").unwrap().offline);
        for wrong in ["list", "scan openai", "refresh --all"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(help().lines().all(|line| line.chars().count() <= 100));
    }
}
