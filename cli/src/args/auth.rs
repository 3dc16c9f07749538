//! Arguments of `tau auth`, and its help.

/// What to do with credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// Explains the command.
    #[default]
    Help,
    /// Tells which providers have credentials.
    Status,
    /// Whether a provider or model can be used.
    Check,
    /// Prints a key.
    PrintApiKey,
    /// Prints the token of a sign-in.
    PrintBearerToken,
    /// Stores a credential.
    Login,
    /// Removes a stored credential.
    Logout,
}

/// `tau auth VERB …`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthArgs {
    /// What to do.
    pub verb: Verb,
    /// The provider to sign in at or out of.
    pub word: Option<String>,
    /// `--provider`
    pub provider: Option<String>,
    /// `--model`
    pub model: Option<String>,
    /// `--json`
    pub json: bool,
    /// `--credentials`
    pub credentials: bool,
    /// `--no-refresh`
    pub no_refresh: bool,
    /// `--min-expiry`, ms
    pub min_expiry: Option<i64>,
    /// `--api-key`
    pub api_key: bool,
    /// `--no-browser`
    pub no_browser: bool,
}

/// What is wrong with the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// For people.
    pub text: String,
    /// Exit code: `check` tells a question that makes no sense (2) from an unknown option (1).
    pub code: u8,
}

impl Misuse {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    fn of(verb: Verb, text: impl Into<String>) -> Self {
        Self { text: text.into(), code: if verb == Verb::Check { 2 } else { 1 } }
    }
}

const VERBS: [(&str, Verb); 7] = [
    ("help", Verb::Help),
    ("status", Verb::Status),
    ("check", Verb::Check),
    ("print-api-key", Verb::PrintApiKey),
    ("print-bearer-token", Verb::PrintBearerToken),
    ("login", Verb::Login),
    ("logout", Verb::Logout),
];

/// Reads what follows `auth` on the command line.
///
/// # Errors
/// What is wrong with it.
pub fn parse(items: impl IntoIterator<Item = String>) -> Result<AuthArgs, Misuse> {
    let items: Vec<String> = items.into_iter().collect();
    if items.iter().any(|item| item == "--help" || item == "-h") {
        return Ok(AuthArgs::default());
    }
    let mut items = items.into_iter();
    let Some(name) = items.next() else { return Ok(AuthArgs::default()) };
    let Some((_, verb)) = VERBS.into_iter().find(|(own, _)| *own == name) else {
        return Err(Misuse::new(format!("auth: {name} is not a command; `tau auth help` tells more")));
    };
    let mut args = AuthArgs { verb, ..AuthArgs::default() };
    while let Some(item) = items.next() {
        let mut value =
            || items.next().ok_or_else(|| Misuse::of(verb, format!("auth {name}: {item} needs a value")));
        let targets = matches!(verb, Verb::Check | Verb::PrintApiKey | Verb::PrintBearerToken);
        match item.as_str() {
            "--offline" => {}
            "--provider" if targets => args.provider = Some(value()?),
            "--model" if targets => args.model = Some(value()?),
            "--json" if matches!(verb, Verb::Check | Verb::Status) => args.json = true,
            "--credentials" if verb == Verb::Check => args.credentials = true,
            "--no-refresh" if verb == Verb::Check => args.no_refresh = true,
            "--min-expiry" if verb == Verb::PrintBearerToken => args.min_expiry = Some(duration(&value()?)?),
            "--api-key" if verb == Verb::Login => args.api_key = true,
            "--api-key" if verb == Verb::Check => {
                return Err(Misuse::of(
                    verb,
                    "auth check: a key is not given but looked for; leave --api-key out",
                ));
            }
            "--no-browser" if verb == Verb::Login => args.no_browser = true,
            option if option.starts_with('-') => {
                let text = format!("auth {name}: unknown option {option}; `tau auth help` tells more");
                return Err(Misuse::new(text));
            }
            _ if matches!(verb, Verb::Login | Verb::Logout) && args.word.is_none() => args.word = Some(item),
            _ => return Err(Misuse::of(verb, format!("auth {name}: {item} is one word too many"))),
        }
    }
    let missing = match verb {
        Verb::Check | Verb::PrintApiKey | Verb::PrintBearerToken => {
            (args.provider.is_none() && args.model.is_none()).then_some("--provider NAME or --model NAME")
        }
        Verb::Login | Verb::Logout => args.word.is_none().then_some("the name of a provider"),
        Verb::Help | Verb::Status => None,
    };
    if let Some(what) = missing {
        return Err(Misuse::of(verb, format!("auth {name}: needs {what}")));
    }
    if args.api_key && args.no_browser {
        return Err(Misuse::new("auth login: a key needs no browser; leave out --api-key or --no-browser"));
    }
    Ok(args)
}

/// A whole number and a unit, in ms.
fn duration(text: &str) -> Result<i64, Misuse> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let ms = number.parse::<i64>().ok().and_then(|number| number.checked_mul(factor));
    ms.filter(|_| factor > 0)
        .ok_or_else(|| Misuse::new(format!("--min-expiry {text}: must be like 30m, 2h, 90s or 500ms")))
}

/// The help text.
#[must_use]
pub fn help() -> String {
    "tau auth status                   providers with credentials, and where these come from\n\
     tau auth check --provider NAME    whether it can be used: ready (exit code 0), not_ready (1), invalid (2)\n\
     tau auth print-api-key            prints the key of --provider NAME or --model NAME\n\
     tau auth print-bearer-token       prints the token of a sign-in, a fresh one if need be\n\
     tau auth login NAME               signs in with a browser or a code, or asks for a key, and stores that\n\
     tau auth logout NAME              removes what is stored\n\n\
     --provider NAME, --model NAME     who is meant; for check and print-…\n\
     --json                            for programs; for status and check\n\
     --credentials                     check prints the key or token\n\
     --no-refresh                      check only reads: no network, no command, nothing is written\n\
     --api-key                         login asks for a key, also where there is a sign-in\n\
     --no-browser                      login opens no browser here\n\
     --min-expiry TIME                 how long a token must be good, like 30m (the default), 2h, 90s\n\n\
     Keys may also come from the environment or models.json; logout leaves those alone.\n"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<AuthArgs, u8> {
        parse(line.split_whitespace().map(str::to_owned)).map_err(|misuse| misuse.code)
    }

    #[test]
    fn lines() {
        for (line, verb) in [
            ("", Verb::Help),
            ("help", Verb::Help),
            ("check --help", Verb::Help),
            ("status --json", Verb::Status),
            ("logout x --offline", Verb::Logout),
            ("print-bearer-token --provider x --min-expiry 1H", Verb::PrintBearerToken),
        ] {
            assert_eq!(read(line).map(|args| args.verb), Ok(verb), "{line}");
        }
        for (line, code) in [
            ("frobnicate", 1),
            ("check", 2),
            ("check x", 2),
            ("check --provider", 2),
            ("check --provider x --api-key", 2),
            ("check --provider x --frob", 1),
            ("check --provider x --min-expiry 1h", 1),
            ("print-api-key", 1),
            ("print-api-key --provider x --json", 1),
            ("print-bearer-token --provider x --min-expiry", 1),
            ("login", 1),
            ("login a b", 1),
            ("login a --api-key --no-browser", 1),
            ("logout --all", 1),
        ] {
            assert_eq!(read(line).map(|args| args.verb), Err(code), "{line}");
        }
    }

    #[test]
    fn times() {
        for (text, ms) in
            [("500ms", Some(500)), ("2H", Some(7_200_000)), ("1M", Some(60_000)), ("90S", Some(90_000))]
        {
            assert_eq!(duration(text).ok(), ms, "{text}");
        }
        for text in ["", "5", "1d", "-1h", "1.5h", "h", "9223372036854775807h", "1 h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn help_fits() {
        assert!(help().lines().all(|line| line.chars().count() <= 110));
    }
}
