//! Where a deployment at Azure is (spec 30 §3.6), for Responses and for chat completions.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::fault::Fault;
use crate::provider::ModelRequest;
use crate::provider::request::{base_url, checked_url};

/// Variables that are looked at, in the environment or beside the credentials.
pub const VARIABLES: [&str; 4] = [BASE, RESOURCE, VERSION, DEPLOYMENTS];

const BASE: &str = "AZURE_OPENAI_BASE_URL";
const RESOURCE: &str = "AZURE_OPENAI_RESOURCE_NAME";
const VERSION: &str = "AZURE_OPENAI_API_VERSION";
const DEPLOYMENTS: &str = "AZURE_OPENAI_DEPLOYMENT_NAME_MAP";

const HOSTS: &[&str] = &[".openai.azure.com", ".cognitiveservices.azure.com", ".ai.azure.com"];

/// A deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address without the path of the protocol.
    pub base_url: String,
    /// Version of the interface.
    pub api_version: String,
    /// Stands for the model in requests.
    pub deployment: String,
}

impl Endpoint {
    /// The deployment a request goes to.
    ///
    /// # Errors
    /// When no address is configured, or it is none.
    pub(super) fn of(request: &ModelRequest<'_>) -> Result<Self, Fault> {
        let env = &request.credential.env;
        let variable = |name: &str| env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        Self::resolve(&variable, &request.model.id, base_url(request))
    }

    /// The deployment of the model `id`: by variables, else at `configured`.
    ///
    /// # Errors
    /// When no address is configured, or it is none.
    pub fn resolve<'a>(
        variable: &dyn Fn(&str) -> Option<&'a str>,
        id: &str,
        configured: &str,
    ) -> Result<Self, Fault> {
        let set = |name: &str| variable(name).map(str::trim).filter(|value| !value.is_empty());
        let base = match (set(BASE), set(RESOURCE)) {
            (Some(base), _) => base.to_owned(),
            (None, Some(name)) => format!("https://{name}{}/openai/v1", HOSTS.first().unwrap_or(&"")),
            (None, None) if configured.is_empty() => {
                return Err(Fault::new(
                    "no_url",
                    format!("No address for Azure: set {BASE} or {RESOURCE}, or baseUrl in models.json."),
                ));
            }
            (None, None) => configured.to_owned(),
        };
        checked_url(&base, "azure")?;
        let pairs = set(DEPLOYMENTS).unwrap_or_default().split(',');
        let mut named = pairs.filter_map(|pair| {
            let mut sides = pair.split('=').map(str::trim);
            let (model, name) = (sides.next()?, sides.next()?);
            (model == id && !name.is_empty()).then_some(name)
        });
        Ok(Self {
            base_url: normal(&base),
            api_version: set(VERSION).unwrap_or("v1").to_owned(),
            deployment: named.next_back().unwrap_or(id).to_owned(),
        })
    }

    /// The address of a request of a protocol with this path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/{path}?api-version={}", self.base_url, self.api_version)
    }
}

/// The address with the path that Azure's own hosts have; another host keeps its path.
fn normal(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (host, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let host = host.to_ascii_lowercase();
    let bare = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    let ours = matches!(
        bare,
        "" | "/openai" | "/openai/v1" | "/openai/v1/responses" | "/openai/v1/chat/completions"
    );
    if ours && HOSTS.iter().any(|end| host.ends_with(end)) {
        return format!("{scheme}://{host}/openai/v1");
    }
    format!("{scheme}://{host}{path}")
}
