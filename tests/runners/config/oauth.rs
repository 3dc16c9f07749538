//! Conversations of sign-ins and renewals, and the pace of polling.

use serde_json::{Map, Value, json};
use tau_core::auth::oauth::device::Pace;
use tau_core::auth::oauth::form::decode;
use tau_core::auth::oauth::{Answer, Ask, Hosts, Notice, Prompt, Random, Script, SignIn, Step};
use tau_core::op::HttpRequest;
use tau_tests::compare::same;

const PORT: u16 = 41_234;

/// The world of a case.
struct World<'a> {
    input: &'a Value,
    now: i64,
    begin: i64,
    responses: Vec<Value>,
    answers: Vec<String>,
    state: String,
    requests: Vec<Value>,
    events: Vec<Value>,
    prompts: Vec<Value>,
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn object<'a>(pairs: impl Iterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(pairs.map(|(name, value)| (name.to_owned(), value)).collect())
}

impl World<'_> {
    fn next_text(&mut self) -> Option<String> {
        (!self.answers.is_empty()).then(|| self.answers.remove(0))
    }

    fn answer(&mut self, ask: Ask) -> Answer {
        match ask {
            Ask::Http(request) => self.http(&request),
            Ask::Wait(ms) => {
                self.now += i64::try_from(ms).unwrap();
                Answer::Done
            }
            Ask::Tell(notice) => {
                let event = self.event(notice);
                self.events.push(event);
                Answer::Done
            }
            Ask::Prompt(prompt) => {
                self.note(&prompt);
                self.next_text().map_or_else(|| Answer::NoAnswer("nobody is there".to_owned()), Answer::Text)
            }
            Ask::Listen(at) => {
                self.state = at.state.unwrap_or_default();
                Answer::Port(Some(if at.port == 0 { PORT } else { at.port }))
            }
            Ask::Back { prompt, .. } => {
                if let Some(prompt) = &prompt {
                    self.note(prompt);
                }
                let text = if prompt.is_some() { self.next_text() } else { None };
                match text.filter(|text| text != "{wait}") {
                    Some(text) => Answer::Text(text),
                    None => self.query(),
                }
            }
            Ask::Show(status) => {
                self.events.push(json!({ "type": "callback-response", "status": status }));
                Answer::Done
            }
        }
    }

    fn query(&self) -> Answer {
        let params = self.input["callback"]["params"].as_object().cloned().unwrap_or_default();
        let filled = |value: &Value| value.as_str().unwrap_or_default().replace("{state}", &self.state);
        Answer::Query(params.iter().map(|(name, value)| (name.clone(), filled(value))).collect())
    }

    fn http(&mut self, request: &HttpRequest) -> Answer {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let headers = object(request.headers.iter().map(|(name, value)| (&**name, json!(value))));
        let mut seen = json!({
            "method": request.method, "url": request.url, "headers": headers, "atMs": self.now - self.begin,
        });
        let kind = headers["content-type"].as_str().unwrap_or_default();
        if kind.ends_with("json") {
            seen["body"] = json!({ "json": serde_json::from_str::<Value>(&text).unwrap() });
        } else if !text.is_empty() {
            let pairs = decode(&text);
            let form = object(pairs.iter().map(|(name, value)| (&**name, json!(value))));
            seen["body"] = json!({ "form": form });
        }
        self.requests.push(seen);
        if self.responses.is_empty() {
            return Answer::NoAnswer("no response is left".to_owned());
        }
        let response = self.responses.remove(0);
        let body = match response.get("json") {
            Some(json) => json.to_string(),
            None => response["text"].as_str().unwrap_or_default().to_owned(),
        };
        let headers = response["headers"].as_object().into_iter().flatten();
        Answer::Http {
            status: response["status"].as_u64().map_or(200, |status| u16::try_from(status).unwrap()),
            headers: headers
                .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                .collect(),
            body: body.into_bytes(),
        }
    }

    fn event(&self, notice: Notice) -> Value {
        match notice {
            Notice::Progress(_) => json!({ "type": "progress" }),
            Notice::Address(url) => {
                let (base, query) = url.split_once('?').unwrap_or((&url, ""));
                let pairs = decode(query);
                let free = |value: &str| value.replace(&format!(":{PORT}/"), ":{port}/");
                let params = object(pairs.iter().map(|(name, value)| (&**name, json!(free(value)))));
                json!({ "type": "auth_url", "base": base, "params": params })
            }
            Notice::DeviceCode { code, address, interval, expires } => {
                let mut event =
                    json!({ "type": "device_code", "userCode": code, "verificationUri": address });
                for (name, seconds) in [("intervalSeconds", interval), ("expiresInSeconds", expires)] {
                    if let Some(seconds) = seconds {
                        event[name] = json!(seconds);
                    }
                }
                event
            }
        }
    }

    fn note(&mut self, prompt: &Prompt) {
        self.prompts.push(match prompt {
            Prompt::Text { placeholder, .. } => json!({ "type": "text", "placeholder": placeholder }),
            Prompt::Select { ways, .. } => {
                let ids: Vec<&str> = ways.iter().map(|(id, _)| *id).collect();
                json!({ "type": "select", "options": ids })
            }
            Prompt::Code { placeholder } => {
                let placeholder = placeholder.replace(&format!(":{PORT}/"), ":{port}/");
                json!({ "type": "manual_code", "placeholder": placeholder })
            }
        });
    }
}

/// We do not say that we are another program (decision D6): what names one is not compared.
fn without_names(mut requests: Value) -> Value {
    for request in requests.as_array_mut().into_iter().flatten() {
        let headers: Option<&mut Map<String, Value>> = request["headers"].as_object_mut();
        let names = ["user-agent", "editor-version", "editor-plugin-version", "copilot-integration-id"];
        if let Some(headers) = headers {
            headers.retain(|name, _| !names.contains(&name.as_str()));
        }
    }
    requests
}

pub fn flow(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let begin = doc["now"].as_i64().unwrap();
    let flow = case["flow"].as_str().unwrap();
    let provider = if flow == "openai-chatgpt" { "openai" } else { flow };
    let hosts = Hosts::new(&|_| None);
    let text = |key: &str| input["options"][key].as_str().map(str::to_owned);
    let mut script = if case["op"] == "refresh" {
        Script::refresh(provider, &input["credential"], hosts, begin)
    } else {
        let state = "WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlo".to_owned();
        let random = Random {
            verifier: doc["pkce"]["verifier"].as_str().unwrap().to_owned(),
            challenge: doc["pkce"]["challenge"].as_str().unwrap().to_owned(),
            hex: "5a".repeat(16),
            nonce: state.clone(),
            state,
            uuid: "11111111-2222-4333-8444-555555555555".to_owned(),
        };
        let (device_id, agent) = (text("deviceId"), text("agentName"));
        Script::sign_in(SignIn { provider: provider.to_owned(), random, device_id, agent }, hosts, begin)
    };
    let answers = list(&input["answers"]);
    let mut world = World {
        input,
        now: begin,
        begin,
        responses: list(&input["responses"]),
        answers: answers.iter().filter_map(|answer| answer.as_str().map(str::to_owned)).collect(),
        state: String::new(),
        requests: Vec::new(),
        events: Vec::new(),
        prompts: Vec::new(),
    };
    let mut step = script.begin();
    let (credential, error) = loop {
        step = match step {
            Step::Ask(ask) => {
                let answer = world.answer(ask);
                script.answer(world.now, answer)
            }
            Step::Done(credential) => break (Some(credential), None),
            Step::Failed(error) => break (None, Some(error)),
        };
    };
    let expected = &case["expected"];
    if let Some(error) = &error {
        for mention in list(&expected["errorMentions"]) {
            let mention = mention.as_str().unwrap();
            if !error.to_lowercase().contains(&mention.to_lowercase()) {
                return Err(format!("the error does not mention {mention:?}: {error}"));
            }
        }
    }
    let outcome = if error.is_some() { "error" } else { "credential" };
    same(&json!([expected["outcome"], expected["credential"]]), &json!([outcome, credential]))
        .map_err(|why| format!("{why}; {}", error.unwrap_or_default()))?;
    same(&without_names(expected["requests"].clone()), &without_names(Value::Array(world.requests)))?;
    let none = json!([]);
    let part = |name: &str| expected.get(name).unwrap_or(&none);
    same(part("events"), &Value::Array(world.events))?;
    same(part("prompts"), &Value::Array(world.prompts))
}

pub fn polling(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let responses = list(&input["responses"]);
    let takes = input["pollTakesMs"].as_i64().unwrap_or_default();
    let mut pace = Pace::new(0, input["intervalSeconds"].as_f64(), input["expiresInSeconds"].as_f64());
    let (mut now, mut polls) = (0i64, Vec::new());
    let sleep = |pace: &Pace, now: &mut i64| *now += i64::try_from(pace.wait(*now)).unwrap();
    if input["waitBeforeFirstPoll"] == true {
        sleep(&pace, &mut now);
    }
    let outcome = loop {
        if pace.is_over(now) {
            break if pace.was_slowed() { "timeout-after-slow-down" } else { "timeout" };
        }
        let response = responses.get(polls.len()).or_else(|| responses.last()).unwrap();
        polls.push(now);
        now += takes;
        match response.as_str().or_else(|| response["status"].as_str()) {
            Some("complete") => break "complete",
            Some("failed") => break "failed",
            // Whoever cancels drops the script.
            Some("abort") => break "cancelled",
            Some("slow_down") => pace.slow_down(response["intervalSeconds"].as_f64()),
            _ => {}
        }
        sleep(&pace, &mut now);
    };
    same(
        &case["expected"],
        &json!({ "outcome": outcome, "pollTimesMs": polls, "polls": polls.len(), "endMs": now }),
    )
}
