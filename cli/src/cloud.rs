//! Fetches what clouds give before a request: files, commands, exchanges; kept until shortly before it runs out.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tau_core::auth::cloud::{self, Answer, Ask, Fetched, Place, Source, Step};
use tau_core::auth::oauth;
use tau_core::auth::resolve::Resolved;
use tau_io_std::sys::clock::wall;
use tau_io_std::sys::{env, fs, tls};

use crate::auth_talk::Talk;

/// Most bytes of a file of credentials.
const MOST_BYTES: u64 = 1 << 20;

/// What was fetched in this process. Nothing of it is ever written.
#[derive(Default)]
pub struct Cloud {
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    source: Source,
    env: Vec<(String, String)>,
    base_url: String,
    fetched: Fetched,
}

/// Whether there is a file.
#[must_use]
pub fn is_file(path: &str) -> bool {
    Path::new(path).is_file()
}

impl Cloud {
    /// Completes a credential. Only one request at a time asks; others wait for what it brings.
    ///
    /// # Errors
    /// Why there is none; names the provider and the next step, holds no secret.
    pub fn complete(
        &self,
        resolved: &mut Resolved,
        provider: &str,
        base_url: &str,
        talk: &Talk,
        run: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let Some(source) = resolved.cloud.clone() else { return Ok(()) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.fetched.is_fresh(wall()));
        let is_same =
            |kept: &&Kept| kept.source == source && kept.env == resolved.env && kept.base_url == base_url;
        if let Some(kept) = kept.iter().find(is_same) {
            kept.fetched.complete(&mut resolved.credential);
            return Ok(());
        }
        let fetched = fetch(&source, &resolved.env, base_url, talk, run)
            .map_err(|why| format!("Cannot authenticate with {provider} ({}): {why}", resolved.source))?;
        fetched.complete(&mut resolved.credential);
        if fetched.is_fresh(wall()) {
            let (env, base_url) = (resolved.env.clone(), base_url.to_owned());
            kept.push(Kept { source, env, base_url, fetched });
        }
        Ok(())
    }
}

fn fetch(
    source: &Source,
    own: &[(String, String)],
    base_url: &str,
    talk: &Talk,
    run: &dyn Fn(&str) -> Option<String>,
) -> Result<Fetched, String> {
    let variable = |name: &str| {
        let own = own.iter().find(|(key, value)| key == name && !value.trim().is_empty());
        own.map(|(_, value)| value.clone()).or_else(|| env::var(name))
    };
    let home = env::home().unwrap_or_default();
    let place = Place { env: &variable, home: &home, base_url, now: wall() };
    let deadline = Instant::now() + Duration::from_millis(cloud::LIMIT_MS);
    let mut answers = Vec::new();
    loop {
        let ask = match cloud::step(source, place, &answers) {
            Step::Done(fetched) => return Ok(fetched),
            Step::Failed(why) => return Err(why),
            Step::Ask(_) if Instant::now() >= deadline => return Err("it took too long; try again".into()),
            Step::Ask(ask) => *ask,
        };
        answers.push(match ask {
            Ask::Read(path) => match fs::read(&path, MOST_BYTES) {
                Ok(bytes) => Answer::Text(String::from_utf8_lossy(&bytes).into_owned()),
                Err(fault) => Answer::Missing(fault.detail),
            },
            Ask::Run(command) => run(&command).map_or_else(|| Answer::Missing(String::new()), Answer::Text),
            Ask::Sign { key, text } => {
                tls::rs256(&key, text.as_bytes()).map_or_else(Answer::Missing, Answer::Bytes)
            }
            Ask::Http(request) => match talk.exchange(request, deadline) {
                oauth::Answer::Http { status, body, .. } => Answer::Http { status, body },
                oauth::Answer::NoAnswer(why) => Answer::Missing(why),
                _ => Answer::Missing(String::new()),
            },
        });
    }
}
