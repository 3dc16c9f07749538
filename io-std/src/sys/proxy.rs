//! Which proxy a request takes (spec 40 §5.1, bug 89).
//!
//! `{scheme}_proxy`, then the user's setting (which counts as `HTTP_PROXY` and `HTTPS_PROXY` where those are not
//! set), then `all_proxy`; lower case before upper case. `NO_PROXY` names hosts that are reached directly. As in Pi,
//! the local host is no exception by itself: `NO_PROXY=localhost,127.0.0.1` makes it one.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// A proxy to connect to. `Debug` and `Display` show no credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The connection to the proxy itself is encrypted.
    pub tls: bool,
    /// Name or address, IPv6 without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User and password as they stand in the URL, percent-encoded.
    userinfo: Option<String>,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl Proxy {
    /// Value of `Proxy-Authorization`, when the URL has credentials.
    #[must_use]
    pub fn authorization(&self) -> Option<String> {
        let info = self.userinfo.as_deref()?;
        let (user, password) = info.split_once(':').unwrap_or((info, ""));
        let mut plain = percent_decode(user);
        plain.push(b':');
        plain.extend(percent_decode(password));
        Some(format!("Basic {}", BASE64.encode(plain)))
    }

    /// The URL with credentials, normalised: a default port is left out, the path is `/`.
    #[must_use]
    pub fn url(&self) -> String {
        let (scheme, default) = if self.tls { ("https", 443) } else { ("http", 80) };
        let user = self.userinfo.as_deref().map(|info| format!("{info}@")).unwrap_or_default();
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = if self.port == default { String::new() } else { format!(":{}", self.port) };
        format!("{scheme}://{user}{host}{port}/")
    }

    /// Reads a proxy URL; one without a scheme takes that of the target.
    fn parse(text: &str, target_scheme: &str) -> Result<Self, String> {
        let full = if text.contains("://") { text.to_owned() } else { format!("{target_scheme}://{text}") };
        let Some(url) = Url::parse(&full) else {
            return Err("the proxy URL makes no sense; it should look like http://host:port".to_owned());
        };
        let tls = match url.scheme.as_str() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            other => {
                return Err(format!("proxies of type {other} are not supported; use an http or https proxy"));
            }
        };
        let port = url.port.unwrap_or(if tls { 443 } else { 80 });
        Ok(Self { tls, host: url.host, port, userinfo: url.userinfo })
    }
}

/// The proxy for a URL; `None` = direct. `var` looks up environment variables.
///
/// # Errors
/// What is wrong with the proxy URL, without its credentials.
pub fn select(
    url: &str,
    setting: Option<&str>,
    var: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, String> {
    let Some(target) = Url::parse(url) else { return Ok(None) };
    let scheme = target.scheme.as_str();
    let either = |name: &str| {
        let set = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        set(&name.to_ascii_lowercase()).or_else(|| set(&name.to_ascii_uppercase()))
    };
    let setting = || {
        let applies = matches!(scheme, "http" | "https");
        setting.filter(|text| applies && !text.trim().is_empty()).map(str::to_owned)
    };
    let chosen = either(&format!("{scheme}_proxy")).or_else(setting).or_else(|| either("all_proxy"));
    let Some(chosen) = chosen else { return Ok(None) };
    if either("no_proxy").is_some_and(|list| excludes(&list, &target)) {
        return Ok(None);
    }
    Proxy::parse(chosen.trim(), scheme).map(Some)
}

/// Whether a `NO_PROXY` list names the target.
fn excludes(list: &str, target: &Url) -> bool {
    if list.trim() == "*" {
        return true;
    }
    let port = target.port.or(match target.scheme.as_str() {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    });
    list.split([',', ' ', '\t']).filter(|entry| !entry.is_empty() && *entry != "*").any(|entry| {
        let (host, wanted) = split_port(entry);
        let host = host.strip_prefix('*').unwrap_or(host);
        let host = host.strip_prefix('.').unwrap_or(host).to_ascii_lowercase();
        let below = target
            .host
            .strip_suffix(host.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        !host.is_empty() && below && wanted.is_none_or(|wanted| port == Some(wanted))
    })
}

/// Host and port of `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
fn split_port(text: &str) -> (&str, Option<u16>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (text, None),
        },
        _ => (text, None),
    }
}

/// The parts of a URL that say where it leads.
pub struct Url {
    /// Lower case.
    pub scheme: String,
    userinfo: Option<String>,
    /// Lower case, IPv6 without brackets.
    pub host: String,
    /// Port, where it says one.
    pub port: Option<u16>,
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({}://{}:{:?})", self.scheme, self.host, self.port)
    }
}

impl Url {
    /// Reads a URL; `None` = it leads nowhere.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let (userinfo, place) = match authority.rsplit_once('@') {
            Some((info, place)) => (Some(info.to_owned()), place),
            None => (None, authority),
        };
        let (host, port) = if let Some(rest) = place.strip_prefix('[') {
            let (host, port) = rest.split_once(']')?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        } else {
            place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)))
        };
        let port = match port {
            None | Some("") => None,
            Some(port) => Some(port.parse().ok()?),
        };
        let sane = !host.is_empty() && !host.contains(char::is_whitespace) && !scheme.is_empty();
        sane.then(|| Self {
            scheme: scheme.to_ascii_lowercase(),
            userinfo,
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

fn percent_decode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%')
            .then(|| after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                out.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(url: &str, setting: Option<&str>, env: &[(&str, &str)]) -> Option<String> {
        let var = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        select(url, setting, &var).unwrap().map(|p| p.url())
    }

    #[test]
    fn setting_fills_what_the_environment_does_not_say() {
        let s = Some("http://set:1");
        assert_eq!(proxy("https://a.com", s, &[]), Some("http://set:1/".into()));
        assert_eq!(
            proxy("https://a.com", s, &[("HTTPS_PROXY", "http://env:2")]),
            Some("http://env:2/".into())
        );
        assert_eq!(proxy("https://a.com", s, &[("ALL_PROXY", "http://all:3")]), Some("http://set:1/".into()));
        assert_eq!(proxy("http://127.0.0.1:4", s, &[("NO_PROXY", "127.0.0.1")]), None);
    }

    #[test]
    fn credentials_are_hidden_and_decoded() {
        let var = |name: &str| (name == "https_proxy").then(|| "http://u:p%40@h:1".to_owned());
        let proxy = select("https://a.com", None, &var).unwrap().unwrap();
        assert_eq!(format!("{proxy} {proxy:?}"), "http://h:1 Proxy(http://h:1)");
        assert_eq!(proxy.authorization().unwrap(), format!("Basic {}", BASE64.encode("u:p@")));
    }
}
