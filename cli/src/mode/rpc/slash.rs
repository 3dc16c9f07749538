//! The commands that a prompt can begin with (spec 60 §3.3: `get_commands`).

use tau_core::json::Writer;
use tau_core::skills::SourceInfo;

use super::Rpc;
use super::call::Call;
use super::commands::Answer;

impl Rpc {
    /// Templates, then skills. Those that only people start are there too: this list is for people.
    pub(super) fn get_commands(&mut self, _: &Call) -> Result<Answer, String> {
        let mut w = Writer::new();
        w.begin_object();
        w.key("commands");
        w.begin_array();
        for template in &self.resources.templates {
            write(
                &template.name,
                &template.description,
                "prompt",
                &template.file_path,
                &template.source,
                &mut w,
            );
        }
        for skill in &self.resources.skills {
            let name = format!("skill:{}", skill.name);
            write(&name, &skill.description, "skill", &skill.file_path, &skill.source, &mut w);
        }
        w.end_array();
        w.end_object();
        Ok(Answer::Data(w.into_string()))
    }
}

fn write(name: &str, description: &str, kind: &str, path: &str, source: &SourceInfo, w: &mut Writer) {
    w.begin_object();
    w.field_str("name", name);
    w.field_opt_str("description", Some(description).filter(|text| !text.is_empty()));
    w.field_str("source", kind);
    w.key("sourceInfo");
    w.begin_object();
    w.field_str("path", path);
    w.field_str("source", source.kind.as_str());
    w.field_str("scope", source.scope.as_str());
    // No packages yet: everything stands for itself.
    w.field_str("origin", "top-level");
    w.field_str("baseDir", &source.base_dir);
    w.end_object();
    w.end_object();
}
