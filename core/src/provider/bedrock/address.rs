//! Where requests go: region and endpoint (spec 30 §3.8).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use crate::auth::sigv4::path_part;
use crate::fault::Fault;
use crate::op::host_of;
use crate::provider::ModelRequest;
use crate::provider::request::{base_url, checked_url};

/// Variables of a credential that tell where a request goes and how it is authorised.
pub const VARIABLES: [&str; 4] =
    ["AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEDROCK_SKIP_AUTH", "AWS_BEDROCK_FORCE_CACHE"];

const DEFAULT_REGION: &str = "us-east-1";

/// A variable of the credential; blank ones do not count.
pub(super) fn variable<'a>(request: &ModelRequest<'a>, name: &str) -> Option<&'a str> {
    let found = request.credential.env.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Whether a variable is switched on.
pub(super) fn is_on(request: &ModelRequest<'_>, name: &str) -> bool {
    variable(request, name) == Some("1")
}

/// The region of a standard address of the service: `https://bedrock-runtime.eu-west-1.amazonaws.com`.
#[must_use]
pub fn region_of_host(url: &str) -> Option<String> {
    let origin = host_of(url);
    let host = origin.split_once("://")?.1;
    let rest =
        host.strip_prefix("bedrock-runtime.").or_else(|| host.strip_prefix("bedrock-runtime-fips."))?;
    let region = rest.strip_suffix(".amazonaws.com").or_else(|| rest.strip_suffix(".amazonaws.com.cn"))?;
    (is_region(region)).then(|| region.into())
}

/// A name that may become a part of a host.
fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
}

/// Region and address of a request.
///
/// # Errors
/// When the region is no name of one, or the base URL is none.
pub(super) fn place(request: &ModelRequest<'_>) -> Result<(String, String), Fault> {
    let (model, base) = (request.model, base_url(request));
    let standard = region_of_host(base);
    let configured = variable(request, "AWS_REGION").or_else(|| variable(request, "AWS_DEFAULT_REGION"));
    let region: Cow<'_, str> = match (region_of_arn(&model.id), configured, &standard) {
        (Some(region), ..) | (None, Some(region), _) => region.into(),
        (None, None, Some(region)) => region.as_str().into(),
        (None, None, None) => DEFAULT_REGION.into(),
    };
    if !is_region(&region) {
        let text =
            format!("\"{region}\" is no region of AWS; correct AWS_REGION or the region of the profile.");
        return Err(Fault::new("bad_region", text));
    }
    // A standard address stands for "the service", wherever the user is; any other one is meant as it is.
    let base: Cow<'_, str> = match standard {
        Some(ref host) if *host == *region => base.into(),
        None if !base.is_empty() => base.into(),
        _ => endpoint(&region).into(),
    };
    checked_url(&base, &model.provider)?;
    let url = format!("{base}/model/{}/converse-stream", path_part(&model.id));
    Ok((region.into_owned(), url))
}

fn endpoint(region: &str) -> String {
    let end = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://bedrock-runtime.{region}.{end}")
}

/// `arn:partition:bedrock:region:account:resource`
fn region_of_arn(id: &str) -> Option<&str> {
    let mut parts = id.strip_prefix("arn:")?.split(':').skip(1);
    let service = parts.next()?;
    parts.next().filter(|region| service == "bedrock" && !region.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::op::Credential;
    use crate::provider::RequestOptions;
    use alloc::string::ToString;

    #[test]
    fn region_and_address() {
        let us = "https://bedrock-runtime.us-east-1.amazonaws.com";
        let eu = "https://bedrock-runtime.eu-central-1.amazonaws.com";
        let arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc";
        let arn_path =
            "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Aapplication-inference-profile%2Fabc";
        for (base, id, env, region, wanted) in [
            (us, "m:0", &[][..], "us-east-1", format!("{us}/model/m%3A0")),
            (eu, "m", &[], "eu-central-1", format!("{eu}/model/m")),
            (us, "m", &[("AWS_REGION", "eu-central-1")], "eu-central-1", format!("{eu}/model/m")),
            (
                us,
                "m",
                &[("AWS_REGION", " "), ("AWS_DEFAULT_REGION", "eu-central-1")],
                "eu-central-1",
                format!("{eu}/model/m"),
            ),
            ("", "m", &[], "us-east-1", format!("{us}/model/m")),
            (
                "",
                "m",
                &[("AWS_REGION", "cn-north-1")],
                "cn-north-1",
                "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/m".into(),
            ),
            (
                "http://h:1/x/",
                "m",
                &[("AWS_REGION", "eu-central-1")],
                "eu-central-1",
                "http://h:1/x/model/m".into(),
            ),
            ("http://h:1", "m", &[], "us-east-1", "http://h:1/model/m".into()),
            ("http://h:1", arn, &[("AWS_REGION", "us-west-2")], "eu-west-1", format!("http://h:1{arn_path}")),
            (us, arn, &[], "eu-west-1", format!("https://bedrock-runtime.eu-west-1.amazonaws.com{arn_path}")),
        ] {
            assert_eq!(
                at(base, id, env),
                Ok((region.to_string(), format!("{wanted}/converse-stream"))),
                "{base} {id}"
            );
        }
        assert_eq!(at("", "m", &[("AWS_REGION", "evil.com/x")]), Err("bad_region"));
        assert_eq!(at("ftp://h", "m", &[]), Err("bad_url"));
        let fips = "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com";
        assert_eq!(region_of_host(fips).as_deref(), Some("us-gov-west-1"));
        assert_eq!(at(fips, "m", &[]).map(|(_, url)| url), Ok(format!("{fips}/model/m/converse-stream")));
        assert_eq!(region_of_host("https://bedrock-runtime.a.b.amazonaws.com"), None);
    }

    fn at(base: &str, id: &str, env: &[(&str, &str)]) -> Result<(String, String), &'static str> {
        let model = Model { base_url: base.into(), id: id.into(), ..Model::default() };
        let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let credential = Credential { env, ..Credential::default() };
        let options = RequestOptions::default();
        let request = ModelRequest {
            model: &model,
            messages: &[],
            options: &options,
            credential: &credential,
            now_ms: 1,
        };
        place(&request).map_err(|fault| fault.code)
    }
}
