//! Keys of AWS: profiles, containers, identities of a cluster, roles that are taken.
//! <https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html>

use alloc::format;
use alloc::string::{String, ToString};

use super::ini::Ini;
use super::{FORM, Fetched, Go, Tape, fail, is_safe, request, text};
use crate::auth::oauth::form;
use crate::auth::sigv4::{self, Keys, Scope};
use crate::json::Value;
use crate::now::Wall;
use crate::op::{AwsAccess, Credential, host_of};

/// Where a task of ECS finds its credentials.
const ECS_HOST: &str = "http://169.254.170.2";
/// Hosts of the network of a node that may be asked in the open.
const NODE_HOSTS: [&str; 3] = ["http://169.254.170.2", "http://169.254.170.23", "http://[fd00:ec2::23]"];
/// Roles may be taken over this many profiles.
const MOST_PROFILES: u32 = 5;
const SESSION: &str = "tau";

/// Keys and when they run out.
struct Found {
    keys: Keys,
    expires: Option<i64>,
}

fn fetched(found: Found, region: Option<String>) -> Fetched {
    let env = region.map(|region| ("AWS_REGION".to_string(), region)).into_iter().collect();
    let credential = Credential { aws: Some(AwsAccess::Keys(found.keys)), env, ..Credential::default() };
    Fetched { credential, expires: found.expires }
}

/// Both files of the user.
struct Files<'a> {
    credentials: Ini<'a>,
    config: Ini<'a>,
}

impl Files<'_> {
    /// A setting of a profile; that of the credentials file counts first.
    fn get(&self, profile: &str, name: &str) -> Option<String> {
        self.credentials.get(profile, name).or_else(|| self.config.get(&section(profile), name))
    }

    fn has(&self, profile: &str) -> bool {
        self.credentials.has(profile) || self.config.has(&section(profile))
    }
}

fn section(profile: &str) -> String {
    if profile == "default" { profile.to_string() } else { format!("profile {profile}") }
}

pub(super) fn profile(tape: &mut Tape<'_>, name: &str) -> Go<Fetched> {
    let home = tape.place.home;
    let path = |tape: &Tape<'_>, variable: &str, file: &str| {
        tape.variable(variable).unwrap_or_else(|| format!("{home}/.aws/{file}"))
    };
    let credentials = path(tape, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let config = path(tape, "AWS_CONFIG_FILE", "config");
    let files = Files {
        credentials: Ini::parse(tape.read_if(&credentials)?.unwrap_or_default()),
        config: Ini::parse(tape.read_if(&config)?.unwrap_or_default()),
    };
    if !files.has(name) {
        return fail(format!(
            "the profile \"{name}\" (AWS_PROFILE) is neither in {credentials} nor in {config}"
        ));
    }
    let region = files.get(name, "region");
    let found = of_profile(tape, &files, name, 0)?;
    Ok(fetched(found, region))
}

fn of_profile(tape: &mut Tape<'_>, files: &Files<'_>, name: &str, depth: u32) -> Go<Found> {
    let get = |key: &str| files.get(name, key);
    if depth == MOST_PROFILES {
        return fail(format!(
            "the profile \"{name}\" takes its keys from too many others; correct source_profile"
        ));
    }
    if let Some(role) = get("role_arn") {
        let region = region(tape, get("region"));
        let session = get("role_session_name");
        if let Some(path) = get("web_identity_token_file") {
            return by_web_identity(tape, &role, session.as_deref(), &path, region.as_deref());
        }
        let base = match (get("source_profile"), get("credential_source").as_deref()) {
            // A profile may take a role with its own keys.
            (Some(source), _) if source == name => written(files, name)?,
            (Some(source), _) => of_profile(tape, files, &source, depth + 1)?,
            (None, Some("Environment")) => of_environment(tape)?,
            (None, Some("EcsContainer")) => of_container(tape)?,
            (None, other) => {
                let what = other.map_or_else(String::new, |other| format!(" (credential_source = {other})"));
                return fail(format!(
                    "the profile \"{name}\" takes a role without keys{what}; set source_profile"
                ));
            }
        };
        let mut pairs = alloc::vec![("RoleArn", role)];
        pairs.extend(get("external_id").map(|id| ("ExternalId", id)));
        pairs.extend(get("duration_seconds").map(|seconds| ("DurationSeconds", seconds)));
        return take_role(tape, &base.keys, &pairs, session.as_deref(), region.as_deref());
    }
    if get("aws_access_key_id").is_some() {
        return written(files, name);
    }
    if let Some(command) = get("credential_process") {
        let output = tape.run(&command, &format!("credential_process of the profile \"{name}\""))?;
        let value: Value = serde_json::from_str(output).unwrap_or_default();
        return of_json(&value, "SessionToken", &format!("credential_process of the profile \"{name}\""));
    }
    let by_sign_in = ["sso_session", "sso_start_url", "login_session"].iter().any(|key| get(key).is_some());
    let advice = if by_sign_in {
        format!(
            "signs in with a browser; make a profile with `credential_process = aws configure export-credentials \
             --profile {name}`"
        )
    } else {
        "has no keys".to_string()
    };
    fail(format!("the profile \"{name}\" {advice}"))
}

/// Keys that stand in a profile.
fn written(files: &Files<'_>, name: &str) -> Go<Found> {
    let get = |key: &str| files.get(name, key);
    match (get("aws_access_key_id"), get("aws_secret_access_key")) {
        (Some(id), Some(secret)) => {
            Ok(Found { keys: Keys { id, secret, session: get("aws_session_token") }, expires: None })
        }
        _ => fail(format!(
            "the profile \"{name}\" does not have both aws_access_key_id and aws_secret_access_key"
        )),
    }
}

fn of_environment(tape: &Tape<'_>) -> Go<Found> {
    match (tape.variable("AWS_ACCESS_KEY_ID"), tape.variable("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => Ok(Found {
            keys: Keys { id, secret, session: tape.variable("AWS_SESSION_TOKEN") },
            expires: None,
        }),
        _ => fail("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"),
    }
}

pub(super) fn container(tape: &mut Tape<'_>) -> Go<Fetched> {
    of_container(tape).map(|found| fetched(found, None))
}

fn of_container(tape: &mut Tape<'_>) -> Go<Found> {
    let relative = tape.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let url = match (relative, tape.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
        (Some(path), _) => format!("{ECS_HOST}/{}", path.trim_start_matches('/')),
        (None, Some(url)) => url,
        (None, None) => return fail("no container endpoint is set (AWS_CONTAINER_CREDENTIALS_FULL_URI)"),
    };
    if !is_safe(&url) && !NODE_HOSTS.contains(&host_of(&url).as_str()) {
        return fail(format!(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI leads to {}, which is neither encrypted nor on this machine",
            host_of(&url)
        ));
    }
    let token = match tape.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => Some(tape.read(&path, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")?.trim().to_string()),
        None => tape.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let header = token.as_deref().map(|token| ("authorization", token));
    let headers: alloc::vec::Vec<(&str, &str)> = header.into_iter().collect();
    let body = tape.http(request("GET", url, &headers, String::new()))?;
    let value: Value = serde_json::from_str(&body).unwrap_or_default();
    of_json(&value, "Token", "the container endpoint")
}

/// Keys as JSON, under the names that every source uses.
fn of_json(value: &Value, session: &str, who: &str) -> Go<Found> {
    let get = |key: &str| text(value, key).map(ToString::to_string);
    let (Some(id), Some(secret)) = (get("AccessKeyId"), get("SecretAccessKey")) else {
        return fail(format!("{who} answered without AccessKeyId and SecretAccessKey"));
    };
    let expires = get("Expiration").and_then(|at| Wall::from_iso(&at)).map(|at| at.0);
    Ok(Found { keys: Keys { id, secret, session: get(session) }, expires })
}

pub(super) fn web_identity(tape: &mut Tape<'_>) -> Go<Fetched> {
    let [path, role] = ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"].map(|name| tape.variable(name));
    let (Some(path), Some(role)) = (path, role) else {
        return fail("AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_ROLE_ARN, the role to take");
    };
    let session = tape.variable("AWS_ROLE_SESSION_NAME");
    let region = region(tape, None);
    let found = by_web_identity(tape, &role, session.as_deref(), &path, region.as_deref())?;
    Ok(fetched(found, None))
}

fn region(tape: &Tape<'_>, of_profile: Option<String>) -> Option<String> {
    super::REGIONS.iter().find_map(|name| tape.variable(name)).or(of_profile)
}

fn by_web_identity(
    tape: &mut Tape<'_>,
    role: &str,
    session: Option<&str>,
    path: &str,
    region: Option<&str>,
) -> Go<Found> {
    let token = tape.read(path, "the web identity token")?;
    let form = form::encode(&[
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", "2011-06-15"),
        ("RoleArn", role),
        ("RoleSessionName", session.unwrap_or(SESSION)),
        ("WebIdentityToken", token.trim()),
    ]);
    let body = tape.http(request("POST", sts(tape, region)?.0, &[FORM], form))?;
    of_xml(&body)
}

fn take_role(
    tape: &mut Tape<'_>,
    keys: &Keys,
    pairs: &[(&str, String)],
    session: Option<&str>,
    region: Option<&str>,
) -> Go<Found> {
    let mut all = alloc::vec![
        ("Action", "AssumeRole"),
        ("Version", "2011-06-15"),
        ("RoleSessionName", session.unwrap_or(SESSION)),
    ];
    all.extend(pairs.iter().map(|(name, value)| (*name, value.as_str())));
    let (url, region) = sts(tape, region)?;
    let mut asked = request("POST", url, &[FORM], form::encode(&all));
    sigv4::sign(&mut asked, keys, Scope { region: &region, service: "sts" }, tape.place.now);
    let body = tape.http(asked)?;
    of_xml(&body)
}

/// Address and region of the token service.
fn sts(tape: &Tape<'_>, region: Option<&str>) -> Go<(String, String)> {
    let region = region.unwrap_or("us-east-1").to_string();
    if !region.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-') {
        return fail(format!("\"{region}\" is no region of AWS"));
    }
    let end = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let url = tape.variable("AWS_ENDPOINT_URL_STS").unwrap_or_else(|| format!("https://sts.{region}.{end}/"));
    if !is_safe(&url) {
        return fail(format!("AWS_ENDPOINT_URL_STS leads to {}, which is not encrypted", host_of(&url)));
    }
    Ok((url, region))
}

/// The keys in an answer of the token service.
fn of_xml(body: &str) -> Go<Found> {
    let get = |name: &str| element(body, name).map(ToString::to_string);
    let (Some(id), Some(secret), Some(session)) =
        (get("AccessKeyId"), get("SecretAccessKey"), get("SessionToken"))
    else {
        return fail("the token service of AWS answered without keys");
    };
    let expires = get("Expiration").and_then(|at| Wall::from_iso(&at)).map(|at| at.0);
    Ok(Found { keys: Keys { id, secret, session: Some(session) }, expires })
}

/// The text of the first element of a name; the texts wanted here hold nothing that would be escaped.
pub(super) fn element<'x>(xml: &'x str, name: &str) -> Option<&'x str> {
    let from = xml.split_once(&format!("<{name}>"))?.1;
    let text = from.split_once(&format!("</{name}>"))?.0.trim();
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::super::{Answer, Ask, Source};
    use super::*;
    use alloc::vec::Vec;

    const CREDENTIALS: &str = "[default]\naws_access_key_id = D\naws_secret_access_key = ds\n\
        [half]\naws_access_key_id = H\n[loop]\nrole_arn = r\nsource_profile = loop2\n\
        [loop2]\nrole_arn = r\nsource_profile = loop\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\n[profile dev]\nrole_arn = arn:role\nsource_profile = default\n\
        external_id = x/1\nregion = eu-central-1\n[profile tool]\ncredential_process = give keys\n\
        [profile sso]\nsso_session = s\n[profile web]\nrole_arn = arn:web\nweb_identity_token_file = /web\n";
    const XML: &str = "<R><Credentials><AccessKeyId>T</AccessKeyId><SecretAccessKey>ts</SecretAccessKey>\
        <SessionToken>tok</SessionToken><Expiration>1970-01-01T01:00:00Z</Expiration></Credentials></R>";

    fn answer(ask: &Ask) -> Answer {
        let text = |text: &str| Answer::Text(text.into());
        match ask {
            Ask::Read(path) => match path.as_str() {
                "/home/u/.aws/credentials" => text(CREDENTIALS),
                "/home/u/.aws/config" => text(CONFIG),
                "/web" | "/token" => text("jwt\n"),
                other => Answer::Missing(format!("{other}: no such file")),
            },
            Ask::Run(command) if command == "give keys" => {
                text(r#"{"Version":1,"AccessKeyId":"P","SecretAccessKey":"ps","SessionToken":"pt"}"#)
            }
            Ask::Http(request) if request.method == "GET" => Answer::Http {
                status: 200,
                body: br#"{"AccessKeyId":"C","SecretAccessKey":"cs","Token":"ct","Expiration":"1970-01-01T01:00:00Z"}"#
                    .to_vec(),
            },
            Ask::Http(_) => Answer::Http { status: 200, body: XML.as_bytes().to_vec() },
            _ => Answer::Missing("no".into()),
        }
    }

    fn keys(fetched: &Fetched) -> (&str, &str, Option<&str>) {
        let Some(AwsAccess::Keys(keys)) = &fetched.credential.aws else { panic!("no keys") };
        (&keys.id, &keys.secret, keys.session.as_deref())
    }

    fn requests(asked: &[Ask]) -> Vec<(String, String)> {
        let http = asked.iter().filter_map(|ask| match ask {
            Ask::Http(request) => Some(request),
            _ => None,
        });
        http.map(|request| (request.url.clone(), String::from_utf8(request.body.to_vec()).unwrap())).collect()
    }

    #[test]
    fn profiles() {
        let hour = Some(3_600_000);
        for (name, wanted, region, expires, calls) in [
            ("default", ("D", "ds", None), Some("eu-west-1"), None, 0),
            ("dev", ("T", "ts", Some("tok")), Some("eu-central-1"), hour, 1),
            ("tool", ("P", "ps", Some("pt")), None, None, 0),
            ("web", ("T", "ts", Some("tok")), None, hour, 1),
        ] {
            let (fetched, asked) = run(&Source::AwsProfile(name.into()), &[], &answer);
            let fetched = fetched.unwrap();
            assert_eq!(keys(&fetched), wanted, "{name}");
            assert_eq!(fetched.credential.env.first().map(|(_, region)| region.as_str()), region, "{name}");
            assert_eq!((fetched.expires, requests(&asked).len()), (expires, calls), "{name}");
        }
        let (_, asked) = run(&Source::AwsProfile("dev".into()), &[], &answer);
        let (url, body) = requests(&asked).remove(0);
        assert_eq!(url, "https://sts.eu-central-1.amazonaws.com/");
        let pairs = form::decode(&body);
        let wanted = [
            ("Action", "AssumeRole"),
            ("RoleArn", "arn:role"),
            ("ExternalId", "x/1"),
            ("RoleSessionName", "tau"),
        ];
        for (key, value) in wanted {
            assert_eq!(form::find(&pairs, key), Some(value));
        }
        let Some(Ask::Http(signed)) = asked.last() else { panic!() };
        let header = signed.headers.iter().find(|(name, _)| name == "authorization").unwrap();
        assert!(header.1.contains("Credential=D/19700101/eu-central-1/sts/"), "{}", header.1);
    }

    #[test]
    fn profiles_that_give_nothing_say_why() {
        for (name, parts) in [
            ("gone", ["\"gone\"", "/home/u/.aws/config"]),
            ("half", ["\"half\"", "aws_secret_access_key"]),
            ("loop", ["too many", "source_profile"]),
            ("sso", ["export-credentials", "--profile sso"]),
        ] {
            let why = run(&Source::AwsProfile(name.into()), &[], &answer).0.err().unwrap();
            assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        }
    }

    #[test]
    fn containers_and_clusters() {
        let relative = [
            ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "tok"),
        ];
        let (fetched, asked) = run(&Source::AwsContainer, &relative, &answer);
        let fetched = fetched.unwrap();
        assert_eq!((keys(&fetched), fetched.expires), (("C", "cs", Some("ct")), Some(3_600_000)));
        let [Ask::Http(request)] = asked.as_slice() else { panic!() };
        assert_eq!(request.url, "http://169.254.170.2/v2/x");
        assert_eq!(request.headers, [("authorization".to_string(), "tok".to_string())]);
        for (url, good) in [
            ("http://127.0.0.1:9/x", true),
            ("http://169.254.170.23/v1/credentials", true),
            ("https://h/x", true),
            ("http://h/x", false),
        ] {
            let env = [
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/token"),
            ];
            assert_eq!(run(&Source::AwsContainer, &env, &answer).0.is_ok(), good, "{url}");
        }
        let web = [
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
            ("AWS_ROLE_ARN", "arn:w"),
            ("AWS_REGION", "us-west-2"),
        ];
        let (fetched, asked) = run(&Source::AwsWebIdentity, &web, &answer);
        assert_eq!(keys(&fetched.unwrap()), ("T", "ts", Some("tok")));
        let (url, body) = requests(&asked).remove(0);
        assert_eq!(url, "https://sts.us-west-2.amazonaws.com/");
        assert_eq!(form::find(&form::decode(&body), "WebIdentityToken"), Some("jwt"));
        let why = run(&Source::AwsWebIdentity, web.split_at(1).0, &answer).0.err().unwrap();
        assert!(why.contains("AWS_ROLE_ARN"), "{why}");
        let refused = |ask: &Ask| match ask {
            Ask::Http(_) => {
                Answer::Http { status: 403, body: b"<E><Message>not yours</Message></E>".to_vec() }
            }
            other => answer(other),
        };
        let why = run(&Source::AwsWebIdentity, &web, &refused).0.err().unwrap();
        assert_eq!(why, "https://sts.us-west-2.amazonaws.com answered 403: not yours");
    }
}
