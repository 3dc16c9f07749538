//! What clients do with a session, whatever protocol they speak: models, levels, images of a message.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::backend::{Engine, Machine};
use tau_core::fault::Fault;
use tau_core::hub::Hub;
use tau_core::input::Command;
use tau_core::message::{Block, ImageBlock};
use tau_core::model::select::once_per_provider;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::op::ImageLimits;
use tau_core::provider::demo;
use tau_core::settings::Settings;
use tau_core::tools::image_rules;
use tau_core::tools::shell_env::retuned;
use tau_io_std::sys::image;

use crate::bootstrap::Workshop;
use crate::choose::nothing_usable;
use crate::config::Access;

/// Hands a command to the hub. What follows from it has been written when this returns.
///
/// # Errors
/// Why it is not followed.
pub fn tell(engine: &Engine<Hub>, command: Command) -> Result<(), String> {
    let now = engine.now();
    engine.with_mut(|hub| hub.command(now, command)).map_err(|fault: Fault| fault.message)
}

/// How long a session that is closed may take to end what it does.
const CLOSE_LIMIT: Duration = Duration::from_secs(4);

/// Ends what goes on in a session, and the session with it; the process and its other sessions go on. What does not end
/// in time is cancelled and left alone.
pub fn close(engine: &Engine<Hub>) {
    if !engine.command_within(Command::Abort, CLOSE_LIMIT) {
        return;
    }
    engine.command(Command::AbortShells);
    let deadline = Instant::now() + CLOSE_LIMIT;
    while Instant::now() < deadline && !engine.with(Machine::is_idle) {
        thread::sleep(Duration::from_millis(2));
    }
    let _ = engine.shutdown(CLOSE_LIMIT);
}

/// The model of a session.
#[must_use]
pub fn model(engine: &Engine<Hub>) -> Arc<Model> {
    engine.with(|hub| Arc::clone(hub.desk().agent().model()))
}

/// The level of a session.
#[must_use]
pub fn thinking(engine: &Engine<Hub>) -> ThinkingLevel {
    engine.with(|hub| hub.desk().agent().thinking())
}

/// Why a run cannot start, if it cannot.
#[must_use]
pub fn why_no_prompt(workshop: &mut Workshop, model: &Model) -> Option<String> {
    if model.is_placeholder() {
        return Some(nothing_usable(&workshop.base.place, workshop.args.offline));
    }
    let access = &mut workshop.access;
    if access.usable(&model.provider) {
        return None;
    }
    access.refresh();
    (!access.usable(&model.provider)).then(|| format!("no API key: {}", access.why_unusable(model)))
}

/// Models whose provider has credentials; the demo must be named (decision D4).
#[must_use]
pub fn available(access: &mut Access) -> Vec<Model> {
    access.refresh();
    let entries = access.catalog.entries();
    let usable = |provider: &str| access.usable(provider);
    let mut usable = once_per_provider(&usable);
    let usable = entries.iter().filter(|entry| entry.provider != demo::API && usable(entry.provider));
    usable.map(|entry| entry.model()).collect()
}

/// Changes the model. The level goes with it: that of the scope, its own setting, the general one, else what is
/// current (spec 10 §8.6).
///
/// # Errors
/// Why the hub does not follow.
pub fn change_model(
    engine: &Engine<Hub>,
    settings: &Settings,
    model: Arc<Model>,
    scoped: Option<ThinkingLevel>,
) -> Result<(), String> {
    let own = scoped.or_else(|| settings.model_thinking_level(&model.provider, &model.id));
    let thinking = own.or_else(|| settings.default_thinking_level());
    tell(engine, Command::SetModel { model, thinking })?;
    retune(engine);
    Ok(())
}

/// Changes the level.
///
/// # Errors
/// Why the hub does not follow.
pub fn change_thinking(engine: &Engine<Hub>, level: ThinkingLevel) -> Result<(), String> {
    tell(engine, Command::SetThinking(level))?;
    retune(engine);
    Ok(())
}

/// Tells the tools of the model and the level.
fn retune(engine: &Engine<Hub>) {
    engine.with_mut(|hub| {
        let (agent, session) = (hub.desk().agent(), hub.desk().session());
        let env = retuned(hub.env(), session, agent.model(), agent.thinking());
        hub.set_env(Arc::new(env));
    });
}

/// Makes the images of a message fit for a model; hints about their size join the text.
///
/// # Errors
/// Why an image cannot be sent.
pub fn fit_images(text: &mut String, images: &mut [Block], limits: &ImageLimits) -> Result<(), String> {
    for block in images.iter_mut().filter(|_| limits.resize) {
        let Block::Image(ImageBlock { data, mime_type }) = &*block else { continue };
        let fitted = image::fit_base64(data, mime_type, limits)
            .map_err(|why| format!("an image cannot be sent: {why}"))?;
        if let (Some(original), Some(shown)) = (fitted.original, fitted.shown) {
            text.push('\n');
            text.push_str(&image_rules::coordinate_hint(original, shown));
        }
        *block = Block::image(fitted.data, fitted.mime_type);
    }
    Ok(())
}
