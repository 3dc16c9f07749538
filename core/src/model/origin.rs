//! Where a newer list may send requests of a provider, and with them its key: to the services of the built-in list,
//! and to where `models.json` says. A list that came over the network must not be able to name another place.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::builtin::Section;
use super::record::{self, Record};

/// Scheme, host and port of services that may see the key of a provider.
#[derive(Clone, Debug, Default)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Those of a built-in provider, and of the address configured for it.
    #[must_use]
    pub fn of(section: Section, configured: Option<&str>) -> Self {
        let mut origins = Self::default();
        section.addresses().iter().map(String::as_str).chain(configured).for_each(|url| origins.add(url));
        origins
    }

    fn add(&mut self, url: &str) {
        if let Some(origin) = origin(url).map(str::to_ascii_lowercase)
            && !self.0.contains(&origin)
        {
            self.0.push(origin);
        }
    }

    /// Whether requests to this address stay there. An empty one is made from the environment.
    #[must_use]
    pub fn allow(&self, url: &str) -> bool {
        // What one reader of addresses takes for a host, another may take for a name and password.
        let is_plain = !url.contains(['@', '\\']) && url.bytes().all(|byte| byte.is_ascii_graphic());
        let known = |origin: &str| self.0.iter().any(|own| own.eq_ignore_ascii_case(origin));
        url.is_empty() || is_plain && origin(url).is_some_and(known)
    }

    /// Takes out the models whose requests would go elsewhere; the answer names these places.
    #[must_use]
    pub fn keep(&self, models: &mut Vec<Record>) -> Vec<String> {
        let mut elsewhere: Vec<String> = Vec::new();
        models.retain(|model| {
            let url = record::text(model, "baseUrl");
            let allowed = self.allow(url);
            let place = origin(url).unwrap_or(url);
            if !allowed && !elsewhere.iter().any(|known| known == place) {
                elsewhere.push(place.to_string());
            }
            allowed
        });
        elsewhere
    }
}

/// `https://host:port` of an address.
fn origin(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let rest = url.get(start..)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    url.get(..start + end).filter(|_| end > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builtin;

    #[test]
    fn only_known_places() {
        let section = builtin::section("anthropic").unwrap();
        let origins = Origins::of(section, Some("http://proxy.lan:8080/anthropic"));
        for (url, allowed) in [
            ("https://api.anthropic.com", true),
            ("https://API.anthropic.com/v2", true),
            ("http://proxy.lan:8080/x", true),
            ("", true),
            ("http://api.anthropic.com", false),
            ("https://api.anthropic.com:444", false),
            ("https://api.anthropic.com.evil.example", false),
            ("https://api.anthropic.com@evil.example/", false),
            ("https://evil.example/?https://api.anthropic.com", false),
            ("https://evil.example\\@api.anthropic.com/", false),
            ("https://api.anthropic.com\u{3002}evil.example", false),
            (" https://api.anthropic.com", false),
            ("//api.anthropic.com", false),
            ("https://", false),
        ] {
            assert_eq!(origins.allow(url), allowed, "{url}");
        }
    }

    #[test]
    fn every_built_in_model_is_where_its_provider_is() {
        for section in builtin::sections() {
            let origins = Origins::of(section, None);
            let mut records = section.records();
            let count = records.len();
            assert_eq!(origins.keep(&mut records), Vec::<String>::new(), "{}", section.id);
            assert_eq!(records.len(), count);
        }
    }
}
