//! Completes values that only the store knows while the user types: sessions, projects and models. A shell calls `steno` for
//! it; without a store, or with one that cannot be read, there is nothing to offer, and never an error.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use stenograph::formats::FORMATS;
use stenograph::model::{Kind, Role};
use stenograph::query::fields;
use stenograph_store::index::catalogue::IndexedSession;

use crate::config::SETTINGS;
use crate::output::{harmless_line, shortened};
use crate::store::{LATEST, StoreArgs};
use stenograph_store::sessions::ShortNames;

/// The environment variable by which a shell asks for completions.
pub const VARIABLE: &str = "STENO_COMPLETE";

/// How many sessions are offered.
const SESSIONS_MAX: usize = 200;

/// The longest title beside a session.
const TITLE_LENGTH_MAX: usize = 60;

/// Completes a transcript: a path, a session, or `latest`.
pub fn transcript() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut offered = session_candidates(current);
        offered.extend(PathCompleter::file().stdio().complete(current));
        offered
    })
}

/// Completes a session.
pub fn session() -> ArgValueCompleter {
    ArgValueCompleter::new(session_candidates)
}

/// Completes the name of a project.
pub fn project() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = sessions().into_iter().filter_map(|session| session.project.map(|project| project.name));
        matching(current, names.chain([".".to_owned()]))
    })
}

/// Completes the name of a model.
pub fn model() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        matching(current, sessions().into_iter().filter_map(|session| session.model))
    })
}

/// Completes a tag of a session.
pub fn tag() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| matching(current, tags().into_iter()))
}

fn tags() -> Vec<String> {
    let catalogue = StoreArgs::default().store().ok().and_then(|store| store.catalogue().ok());
    let marks = catalogue.and_then(|catalogue| catalogue.marks().ok()).unwrap_or_default();
    marks.into_values().flat_map(|marks| marks.tags).collect()
}

/// Completes the name of an agent.
pub fn agent() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        matching(current, FORMATS.iter().map(|format| format.info().agent.to_owned()))
    })
}

/// Completes the name of an agent that steno can move sessions to.
pub fn target_agent() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let targets =
            FORMATS.iter().map(|format| format.info()).filter(|info| info.placement.is_some() || info.import.is_some());
        matching(current, targets.map(|info| info.agent.to_owned()))
    })
}

/// Completes the name of a setting.
pub fn setting() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| matching(current, SETTINGS.iter().map(|setting| setting.key.to_owned())))
}

/// Completes a kind or a role.
pub fn kind() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let kinds = Kind::WORDS.iter().map(|(word, _)| (*word).to_owned());
        matching(current, kinds.chain(Role::ALL.map(|role| role.name().to_owned())))
    })
}

/// Completes a word of a query: the name of a field, or the value of a field.
pub fn query() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let typed = current.to_string_lossy();
        let Some((field, _)) = typed.split_once(':') else {
            return matching(current, fields().into_iter().map(|(field, _)| format!("{field}:")));
        };
        let values: Vec<String> = match field {
            "agent" => FORMATS.iter().map(|format| format.info().agent.to_owned()).collect(),
            "project" => {
                sessions().into_iter().filter_map(|session| session.project.map(|project| project.name)).collect()
            }
            "model" => sessions().into_iter().filter_map(|session| session.model).collect(),
            "tag" => tags(),
            field => {
                let known = fields().into_iter().find(|(name, _)| *name == field);
                known.into_iter().flat_map(|(_, values)| values).map(str::to_owned).collect()
            }
        };
        matching(current, values.into_iter().map(|value| format!("{field}:{value}")))
    })
}

fn sessions() -> Vec<IndexedSession> {
    let catalogue = StoreArgs::default().store().ok().and_then(|store| store.catalogue().ok());
    let mut sessions = catalogue.and_then(|catalogue| catalogue.sessions().ok()).unwrap_or_default();
    sessions.sort_by_key(|session| std::cmp::Reverse((session.ended, session.id)));
    sessions
}

/// The different names that begin with what the user typed. Names with control characters are not offered, because a shell
/// would insert them.
fn matching(current: &OsStr, names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let begin = current.to_string_lossy().to_lowercase();
    let fits = |name: &String| name.to_lowercase().starts_with(&begin) && harmless_line(name) == *name;
    names.filter(fits).collect::<BTreeSet<String>>().into_iter().map(CompletionCandidate::new).collect()
}

fn session_candidates(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let catalogue = StoreArgs::default().store().ok().and_then(|store| store.catalogue().ok());
    let Some(names) = catalogue.and_then(|catalogue| ShortNames::of(&catalogue).ok()) else { return Vec::new() };
    let mut offered = Vec::new();
    if LATEST.starts_with(current) {
        offered.push(CompletionCandidate::new(LATEST).help(Some("the session with the newest event".into())));
    }
    let begins = |name: &str| name.get(..current.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(current));
    for session in sessions().iter().filter(|session| begins(&session.name)).take(SESSIONS_MAX) {
        let short = names.name(session);
        // What the user typed may be longer than the short name.
        let name = if short.len() >= current.len() { short } else { session.name.clone() };
        if harmless_line(&name) != name {
            continue;
        }
        let help = format!("{} {}", session.agent, shortened(&harmless_line(&session.about()), TITLE_LENGTH_MAX));
        offered.push(CompletionCandidate::new(name).help(Some(help.trim_end().to_owned().into())));
    }
    let ordered = offered.into_iter().enumerate();
    ordered.map(|(at, candidate)| candidate.display_order(Some(at))).collect()
}
