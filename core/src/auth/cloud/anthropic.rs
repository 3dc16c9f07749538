//! Workload identity federation: a token of an identity provider becomes one of Anthropic for a short time.
//! <https://platform.claude.com/docs/en/manage-claude/wif-reference>

use alloc::format;

use super::{Fetched, Go, JSON, Tape, bearer, fail, granted, is_safe, request};
use crate::json::{Map, Value, to_string};
use crate::op::host_of;

const DEFAULT_BASE: &str = "https://api.anthropic.com";
/// What the exchange needs to be recognised.
const BETA: &str = "oauth-2025-04-20,oidc-federation-2026-04-01";

pub(super) fn federation(tape: &mut Tape<'_>) -> Go<Fetched> {
    let base = match tape.place.base_url.trim().trim_end_matches('/') {
        "" => DEFAULT_BASE,
        base => base,
    };
    if !is_safe(base) {
        return fail(format!("the identity token is not sent to {}: it is not encrypted", host_of(base)));
    }
    let Some(path) = tape.variable("ANTHROPIC_IDENTITY_TOKEN_FILE") else {
        return fail("ANTHROPIC_IDENTITY_TOKEN_FILE is not set");
    };
    let token = tape.read(&path, "the identity token (ANTHROPIC_IDENTITY_TOKEN_FILE)")?;
    let mut body = Map::new();
    body.insert("grant_type".into(), "urn:ietf:params:oauth:grant-type:jwt-bearer".into());
    body.insert("assertion".into(), token.trim().into());
    for (field, variable) in [
        ("federation_rule_id", "ANTHROPIC_FEDERATION_RULE_ID"),
        ("organization_id", "ANTHROPIC_ORGANIZATION_ID"),
        ("service_account_id", "ANTHROPIC_SERVICE_ACCOUNT_ID"),
        ("workspace_id", "ANTHROPIC_WORKSPACE_ID"),
    ] {
        if let Some(value) = tape.variable(variable) {
            body.insert(field.into(), value.into());
        }
    }
    let headers = [JSON, ("anthropic-beta", BETA)];
    let url = format!("{base}/v1/oauth/token");
    let answer = tape.http(request("POST", url, &headers, to_string(&Value::Object(body))))?;
    let (token, expires) = granted(&answer, tape.place.now, &host_of(base))?;
    Ok(bearer(&token, expires))
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::super::{Answer, Ask, Source};
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_token_for_a_token() {
        let env = [
            ("ANTHROPIC_IDENTITY_TOKEN_FILE", "/t"),
            ("ANTHROPIC_FEDERATION_RULE_ID", "fdrl_1"),
            ("ANTHROPIC_ORGANIZATION_ID", "o"),
            ("ANTHROPIC_WORKSPACE_ID", " "),
        ];
        let (fetched, asked) = run(&Source::AnthropicFederation, &env, &|ask| match ask {
            Ask::Read(_) => Answer::Text("jwt\n".into()),
            _ => Answer::Http { status: 200, body: br#"{"access_token":"at","expires_in":600}"#.to_vec() },
        });
        let fetched = fetched.unwrap();
        assert_eq!(fetched.expires, Some(1_600_000));
        let wanted = ("authorization".to_string(), Some("Bearer at".to_string()));
        assert_eq!(fetched.credential.headers, [wanted]);
        let [Ask::Read(path), Ask::Http(request)] = asked.as_slice() else { panic!() };
        assert_eq!((path.as_str(), request.url.as_str()), ("/t", "https://api.anthropic.com/v1/oauth/token"));
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(
            body,
            serde_json::json!({
                "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "jwt",
                "federation_rule_id": "fdrl_1", "organization_id": "o",
            })
        );
        let refused = Answer::Http { status: 400, body: br#"{"error":{"message":"no rule"}}"#.to_vec() };
        let (fetched, _) = run(&Source::AnthropicFederation, &env, &|ask| match ask {
            Ask::Read(_) => Answer::Text("jwt".into()),
            _ => refused.clone(),
        });
        assert_eq!(fetched.err().as_deref(), Some("https://api.anthropic.com answered 400: no rule"));
    }
}
