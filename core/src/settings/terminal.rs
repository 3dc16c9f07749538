//! What settings say about a terminal interface (spec 40 §4.2).

use alloc::string::String;

use super::Settings;
use crate::json::{Map, Value};

/// What a terminal can do, by order of the user.
const ABILITIES: [(&str, fn(&Value) -> bool); 3] = [
    ("hyperlinks", Value::is_boolean),
    ("images", |value| *value == false || value == "kitty" || value == "iterm2"),
    ("trueColor", Value::is_boolean),
];

impl Settings {
    /// `theme`, if it names one theme and not one each for light and dark.
    #[must_use]
    pub fn theme(&self) -> Option<&str> {
        self.get(&["theme"])?.as_str().filter(|name| !name.contains('/'))
    }

    /// `externalEditor`; else what the environment names, else what is on most machines. Blank names do not count.
    #[must_use]
    pub fn external_editor<'a>(&'a self, visual: Option<&'a str>, editor: Option<&'a str>) -> &'a str {
        let own = self.get(&["externalEditor"]).and_then(Value::as_str);
        let named = [own, visual, editor].into_iter().flatten();
        let mut named = named.map(str::trim).filter(|name| !name.is_empty());
        named.next().unwrap_or(if cfg!(windows) { "notepad" } else { "nano" })
    }

    /// `showHardwareCursor`; else `PI_HARDWARE_CURSOR`, given as `variable`.
    #[must_use]
    pub fn show_hardware_cursor(&self, variable: Option<&str>) -> bool {
        self.get(&["showHardwareCursor"]).and_then(Value::as_bool).unwrap_or_else(|| variable == Some("1"))
    }

    /// What the user says that the terminal can do; `auto` and what is no answer are left out.
    #[must_use]
    pub fn terminal_overrides(&self) -> Map<String, Value> {
        let said = ABILITIES.into_iter().filter_map(|(name, is_answer)| {
            let value = self.get(&["terminal", name]).filter(|value| is_answer(value))?;
            Some((name.into(), value.clone()))
        });
        said.collect()
    }

    /// `warnings`, as set.
    #[must_use]
    pub fn warnings(&self) -> Map<String, Value> {
        self.get(&["warnings"]).and_then(Value::as_object).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Scope, Source, load};

    #[test]
    fn the_first_editor_that_has_a_name() {
        let none = Settings::default();
        assert_eq!(none.external_editor(Some("vi"), Some("ed")), "vi");
        assert_eq!(none.external_editor(Some(" "), Some("ed")), "ed");
        let text = r#"{"externalEditor":"code -w","showHardwareCursor":false}"#;
        let (set, _) = load(&[Source { scope: Scope::Global, path: "s", text: Ok(Some(text)) }]);
        assert_eq!(set.external_editor(Some("vi"), None), "code -w");
        assert!(none.show_hardware_cursor(Some("1")) && !set.show_hardware_cursor(Some("1")));
    }
}
