//! `tau auth login`: a sign-in at the terminal. The script says what is needed; this does it.

use std::cell::RefCell;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use tau_core::auth::oauth::form::{decode, find};
use tau_core::auth::oauth::{Answer, Ask, Hosts, Loopback, Notice, Prompt, Random, Script, SignIn, Step};
use tau_core::json::Value;
use tau_core::settings::Scope;
use tau_io_std::sys::callback::{Callback, Visitor};
use tau_io_std::sys::clock::wall;
use tau_io_std::sys::{browser, env, random, tls};

use crate::auth_talk::Talk;
use crate::settings_store::{self, PASSING};
use crate::surroundings::Surroundings;
use crate::visible::harmless;

/// A browser may take this long to come back.
const VISIT_LIMIT: Duration = Duration::from_secs(15 * 60);
/// One exchange.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(30);

/// A person at a terminal who signs in.
pub struct Login<'a> {
    /// Sends the requests.
    pub talk: &'a Talk,
    /// Do not open a browser here.
    pub no_browser: bool,
    listening: Option<(Callback, Option<String>)>,
    visitor: Option<Visitor>,
    /// Lines the person writes while a browser is waited for.
    lines: RefCell<Option<Receiver<String>>>,
}

impl<'a> Login<'a> {
    /// A new sign-in.
    #[must_use]
    pub const fn new(talk: &'a Talk, no_browser: bool) -> Self {
        Self { talk, no_browser, listening: None, visitor: None, lines: RefCell::new(None) }
    }

    /// Signs in: the credential to store.
    ///
    /// # Errors
    /// Why not; holds no secret.
    pub fn run(
        &mut self,
        place: &Surroundings,
        provider: &str,
        device_id: Option<&str>,
    ) -> Result<Value, String> {
        let wish = SignIn {
            provider: provider.to_owned(),
            random: unpredictable()?,
            device_id: device_id.map(str::to_owned).or_else(|| new_device_id(place, provider)),
            agent: Some("tau".to_owned()),
        };
        let mut script = Script::sign_in(wish, Hosts::new(&env::var), wall().0);
        let mut step = script.begin();
        loop {
            step = match step {
                Step::Done(credential) => return Ok(credential),
                Step::Failed(why) => return Err(format!("signing in to {provider} failed: {why}")),
                Step::Ask(ask) => {
                    let answer = self.answer(ask);
                    script.answer(wall().0, answer)
                }
            };
        }
    }

    fn answer(&mut self, ask: Ask) -> Answer {
        match ask {
            Ask::Http(request) => self.talk.exchange(request, Instant::now() + EXCHANGE_LIMIT),
            Ask::Wait(ms) => {
                thread::sleep(Duration::from_millis(ms));
                Answer::Done
            }
            Ask::Prompt(prompt) => self.prompt(&prompt),
            Ask::Tell(notice) => {
                self.tell(&notice);
                Answer::Done
            }
            Ask::Listen(at) => self.listen(at),
            Ask::Back { prompt, listening } => self.back(prompt.as_ref(), listening),
            Ask::Show(status) => {
                if let Some(visitor) = self.visitor.take() {
                    visitor.answer(status);
                }
                Answer::Done
            }
        }
    }

    fn prompt(&self, prompt: &Prompt) -> Answer {
        match prompt {
            // The first way, unless that needs a browser here.
            Prompt::Select { ways, .. } => {
                let way = ways.iter().find(|(id, _)| !self.no_browser || *id != "browser");
                Answer::Text(way.map_or_else(String::new, |(id, _)| (*id).to_owned()))
            }
            Prompt::Text { message, placeholder } => {
                say(&format!("{message} (like {placeholder}): "));
                self.line()
            }
            Prompt::Code { placeholder } => {
                say(&format!("Paste the code, or the address that begins with {placeholder}: "));
                self.line()
            }
        }
    }

    fn tell(&self, notice: &Notice) {
        match notice {
            Notice::Progress(text) => say(&format!("{text}\n")),
            Notice::Address(address) => {
                let opened = !self.no_browser && browser::open(address);
                let text = if opened { "The browser was asked to open" } else { "Open in a browser" };
                say(&format!("{text}:\n  {address}\n"));
            }
            Notice::DeviceCode { code, address, .. } => {
                say(&format!("Open {address}\nand confirm the code {code}\n"));
                if !self.no_browser {
                    let _ = browser::open(address);
                }
            }
        }
    }

    fn listen(&mut self, at: Loopback) -> Answer {
        let host = env::var("PI_OAUTH_CALLBACK_HOST").filter(|host| !host.trim().is_empty());
        let Ok(callback) = Callback::listen(host.as_deref(), at.port, &at.path) else {
            return Answer::Port(None);
        };
        let port = callback.port().ok();
        self.listening = Some((callback, at.state));
        Answer::Port(port)
    }

    fn back(&mut self, prompt: Option<&Prompt>, listening: bool) -> Answer {
        let (Some((callback, state)), true) = (&self.listening, listening) else {
            return prompt.map_or_else(
                || Answer::NoAnswer("there is no way for the browser to come back".to_owned()),
                |prompt| self.prompt(prompt),
            );
        };
        if prompt.is_some() {
            say("Waiting for the browser. If it runs on another machine, paste the address it ends at: ");
            self.read_lines();
        }
        let deadline = Instant::now() + VISIT_LIMIT;
        let pasted = RefCell::new(None);
        let given_up = || {
            if let Some(lines) = &*self.lines.borrow() {
                *pasted.borrow_mut() = lines.try_recv().ok();
            }
            pasted.borrow().is_some()
        };
        while let Some(visitor) = callback.wait(deadline, &given_up) {
            let pairs = decode(&visitor.query);
            let foreign = state.as_deref().is_some_and(|state| find(&pairs, "state") != Some(state));
            let empty = find(&pairs, "error").is_none() && find(&pairs, "code").is_none_or(str::is_empty);
            // Whoever does not know the state does not belong to this sign-in, and does not end it.
            if foreign || empty {
                visitor.answer(400);
                continue;
            }
            say("\n");
            self.visitor = Some(visitor);
            return Answer::Query(pairs);
        }
        match pasted.into_inner() {
            Some(text) => Answer::Text(text),
            None => Answer::NoAnswer("the browser did not come back in time".to_owned()),
        }
    }

    /// Reads lines beside the waiting for a browser.
    fn read_lines(&self) {
        let mut lines = self.lines.borrow_mut();
        if lines.is_some() {
            return;
        }
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok).filter(|line| !line.trim().is_empty())
            {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        *lines = Some(receiver);
    }

    fn line(&self) -> Answer {
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(count) if count > 0 => Answer::Text(line.trim().to_owned()),
            _ => Answer::NoAnswer("nobody answered".to_owned()),
        }
    }
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(harmless(text).as_bytes());
}

fn unpredictable() -> Result<Random, String> {
    let bytes = || -> Result<[u8; 32], String> {
        let mut bytes = [0; 32];
        random::fill(&mut bytes).map_err(|fault| fault.detail)?;
        Ok(bytes)
    };
    let verifier = BASE64.encode(bytes()?);
    let challenge = BASE64.encode(tls::sha256(verifier.as_bytes()));
    let hex = bytes()?.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let (state, nonce) = (BASE64.encode(bytes()?), BASE64.encode(bytes()?));
    Ok(Random { verifier, challenge, hex, state, nonce, uuid: uuid(random_id()?) })
}

fn random_id() -> Result<[u8; 16], String> {
    let mut bytes = [0; 16];
    random::fill(&mut bytes).map_err(|fault| fault.detail)?;
    Ok(bytes)
}

/// A random UUID (version 4) of random bytes.
pub(crate) fn uuid(bytes: [u8; 16]) -> String {
    let mut out = String::new();
    for (at, byte) in bytes.into_iter().enumerate() {
        let byte = match at {
            6 => (byte & 15) | 0x40,
            8 => (byte & 0x3f) | 0x80,
            _ => byte,
        };
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// A UUID of this installation, kept in the settings; only ChatGPT asks for it.
fn new_device_id(place: &Surroundings, provider: &str) -> Option<String> {
    if provider != "openai" {
        return None;
    }
    let id = uuid(random_id().ok()?);
    let change = settings_store::change(&["deviceId"], Some(id.as_str().into()));
    settings_store::save(place, Scope::Global, &[change], PASSING).ok()?;
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_shapes() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let random = unpredictable().unwrap();
        for text in [&random.verifier, &random.challenge, &random.state, &random.nonce] {
            assert_eq!(text.len(), 43);
        }
        assert_eq!((random.hex.len(), random.uuid.len()), (32, 36));
        assert_ne!(random.state, random.nonce);
        // RFC 7636, appendix B.
        let challenge = BASE64.encode(tls::sha256(b"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
