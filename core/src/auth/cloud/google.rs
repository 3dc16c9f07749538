//! Application default credentials of Google Cloud: a file of a service account, or of a person who signed in with gcloud.
//! <https://google.aip.dev/auth/4110>

use alloc::format;
use alloc::string::{String, ToString};

use super::{FORM, Fetched, Go, Tape, bearer, fail, granted, is_safe, request, text};
use crate::auth::oauth::form;
use crate::json::{Map, Value, to_string};
use crate::op::host_of;
use crate::text::base64;

/// Where gcloud leaves its file, below the home folder.
pub(in crate::auth) const DEFAULT_FILE: &str = ".config/gcloud/application_default_credentials.json";

const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// A signed claim counts this long, seconds: as long as the service allows.
const CLAIM_SECONDS: i64 = 3600;

pub(super) fn file(tape: &mut Tape<'_>, path: &str) -> Go<Fetched> {
    let content = tape.read(path, "the credentials file of Google Cloud")?;
    let Ok(value) = crate::json::parse(content) else {
        return fail(format!(
            "{path} holds no JSON; make it anew with `gcloud auth application-default login`"
        ));
    };
    let form = match text(&value, "type") {
        Some("service_account") => claim(tape, &value, path)?,
        Some("authorized_user") => renewal(&value, path)?,
        other => {
            return fail(format!(
                "{path} holds credentials of type \"{}\", which is not supported; use a service account, or \
                 `gcloud auth application-default login`",
                other.unwrap_or_default()
            ));
        }
    };
    let url = text(&value, "token_uri").unwrap_or(TOKEN_URL);
    if !is_safe(url) {
        return fail(format!("{path} names {} for tokens, which is not encrypted", host_of(url)));
    }
    let answer = tape.http(request("POST", url.to_string(), &[FORM], form))?;
    let (token, expires) = granted(&answer, tape.place.now, &host_of(url))?;
    let mut fetched = bearer(&token, expires);
    if let Some(project) = text(&value, "quota_project_id") {
        fetched.credential.headers.push(("x-goog-user-project".into(), Some(project.into())));
    }
    Ok(fetched)
}

fn member<'v>(value: &'v Value, key: &str, path: &str) -> Go<&'v str> {
    match text(value, key) {
        Some(text) => Ok(text),
        None => fail(format!("{path} has no {key}; make it anew")),
    }
}

/// A claim of a service account, signed with its key (RFC 7523).
fn claim(tape: &mut Tape<'_>, value: &Value, path: &str) -> Go<String> {
    let [email, key] = [member(value, "client_email", path)?, member(value, "private_key", path)?];
    let url = text(value, "token_uri").unwrap_or(TOKEN_URL);
    let now = tape.place.now.0.div_euclid(1000);
    let mut header = Map::new();
    header.insert("alg".into(), "RS256".into());
    header.insert("typ".into(), "JWT".into());
    if let Some(id) = text(value, "private_key_id") {
        header.insert("kid".into(), id.into());
    }
    let mut claims = Map::new();
    claims.insert("iss".into(), email.into());
    claims.insert("scope".into(), SCOPE.into());
    claims.insert("aud".into(), url.into());
    claims.insert("iat".into(), now.into());
    claims.insert("exp".into(), now.saturating_add(CLAIM_SECONDS).into());
    let part = |map: Map<String, Value>| base64::encode_url(to_string(&Value::Object(map)).as_bytes());
    let text = format!("{}.{}", part(header), part(claims));
    let signature = base64::encode_url(tape.sign(key, &text, path)?);
    Ok(form::encode(&[
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", &format!("{text}.{signature}")),
    ]))
}

fn renewal(value: &Value, path: &str) -> Go<String> {
    let get = |key| member(value, key, path);
    let [id, secret, token] = [get("client_id")?, get("client_secret")?, get("refresh_token")?];
    Ok(form::encode(&[
        ("grant_type", "refresh_token"),
        ("client_id", id),
        ("client_secret", secret),
        ("refresh_token", token),
    ]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::super::{Answer, Ask, Source};
    use super::*;

    fn fetch(content: &Value) -> (Result<Fetched, String>, alloc::vec::Vec<Ask>) {
        let content = to_string(content);
        run(&Source::GoogleFile("/sa.json".into()), &[], &|ask| match ask {
            Ask::Read(_) => Answer::Text(content.clone()),
            Ask::Sign { key, .. } if key == "PEM" => Answer::Bytes(b"signed".to_vec()),
            Ask::Http(_) => {
                Answer::Http { status: 200, body: br#"{"access_token":"at","expires_in":3599}"#.to_vec() }
            }
            _ => Answer::Missing("no".into()),
        })
    }

    #[test]
    fn a_service_account_signs() {
        let account = serde_json::json!({
            "type": "service_account", "client_email": "a@p", "private_key": "PEM", "private_key_id": "k1",
            "token_uri": "http://127.0.0.1:1/token", "quota_project_id": "q",
        });
        let (fetched, asked) = fetch(&account);
        let fetched = fetched.unwrap();
        assert_eq!(fetched.expires, Some(1_000_000 + 3_599_000));
        assert_eq!(fetched.credential.headers.len(), 2);
        let [Ask::Read(_), Ask::Sign { text, .. }, Ask::Http(request)] = asked.as_slice() else { panic!() };
        let mut parts = text.split('.').map(|part| base64::decode(part).unwrap());
        assert_eq!(parts.next().unwrap(), br#"{"alg":"RS256","typ":"JWT","kid":"k1"}"#);
        let claims: Value = serde_json::from_slice(&parts.next().unwrap()).unwrap();
        assert_eq!(claims["aud"], "http://127.0.0.1:1/token");
        assert_eq!((claims["iat"].as_i64(), claims["exp"].as_i64()), (Some(1000), Some(4600)));
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let assertion = format!("{text}.{}", base64::encode_url(b"signed"));
        assert_eq!(form::find(&form::decode(&body), "assertion"), Some(assertion.as_str()));
    }

    #[test]
    fn a_person_renews_and_other_files_are_explained() {
        let person = serde_json::json!({
            "type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r",
        });
        let (fetched, asked) = fetch(&person);
        assert!(fetched.is_ok());
        let [Ask::Read(_), Ask::Http(request)] = asked.as_slice() else { panic!() };
        assert_eq!(request.url, TOKEN_URL);
        for (content, part) in [
            (serde_json::json!({"type": "external_account"}), "external_account"),
            (serde_json::json!({"type": "authorized_user"}), "client_id"),
            (
                serde_json::json!({
                    "type": "service_account", "client_email": "a", "private_key": "bad", "token_uri": "https://h",
                }),
                "private key",
            ),
            (
                serde_json::json!({
                    "type": "service_account", "client_email": "a", "private_key": "PEM", "token_uri": "http://h",
                }),
                "not encrypted",
            ),
        ] {
            let why = fetch(&content).0.err().unwrap();
            assert!(why.contains(part) && why.contains("/sa.json"), "{why}");
        }
    }
}
