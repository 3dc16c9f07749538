//! Stored sessions, open or not: their list, and deleting one.

use tau_core::json::{Value, Writer};
use tau_io_std::sys::clock;

use super::message::{Params, Refusal, absolute, optional_text, text};
use super::{Acp, empty};
use crate::bootstrap::Base;
use crate::sessions::{Folder, Found, Place};
use crate::surroundings::Surroundings;

/// Most sessions of one page of a list.
const PAGE: usize = 100;

/// Longest title, characters.
const TITLE: usize = 200;

impl Acp {
    pub(super) fn list_sessions(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let cwd = optional_text(params, "cwd")?.map(|cwd| absolute(cwd, "cwd")).transpose()?;
        let from: usize = match optional_text(params, "cursor")? {
            None => 0,
            Some(cursor) => {
                cursor.parse().map_err(|_| Refusal::params("the cursor is none of this agent"))?
            }
        };
        let found =
            self.at(cwd, |at, folder| if cwd.is_some() { at.list(folder) } else { at.list_all(folder) })?;
        let page = found.get(from..).unwrap_or_default();
        self.client.result(id, |w| {
            w.begin_object();
            w.key("sessions");
            w.begin_array();
            let named = page.iter().take(PAGE).filter(|found| !found.info.cwd.is_empty());
            named.for_each(|found| listed(found, w));
            w.end_array();
            if page.len() > PAGE {
                w.field_str("nextCursor", &(from + PAGE).to_string());
            }
            w.end_object();
        });
        Ok(())
    }

    /// One that does not exist is deleted already.
    pub(super) fn delete_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let name = text(params, "sessionId")?;
        if let Some(seat) = self.seats.remove(name) {
            seat.close();
        }
        self.at(None, |at, folder| at.delete(folder, name))?.map_err(Refusal::internal)?;
        self.client.result(id, empty);
        Ok(())
    }

    /// Looks where sessions are stored, for a working directory.
    fn at<T>(&self, cwd: Option<&str>, look: impl FnOnce(&Place<'_>, &Folder) -> T) -> Result<T, Refusal> {
        let mut place = Surroundings::gather().map_err(Refusal::internal)?;
        if let Some(cwd) = cwd {
            cwd.clone_into(&mut place.cwd);
        }
        let mut warnings = Vec::new();
        let base = Base::read(place, &self.args, &mut warnings).map_err(Refusal::internal)?;
        let setting = base.session_dir();
        let at = Place { surroundings: &base.place, setting: setting.as_deref(), now: clock::wall() };
        let folder = at.folder(&self.args).map_err(Refusal::internal)?;
        Ok(look(&at, &folder))
    }
}

fn listed(found: &Found, w: &mut Writer) {
    let info = &found.info;
    w.begin_object();
    w.field_str("sessionId", &info.id);
    w.field_str("cwd", &info.cwd);
    w.field_opt_str("title", title(found).as_deref());
    w.field_str("updatedAt", &info.modified.to_iso());
    w.end_object();
}

/// The name, or what was said first, on one line.
fn title(found: &Found) -> Option<String> {
    let text = found.info.name.as_deref().or(found.info.first_message.as_deref())?;
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" ").chars().take(TITLE).collect())
}
