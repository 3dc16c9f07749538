//! What is added to the text of a failed exchange: which model, at which host, and what a person can do.
//!
//! The words before it decide about retries and overflow ([`crate::retry::classify`], [`crate::overflow`]). Names of
//! models and hosts may look like anything, so the addition stands at the end, in brackets, and [`words`] takes it
//! off again.

use alloc::format;
use alloc::string::String;

use crate::fault::FaultKind;
use crate::message::AssistantMessage;

/// How an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The service answered with a status that is no success.
    Status(u16),
    /// The connection failed, before the answer or within it.
    Lost(FaultKind),
    /// A success that is no event stream: likely no API of models at all.
    NoStream,
    /// The reply itself tells of a failure, or makes no sense.
    Reply,
}

/// Adds `[provider/model at host: advice]` to the text of a failure; with the status when the text does not name it.
pub fn locate(text: &mut String, reply: &AssistantMessage, host: &str, trouble: Trouble) {
    let end = text.trim_end().len();
    text.truncate(end);
    let status = match trouble {
        Trouble::Status(status) if !text.contains(&format!("{status}")) => format!(", status {status}"),
        _ => String::new(),
    };
    let advice = advice(trouble, &reply.provider, &reply.model);
    text.push_str(&format!("{}{host}{status}: {advice}]", start(reply)));
}

/// The words of a failed reply without what [`locate`] added.
#[must_use]
pub fn words(reply: &AssistantMessage) -> Option<&str> {
    let text = reply.error_message.as_deref()?;
    Some(text.rfind(&start(reply)).and_then(|at| text.get(..at)).unwrap_or(text))
}

fn start(reply: &AssistantMessage) -> String {
    format!(" [{}/{} at ", reply.provider, reply.model)
}

fn advice(trouble: Trouble, provider: &str, model: &str) -> String {
    const LATER: &str = "try again later, or choose another model";
    match trouble {
        Trouble::Status(401 | 403) => format!(
            "the service refused the credentials; `tau auth status` tells where they come from, \
             `tau auth login {provider}` replaces them"
        ),
        Trouble::Status(402) => "see to the account at the service, or choose another model".into(),
        Trouble::Status(404 | 405 | 410) => format!(
            "check the model id and baseUrl of {provider} in models.json; `tau --list-models {model}` shows similar models"
        ),
        Trouble::Status(407) | Trouble::Lost(FaultKind::Proxy) => {
            "check HTTPS_PROXY, HTTP_PROXY, NO_PROXY and the setting httpProxy".into()
        }
        Trouble::Status(408 | 429 | 500..) | Trouble::Lost(FaultKind::Reset) => LATER.into(),
        Trouble::Status(300..=399) => format!(
            "redirects are not followed; if the new address is right, make it baseUrl of {provider} in models.json"
        ),
        Trouble::Status(200..) => {
            format!("the service does not take this request; `compat` of {provider} in models.json can change its form")
        }
        Trouble::Lost(FaultKind::Dns | FaultKind::Connect) => {
            format!("is the service there? Check the network and baseUrl of {provider} in models.json")
        }
        Trouble::Lost(FaultKind::TimedOut) => {
            "try again later, or allow more time with the settings httpIdleTimeoutMs and retry.provider.timeoutMs".into()
        }
        Trouble::Lost(FaultKind::Tls) => {
            "check the certificates: NODE_EXTRA_CA_CERTS or SSL_CERT_FILE name a file with further authorities".into()
        }
        Trouble::Lost(FaultKind::Invalid) => format!(
            "check the key (`tau auth status` tells where it comes from), and baseUrl and headers of {provider} in models.json"
        ),
        Trouble::Status(..=199) | Trouble::Lost(_) | Trouble::NoStream => {
            format!("this may be no API of models; check baseUrl and api of {provider} in models.json")
        }
        Trouble::Reply => LATER.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::StopReason;
    use crate::overflow::is_overflow;
    use crate::retry::is_transient;

    fn failed(text: &str, trouble: Trouble) -> AssistantMessage {
        let mut reply = AssistantMessage {
            provider: "p".into(),
            model: "gpt-503".into(),
            stop_reason: StopReason::Error,
            ..AssistantMessage::default()
        };
        let mut text = text.into();
        locate(&mut text, &reply, "http://overloaded.example:429", trouble);
        reply.error_message = Some(text);
        reply
    }

    #[test]
    fn every_trouble_has_its_advice() {
        for (trouble, part) in [
            (Trouble::Status(401), "tau auth login p"),
            (Trouble::Status(403), "tau auth status"),
            (Trouble::Status(402), "account"),
            (Trouble::Status(404), "--list-models gpt-503"),
            (Trouble::Status(407), "httpProxy"),
            (Trouble::Status(429), "later"),
            (Trouble::Status(503), "later"),
            (Trouble::Status(302), "redirects"),
            (Trouble::Status(101), "api of p"),
            (Trouble::Status(400), "compat"),
            (Trouble::Lost(FaultKind::Dns), "baseUrl"),
            (Trouble::Lost(FaultKind::Connect), "network"),
            (Trouble::Lost(FaultKind::Reset), "later"),
            (Trouble::Lost(FaultKind::Proxy), "NO_PROXY"),
            (Trouble::Lost(FaultKind::Tls), "NODE_EXTRA_CA_CERTS"),
            (Trouble::Lost(FaultKind::TimedOut), "httpIdleTimeoutMs"),
            (Trouble::Lost(FaultKind::Invalid), "tau auth status"),
            (Trouble::Lost(FaultKind::Other), "api of p"),
            (Trouble::NoStream, "baseUrl"),
            (Trouble::Reply, "later"),
        ] {
            let text = failed("x", trouble).error_message.unwrap();
            let status = match trouble {
                Trouble::Status(status) => format!(", status {status}"),
                _ => String::new(),
            };
            let start = format!("x [p/gpt-503 at http://overloaded.example:429{status}: ");
            assert!(text.starts_with(&start), "{text}");
            assert!(text.contains(part) && text.ends_with(']'), "{text}");
        }
    }

    #[test]
    fn only_the_words_before_it_count() {
        let reply = failed("400 no [p/x at]", Trouble::Lost(FaultKind::TimedOut));
        assert_eq!(words(&reply), Some("400 no [p/x at]"));
        assert!(!is_transient(&reply));
        assert!(is_transient(&failed("503 busy", Trouble::Status(503))));
        assert!(is_overflow(&failed("413", Trouble::Status(413)), None));
        assert_eq!(words(&AssistantMessage::default()), None);
        let plain = AssistantMessage { error_message: Some("plain".into()), ..AssistantMessage::default() };
        assert_eq!(words(&plain), Some("plain"));
    }
}
