//! Signatures of requests to AWS, version 4: a pure function of the request, the keys and the time.
//!
//! The canonical form is that of every service but S3: the path is escaped once more, all headers that are signed are
//! named. <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::sha256::{hex, hmac, sha256};
use crate::now::Wall;
use crate::op::HttpRequest;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Headers of a request that are signed when it has them; others may be changed on the way.
const SIGNED: [&str; 2] = ["content-type", "host"];

/// Keys of an identity. `Debug` shows no secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// Access key id.
    pub id: String,
    /// Secret access key.
    pub secret: String,
    /// Token that belongs to temporary keys.
    pub session: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("temporary", &self.session.is_some()).finish_non_exhaustive()
    }
}

/// Where a signature counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope<'a> {
    /// `us-east-1` …
    pub region: &'a str,
    /// `bedrock`, `sts` …
    pub service: &'a str,
}

/// Signs a request: adds `x-amz-date`, for temporary keys `x-amz-security-token`, and `authorization`, which replace
/// headers of these names. `at` is the time of signing; services take it for five minutes.
pub fn sign(request: &mut HttpRequest, keys: &Keys, scope: Scope<'_>, at: Wall) {
    let time = basic_time(at);
    let date = time.get(..8).unwrap_or_default();
    let own = ["x-amz-date", "x-amz-security-token", "authorization"];
    request.headers.retain(|(name, _)| !own.iter().any(|own| name.eq_ignore_ascii_case(own)));
    request.headers.push(("x-amz-date".into(), time.clone()));
    if let Some(session) = &keys.session {
        request.headers.push(("x-amz-security-token".into(), session.clone()));
    }
    let (canonical, names) = canonical(request);
    let place = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let to_sign = format!("{ALGORITHM}\n{time}\n{place}\n{}", hex(&sha256(canonical.as_bytes())));
    let signature = hex(&hmac(&signing_key(&keys.secret, date, scope), to_sign.as_bytes()));
    let value =
        format!("{ALGORITHM} Credential={}/{place}, SignedHeaders={names}, Signature={signature}", keys.id);
    request.headers.push(("authorization".into(), value));
}

fn signing_key(secret: &str, date: &str, scope: Scope<'_>) -> [u8; 32] {
    let steps = [date, scope.region, scope.service, "aws4_request"];
    let start = format!("AWS4{secret}");
    let mut key = hmac(start.as_bytes(), steps[0].as_bytes());
    for step in steps.iter().skip(1) {
        key = hmac(&key, step.as_bytes());
    }
    key
}

/// The request as it is signed, and the names of its signed headers.
fn canonical(request: &HttpRequest) -> (String, String) {
    let rest = request.url.split_once("://").map_or(request.url.as_str(), |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let host = host.rsplit('@').next().unwrap_or_default();

    let is_signed = |name: &str| SIGNED.contains(&name) || name.starts_with("x-amz-");
    let lower = request.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()));
    let mut headers: Vec<(String, String)> = lower
        .filter(|(name, _)| is_signed(name))
        .map(|(name, value)| (name, value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")))
        .collect();
    if !headers.iter().any(|(name, _)| name == "host") {
        headers.push(("host".into(), host.to_ascii_lowercase()));
    }
    headers.sort();
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");

    let mut text = format!("{}\n", request.method);
    escape(path, &mut text);
    text.push('\n');
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    for (at, (name, value)) in pairs.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { "&" });
        text.extend([name, "=", value]);
    }
    text.push('\n');
    for (name, value) in &headers {
        text.extend([name.as_str(), ":", value.as_str(), "\n"]);
    }
    text.extend(["\n", names.as_str(), "\n", hex(&sha256(&request.body)).as_str()]);
    (text, names)
}

/// Escapes a text for a path; slashes stay.
fn escape(path: &str, out: &mut String) {
    for byte in path.bytes() {
        if byte == b'/' { out.push('/') } else { escape_byte(byte, out) }
    }
}

/// A text as one part of a path.
#[must_use]
pub fn path_part(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.bytes().for_each(|byte| escape_byte(byte, &mut out));
    out
}

fn escape_byte(byte: u8, out: &mut String) {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
        out.push(byte.into());
    } else {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0').to_ascii_uppercase();
        out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
    }
}

/// `20150830T123600Z`
fn basic_time(at: Wall) -> String {
    let iso = at.to_iso();
    let whole = iso.split('.').next().unwrap_or_default();
    whole.chars().filter(|c| !matches!(c, '-' | ':')).chain(['Z']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::sync::Arc;

    fn request(method: &'static str, url: &str, headers: &[(&str, &str)], body: &str) -> HttpRequest {
        HttpRequest {
            method,
            url: url.into(),
            headers: headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            body: Arc::new(body.as_bytes().to_vec()),
            head_timeout_ms: None,
            idle_timeout_ms: None,
            proxy: None,
        }
    }

    fn signed(mut request: HttpRequest, service: &str, session: Option<&str>) -> String {
        let keys = Keys {
            id: "AKIDEXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session: session.map(String::from),
        };
        let at = Wall::from_iso("2015-08-30T12:36:00Z").unwrap();
        sign(&mut request, &keys, Scope { region: "us-east-1", service }, at);
        let mut found = request.headers.into_iter().filter(|(name, _)| name == "authorization");
        let value = found.next().unwrap().1;
        assert_eq!(found.next(), None);
        value
    }

    /// Published by AWS: the test suite of the signature, and the example of its documentation.
    #[test]
    fn known_answers() {
        let host = "https://example.amazonaws.com/";
        let form = ("content-type", "application/x-www-form-urlencoded");
        for (method, url, headers, body, service, names, wanted) in [
            (
                "GET",
                host.to_string(),
                &[][..],
                "",
                "service",
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                host.to_string(),
                &[],
                "",
                "service",
                "host;x-amz-date",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "GET",
                format!("{host}?Param2=value2&Param1=value1"),
                &[],
                "",
                "service",
                "host;x-amz-date",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "POST",
                host.to_string(),
                &[form],
                "Param1=value1",
                "service",
                "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            (
                "GET",
                "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08".into(),
                &[("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), ("x-other", "no")],
                "",
                "iam",
                "content-type;host;x-amz-date",
                "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
            ),
        ] {
            let wanted = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, \
                 SignedHeaders={names}, Signature={wanted}"
            );
            assert_eq!(signed(request(method, &url, headers, body), service, None), wanted, "{url}");
        }
        let scope = Scope { region: "us-east-1", service: "iam" };
        assert_eq!(
            hex(&signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830", scope)),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
        );
    }

    #[test]
    fn paths_are_escaped_once_more_and_tokens_are_signed() {
        let mut out = String::new();
        escape("/model/a%3A0/x", &mut out);
        assert_eq!(out, "/model/a%253A0/x");
        assert_eq!(path_part("arn:aws:x/y~z é"), "arn%3Aaws%3Ax%2Fy~z%20%C3%A9");
        let old = [("X-Amz-Date", "old"), ("Authorization", "old"), ("X-Amz-Security-Token", "old")];
        let value = signed(request("POST", "http://h:8080/p", &old, ""), "sts", Some("token"));
        assert!(value.contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"), "{value}");
        assert!(!format!("{:?}", Keys { secret: "s3cret".into(), ..Keys::default() }).contains("s3cret"));
    }
}
