//! Where requests go: Gemini's own endpoint, and Vertex AI by key or by project (spec 30 §3.4, §3.9).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use super::VERTEX;
use crate::fault::Fault;
use crate::provider::ModelRequest;
use crate::provider::request::{base_url, checked_url};

const GEMINI_BASE: &str = "https://generativelanguage.googleapis.com/v1beta";
const VERTEX_BASE: &str = "https://aiplatform.googleapis.com";
/// Stands in the address of built-in Vertex models for the place that the user chooses.
const PLACE: &str = "{location}";

/// Variables of a credential that tell the project which pays, and where its models run. A request that an access
/// token authorises names both.
pub const VARIABLES: [&str; 3] = ["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"];

/// The address of a request; `by_key` = an API key authorises it.
///
/// # Errors
/// When the id would change the address, the base URL is none, or project and place are not known.
pub(super) fn url(request: &ModelRequest<'_>, by_key: bool) -> Result<String, Fault> {
    let model = request.model;
    let id = model.id.as_str();
    if id.is_empty() || id.contains("..") || id.contains(['?', '&', '#']) {
        let text = format!("\"{id}\" is no id of a model: it would change the address.");
        return Err(Fault::new("bad_model_id", text));
    }
    let base = base_url(request);
    let is_vertex = model.api == VERTEX;
    let base = match base {
        _ if is_vertex && !by_key => project_base(request, base)?.into(),
        _ if is_vertex && (base.is_empty() || base.contains(PLACE)) => versioned(VERTEX_BASE),
        _ if is_vertex => versioned(base),
        "" => GEMINI_BASE.into(),
        base => base.into(),
    };
    checked_url(&base, &model.provider)?;
    let starts = |list: &[&str]| list.iter().any(|start| id.starts_with(start));
    let path = match id.split_once('/') {
        _ if is_vertex && starts(&["publishers/", "projects/", "models/"]) => id.into(),
        _ if !is_vertex && starts(&["models/", "tunedModels/"]) => id.into(),
        Some((publisher, name)) if is_vertex => format!("publishers/{publisher}/models/{name}"),
        None if is_vertex => format!("publishers/google/models/{id}"),
        _ => format!("models/{id}"),
    };
    Ok(format!("{base}/{path}:streamGenerateContent?alt=sse"))
}

/// The base URL with a version of the service in it.
fn versioned(base: &str) -> Cow<'_, str> {
    let path = base.split("://").nth(1).unwrap_or_default();
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if path.split('/').skip(1).any(is_version) { base.into() } else { format!("{base}/v1").into() }
}

/// Base URL of Vertex AI with project and place. An address that the user chose stands for Google's host.
fn project_base(request: &ModelRequest<'_>, base: &str) -> Result<String, Fault> {
    let variable = |name: &str| {
        let found = request.credential.env.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    let [project, older, location] = VARIABLES.map(variable);
    let (Some(project), Some(location)) = (project.or(older), location) else {
        return Err(Fault::new(
            "no_project",
            "An access token of Google Cloud needs a project and a place: set GOOGLE_CLOUD_PROJECT and \
             GOOGLE_CLOUD_LOCATION, in the environment or beside the token in auth.json.",
        ));
    };
    let host = match location {
        _ if !base.is_empty() && !base.contains(PLACE) => base.into(),
        "global" => VERTEX_BASE.into(),
        "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
        _ => format!("https://{location}-aiplatform.googleapis.com"),
    };
    Ok(format!("{}/projects/{project}/locations/{location}", versioned(&host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::op::Credential;
    use crate::provider::RequestOptions;
    use alloc::vec;

    fn url_of(api: &str, base: &str, id: &str, location: Option<&str>) -> Result<String, &'static str> {
        let model = Model { api: api.into(), base_url: base.into(), id: id.into(), ..Model::default() };
        let place = |name: &str, value: &str| (String::from(name), String::from(value));
        let env = location.map(|place_name| {
            vec![place("GOOGLE_CLOUD_PROJECT", "p-1"), place("GOOGLE_CLOUD_LOCATION", place_name)]
        });
        let credential = Credential { env: env.unwrap_or_default(), ..Credential::default() };
        let options = RequestOptions::default();
        let request = ModelRequest {
            model: &model,
            messages: &[],
            options: &options,
            credential: &credential,
            now_ms: 1,
        };
        url(&request, location.is_none()).map_err(|fault| fault.code)
    }

    const END: &str = ":streamGenerateContent?alt=sse";
    const PLACED: &str = "https://{location}-aiplatform.googleapis.com";

    #[test]
    fn addresses() {
        let gemini = "google-generative-ai";
        for (api, base, id, wanted) in [
            (gemini, "", "m", "https://generativelanguage.googleapis.com/v1beta/models/m"),
            (gemini, "http://h/v1/", "models/m", "http://h/v1/models/m"),
            (gemini, "http://h/v1", "tunedModels/m", "http://h/v1/tunedModels/m"),
            (VERTEX, "", "m", "https://aiplatform.googleapis.com/v1/publishers/google/models/m"),
            (VERTEX, PLACED, "a/c", "https://aiplatform.googleapis.com/v1/publishers/a/models/c"),
            (VERTEX, "http://h/x", "publishers/a/models/b", "http://h/x/v1/publishers/a/models/b"),
            (VERTEX, "http://v1/x", "m", "http://v1/x/v1/publishers/google/models/m"),
        ] {
            assert_eq!(url_of(api, base, id, None), Ok(format!("{wanted}{END}")));
        }
        assert_eq!(url_of(gemini, "ftp://h", "m", None), Err("bad_url"));
        for id in ["", "../m", "m?x=1", "m&x", "m#x"] {
            assert_eq!(url_of(gemini, "http://h", id, None), Err("bad_model_id"));
        }
    }

    #[test]
    fn projects() {
        for (base, location, wanted) in [
            (PLACED, "europe-west4", "https://europe-west4-aiplatform.googleapis.com/v1"),
            ("", "global", "https://aiplatform.googleapis.com/v1"),
            (PLACED, "eu", "https://aiplatform.eu.rep.googleapis.com/v1"),
            ("http://gw/v1beta1/", "us", "http://gw/v1beta1"),
        ] {
            let wanted =
                format!("{wanted}/projects/p-1/locations/{location}/publishers/google/models/m{END}");
            assert_eq!(url_of(VERTEX, base, "m", Some(location)), Ok(wanted));
        }
        assert_eq!(url_of(VERTEX, PLACED, "m", Some(" ")), Err("no_project"));
    }
}
