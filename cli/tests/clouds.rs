//! Clouds as servers see them: signatures, tokens, and how often somebody is asked for them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::{Value, json};
use tau_core::auth::oauth::form;
use tau_tests::clouds::{claims_of, event_stream, private_key, signed_scope};
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Part, Reply, Request, Server};

const TAU: &str = env!("CARGO_BIN_EXE_tau");
const CLAUDE: &str = "amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0";
const CLAUDE_PATH: &str = "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// A place where the address of a provider is that of the server.
fn place(provider: &str, script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    let (place, server) = (Sandbox::new(TAU), Server::start(script));
    let models = json!({ "providers": { provider: { "baseUrl": server.url() } } });
    place.put("agent/models.json", models.to_string());
    place.settings(&json!({}));
    (place, server)
}

fn run(place: &Sandbox, model: &str, env: &[(&str, &str)]) -> Run {
    let mut command = place.command(&["-p", "--mode", "json", "--model", model, "hello"]);
    command.envs(env.iter().copied());
    place.start(command).finish()
}

/// Neither the output nor any file of the agent holds a secret.
fn keeps_secrets(place: &Sandbox, run: &Run, secrets: &[&str]) {
    let mut texts = vec![run.out.clone(), run.err.clone()];
    let mut folders = vec![place.agent()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                texts.push(String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned());
            }
        }
    }
    for secret in secrets {
        assert!(texts.iter().all(|text| !text.contains(secret)), "{secret} is written somewhere");
    }
}

fn said(text: &str) -> Reply {
    event_stream(&[
        ("messageStart", json!({"role": "assistant"})),
        ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": text}, "p": "abcdefgh"})),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        ("messageStop", json!({"stopReason": "end_turn"})),
        ("metadata", json!({"usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}})),
    ])
}

fn calls_ls() -> Reply {
    event_stream(&[
        ("messageStart", json!({"role": "assistant"})),
        (
            "contentBlockStart",
            json!({"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t1", "name": "ls"}}}),
        ),
        ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}})),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        ("messageStop", json!({"stopReason": "tool_use"})),
        ("metadata", json!({"usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}})),
    ])
}

fn plain(status: u16, kind: &str, body: &str) -> Reply {
    let headers = vec![("content-type".into(), kind.into())];
    Reply { status, headers, parts: vec![Part::Bytes(body.into())] }
}

fn form_of(request: &Request) -> Vec<(String, String)> {
    form::decode(std::str::from_utf8(&request.raw).unwrap())
}

#[test]
fn bedrock_by_keys() {
    let (place, server) = place("amazon-bedrock", [calls_ls(), said("fine")]);
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", "session-token-of-tests"),
        ("AWS_REGION", "eu-central-1"),
    ];
    let run = run(&place, CLAUDE, &env).ok();
    assert!(run.out.contains("fine") && run.out.contains("\"totalTokens\":11"), "{}", run.out);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.path, CLAUDE_PATH);
        assert_eq!(signed_scope(request, "AKIDEXAMPLE", SECRET), "eu-central-1/bedrock");
        assert_eq!(request.header("x-amz-security-token"), Some("session-token-of-tests"));
    }
    let last = requests[1].body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["toolResult"]["toolUseId"], "t1");
    keeps_secrets(&place, &run, &[SECRET, "session-token-of-tests"]);
}

#[test]
fn bedrock_by_a_token() {
    let env = [("AWS_BEARER_TOKEN_BEDROCK", "bearer-of-tests"), ("AWS_PROFILE", "is-not-looked-at")];
    let (place, server) = place("amazon-bedrock", [said("fine")]);
    let run = run(&place, CLAUDE, &env).ok();
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer bearer-of-tests"));
    assert_eq!(request.header("x-amz-date"), None);
    keeps_secrets(&place, &run, &["bearer-of-tests"]);
}

#[test]
fn bedrock_by_a_profile_that_takes_a_role() {
    let sts = "<AssumeRoleResponse><Credentials><AccessKeyId>TEMP</AccessKeyId><SecretAccessKey>temporary-secret\
        </SecretAccessKey><SessionToken>temporary-token</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>\
        </Credentials></AssumeRoleResponse>";
    let (place, server) = place("amazon-bedrock", [plain(200, "text/xml", sts), calls_ls(), said("fine")]);
    place.put(
        "home/.aws/credentials",
        format!("[base]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {SECRET}\n"),
    );
    place.put(
        "home/.aws/config",
        "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\nregion = eu-west-1\n",
    );
    // The profile may also stand in auth.json.
    let entry = json!({"amazon-bedrock": {"type": "api_key", "env": {"AWS_PROFILE": "dev"}}});
    place.put("agent/auth.json", entry.to_string());
    let sts_url = format!("{}/sts", server.url());
    let run = run(&place, CLAUDE, &[("AWS_ENDPOINT_URL_STS", &sts_url)]).ok();
    let requests = server.requests();
    assert_eq!(
        requests.iter().map(|r| r.path.as_str()).collect::<Vec<_>>(),
        ["/sts", CLAUDE_PATH, CLAUDE_PATH]
    );
    assert_eq!(signed_scope(&requests[0], "AKIDEXAMPLE", SECRET), "eu-west-1/sts");
    assert_eq!(form::find(&form_of(&requests[0]), "RoleArn"), Some("arn:aws:iam::1:role/r"));
    assert_eq!(signed_scope(&requests[2], "TEMP", "temporary-secret"), "eu-west-1/bedrock");
    assert_eq!(requests[2].header("x-amz-security-token"), Some("temporary-token"));
    keeps_secrets(&place, &run, &[SECRET, "temporary-secret", "temporary-token"]);
}

#[test]
fn bedrock_in_a_container() {
    let keys = json!({"AccessKeyId": "TASK", "SecretAccessKey": "secret-of-task", "Token": "token-of-task",
        "Expiration": "2100-01-01T00:00:00Z"});
    let (place, server) = place("amazon-bedrock", [Reply::json(200, &keys), calls_ls(), said("fine")]);
    let url = format!("{}/task", server.url());
    let env =
        [("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pass")];
    let _ = run(&place, CLAUDE, &env).ok();
    let requests = server.requests();
    assert_eq!((requests[0].path.as_str(), requests[0].header("authorization")), ("/task", Some("pass")));
    assert_eq!(requests.len(), 3, "the keys are kept for the second request");
    assert_eq!(signed_scope(&requests[1], "TASK", "secret-of-task"), "us-east-1/bedrock");
}

#[test]
fn bedrock_says_no() {
    let throttled = || {
        let mut reply = Reply::json(400, &json!({"message": "slow down"}));
        reply.headers.push(("x-amzn-errortype".into(), "ThrottlingException:http://x".into()));
        reply
    };
    let env = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    let (own, server) = place("amazon-bedrock", [throttled(), throttled(), said("fine")]);
    assert!(run(&own, CLAUDE, &env).ok().out.contains("fine"));
    assert_eq!(server.requests().len(), 3);

    let mut refused = Reply::json(403, &json!({"message": format!("denied for {SECRET}")}));
    refused.headers.push(("x-amzn-errortype".into(), "AccessDeniedException".into()));
    refused.headers.push(("x-amzn-requestid".into(), "req-7".into()));
    let (own, _server) = place("amazon-bedrock", [refused]);
    let run_refused = run(&own, CLAUDE, &env);
    for part in ["403 denied for", "AccessDeniedException", "req-7"] {
        assert!(run_refused.out.contains(part), "{part} in {}", run_refused.out);
    }
    keeps_secrets(&own, &run_refused, &[SECRET]);

    let page =
        Reply { headers: vec![], ..plain(200, "", "<html><title>Sign in</title> to the network</html>") };
    let (own, _server) = place("amazon-bedrock", [page]);
    let run_page = run(&own, CLAUDE, &env);
    assert!(run_page.out.contains("Sign in") && run_page.out.contains("127.0.0.1"), "{}", run_page.out);

    let (own, server) = place("amazon-bedrock", []);
    let run_gone = run(&own, CLAUDE, &[("AWS_PROFILE", "gone")]);
    assert!(run_gone.out.contains("gone") && run_gone.out.contains(".aws/config"), "{}", run_gone.out);
    assert_eq!(server.requests().len(), 0);
}

const GEMINI: &str = "google-vertex/gemini-2.5-pro";
const PROJECT: [(&str, &str); 2] =
    [("GOOGLE_CLOUD_PROJECT", "p-1"), ("GOOGLE_CLOUD_LOCATION", "europe-west4")];
const GEMINI_PATH: &str = "/v1/projects/p-1/locations/europe-west4/publishers/google/models/\
    gemini-2.5-pro:streamGenerateContent?alt=sse";

fn gemini(part: &Value) -> Reply {
    Reply::events([&json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})])
}

fn token() -> Reply {
    Reply::json(
        200,
        &json!({"access_token": "ya29.token-of-tests", "expires_in": 3599, "token_type": "Bearer"}),
    )
}

#[test]
fn vertex_by_a_service_account() {
    let ls = gemini(&json!({"functionCall": {"name": "ls", "args": {}}}));
    let (place, server) = place("google-vertex", [token(), ls, gemini(&json!({"text": "fine"}))]);
    let uri = format!("{}/token", server.url());
    let account = json!({"type": "service_account", "client_email": "agent@p-1", "private_key": private_key(),
        "private_key_id": "k1", "token_uri": uri});
    let path = place.put("home/sa.json", account.to_string()).display().to_string();
    let env = [PROJECT[0], PROJECT[1], ("GOOGLE_APPLICATION_CREDENTIALS", path.as_str())];
    let run = run(&place, GEMINI, &env).ok();
    assert!(run.out.contains("fine"), "{}", run.out);
    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/token", GEMINI_PATH, GEMINI_PATH], "the token is kept for the second request");
    let asked = form_of(&requests[0]);
    assert_eq!(form::find(&asked, "grant_type"), Some("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    let claims = claims_of(form::find(&asked, "assertion").unwrap());
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("agent@p-1"), &json!(uri)));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    for request in &requests[1..] {
        assert_eq!(request.header("authorization"), Some("Bearer ya29.token-of-tests"));
        assert_eq!(request.header("x-goog-api-key"), None);
    }
    let key = private_key();
    keeps_secrets(&place, &run, &["ya29.token-of-tests", key.lines().nth(1).unwrap()]);
}

#[test]
fn vertex_by_what_gcloud_left() {
    let (place, server) = place("google-vertex", [token(), gemini(&json!({"text": "fine"}))]);
    let person = json!({"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "renew-me",
        "quota_project_id": "q-1", "token_uri": format!("{}/token", server.url())});
    place.put("home/.config/gcloud/application_default_credentials.json", person.to_string());
    assert!(run(&place, GEMINI, &PROJECT).ok().out.contains("fine"));
    let requests = server.requests();
    assert_eq!(form::find(&form_of(&requests[0]), "refresh_token"), Some("renew-me"));
    assert_eq!(requests[1].header("x-goog-user-project"), Some("q-1"));
}

#[test]
fn vertex_says_no() {
    let refusal =
        plain(400, "application/json", r#"{"error":"invalid_grant","error_description":"Bad Request"}"#);
    let (place, server) = place("google-vertex", [refusal]);
    let uri = format!("{}/token", server.url());
    let account = |key: &str| {
        json!({"type": "service_account", "client_email": "a", "private_key": key, "token_uri": uri})
            .to_string()
    };
    let path = place.put("home/sa.json", account(&private_key())).display().to_string();
    let env = [PROJECT[0], PROJECT[1], ("GOOGLE_APPLICATION_CREDENTIALS", path.as_str())];
    let refused = run(&place, GEMINI, &env);
    for part in ["google-vertex", "answered 400", "Bad Request"] {
        assert!(refused.out.contains(part), "{part} in {}", refused.out);
    }
    let damaged = private_key().replace('A', "!");
    place.put("home/sa.json", account(&damaged));
    let refused = run(&place, GEMINI, &env);
    assert!(refused.out.contains("private key"), "{}", refused.out);
    keeps_secrets(&place, &refused, &[damaged.lines().nth(1).unwrap()]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn anthropic_by_federation() {
    let exchanged = json!({"access_token": "sk-ant-oat01-of-tests", "expires_in": 3600});
    let reply = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    .into_iter()
    .map(|name| {
        let data = match name {
            "message_start" => json!({"message": {"id": "m", "model": "x"}}),
            "content_block_start" => json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
            "content_block_delta" => json!({"index": 0, "delta": {"type": "text_delta", "text": "fine"}}),
            "content_block_stop" => json!({"index": 0}),
            "message_delta" => json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
            _ => json!({}),
        };
        Part::Bytes(format!("event: {name}\ndata: {data}\n\n").into_bytes())
    });
    let (place, server) = place("anthropic", [Reply::json(200, &exchanged), Reply::stream(reply.collect())]);
    let path = place.put("home/identity", "jwt-of-tests\n").display().to_string();
    let env = [
        ("ANTHROPIC_FEDERATION_RULE_ID", "fdrl_1"),
        ("ANTHROPIC_ORGANIZATION_ID", "org"),
        ("ANTHROPIC_IDENTITY_TOKEN_FILE", path.as_str()),
    ];
    let run = run(&place, "anthropic/claude-sonnet-4-5", &env).ok();
    assert!(run.out.contains("fine"), "{}", run.out);
    let requests = server.requests();
    assert_eq!(
        (requests[0].path.as_str(), &requests[0].body["assertion"]),
        ("/v1/oauth/token", &json!("jwt-of-tests"))
    );
    assert_eq!(requests[1].header("authorization"), Some("Bearer sk-ant-oat01-of-tests"));
    assert!(requests[1].header("anthropic-beta").unwrap().contains("oauth-2025-04-20"));
    assert_eq!(requests[1].header("x-api-key"), None);
    keeps_secrets(&place, &run, &["jwt-of-tests", "sk-ant-oat01-of-tests"]);
}
