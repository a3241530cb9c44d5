//! Where the store is and where to look for transcripts: `--root`, `STENO_HOME` and the platform decide.

mod session;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use stenograph_store::discover::Places;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::IndexedSession;

use crate::error::CommandError;
use crate::home::Root;
pub use session::{LATEST, NamedBy, ResolvedName, ResolvedSession};
pub use stenograph::render::bytes;
pub use stenograph_store::hits::{EventAddresses, ShowAddress};
pub use stenograph_store::sessions::{ShortNames, path_json, project_json};

/// Whose transcripts, and which store.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StoreArgs {
    #[command(flatten)]
    root: Root,
}

/// Where a command looks up the transcript that it is given: which store, and which project.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SessionArgs {
    #[command(flatten)]
    place: StoreArgs,
    /// Only sessions of this project; . is the project of this folder
    #[arg(long, value_name = "NAME", add = crate::completion::project())]
    project: Option<String>,
}

impl SessionArgs {
    pub fn new(root: &Root, project: Option<String>) -> SessionArgs {
        SessionArgs { place: StoreArgs::below(root), project }
    }

    /// The project to which names are limited.
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }
}

impl From<&StoreArgs> for SessionArgs {
    fn from(place: &StoreArgs) -> SessionArgs {
        SessionArgs { place: place.clone(), project: None }
    }
}

impl std::ops::Deref for SessionArgs {
    type Target = StoreArgs;

    fn deref(&self) -> &StoreArgs {
        &self.place
    }
}

/// What tables call a session that the index knows.
#[derive(Clone, Debug)]
pub struct SessionLabel {
    /// The beginning of its id that other commands accept.
    pub short: String,
    /// Its title, or the first question.
    pub title: String,
    pub project: Option<String>,
}

/// The labels of sessions, by their ids.
pub type SessionLabels = HashMap<String, SessionLabel>;

/// The sign of a pinned session before its title.
pub const PIN: &str = "* ";

/// The usual data folder, written as in the homes of formats.
const DATA: &str = "{data}/stenograph";

impl StoreArgs {
    pub fn below(root: &Root) -> StoreArgs {
        StoreArgs { root: root.clone() }
    }

    pub fn home(&self) -> &Root {
        &self.root
    }

    /// The folder given instead of the home folder, as an absolute path.
    pub fn root(&self) -> Option<PathBuf> {
        self.root.given().map(|root| std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()))
    }

    /// The labels of those of these sessions that the index knows; none without an index.
    pub fn labels<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<SessionLabels, CommandError> {
        let Ok(catalogue) = self.store()?.catalogue() else { return Ok(SessionLabels::new()) };
        let mut sessions = Vec::new();
        for name in names.collect::<BTreeSet<&str>>() {
            // A prefix is an id of its own if a session has it; with several agents it is not unique.
            let mut found = catalogue.sessions_named(name)?;
            found.retain(|session| session.name == name);
            sessions.extend(found.pop().filter(|_| found.is_empty()));
        }
        let shorts = ShortNames::of_some(&catalogue, &sessions.iter().collect::<Vec<_>>())?;
        let label = |session: &IndexedSession| SessionLabel {
            short: shorts.name(session),
            title: session.about(),
            project: session.project.as_ref().map(|project| project.name.clone()),
        };
        Ok(sessions.iter().map(|session| (session.name.clone(), label(session))).collect())
    }

    /// The store: at `STENO_HOME`, else below the home folder or its replacement.
    pub fn store(&self) -> Result<Store, CommandError> {
        if let Some(folder) = std::env::var_os("STENO_HOME").filter(|folder| !folder.is_empty()) {
            let folder = PathBuf::from(folder);
            return Ok(Store::new(std::path::absolute(&folder).unwrap_or(folder)));
        }
        let folder = self.root.resolve(DATA)?;
        Ok(Store::new(std::path::absolute(&folder).unwrap_or(folder)))
    }

    /// Where to look: the agents' homes, the projects and folders that the store knows, and the working folder's project.
    pub fn places(&self, store: &Store) -> Result<Places, CommandError> {
        if let Some(root) = self.root().filter(|root| !root.is_dir()) {
            let place = root.display();
            return Err(
                CommandError::new(format!("{place}: not a folder")).hint("give an existing folder with --root DIR")
            );
        }
        let mut places = self.root.places();
        if self.root.given().is_none()
            && let Ok(catalogue) = store.catalogue()
        {
            places.projects.extend(catalogue.project_roots()?);
        }
        places.folders.extend(store.added_folders()?);
        places.excluded.push(store.folder().to_owned());
        Ok(places)
    }
}

/// How long a command may take to end after a signal. A blocked read keeps it from noticing the flag; committing what was read
/// takes part of the time.
#[cfg(unix)]
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// Makes SIGHUP, SIGINT and SIGTERM set a flag instead of ending the process. A second signal, or [`GRACE`] after the first, ends it.
#[cfg(unix)]
pub fn on_interrupt(stop: &Arc<AtomicBool>) {
    on_interrupt_wake(stop, || ());
}

/// The same, and wakes a thread that waits for something else.
#[cfg(unix)]
pub fn on_interrupt_wake(stop: &Arc<AtomicBool>, wake: impl FnOnce() + Send + 'static) {
    const SIGNALS: [i32; 3] = [signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
    for signal in SIGNALS {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(stop));
        let _ = signal_hook::flag::register(signal, Arc::clone(stop));
    }
    if let Ok(mut signals) = signal_hook::iterator::Signals::new(SIGNALS) {
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                wake();
                std::thread::sleep(GRACE);
                let said = "error: stopped while a read was still blocked\n";
                let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    }
}

/// Elsewhere the system ends the process.
#[cfg(not(unix))]
pub fn on_interrupt(_stop: &Arc<AtomicBool>) {}

/// Elsewhere the system ends the process.
#[cfg(not(unix))]
pub fn on_interrupt_wake(_stop: &Arc<AtomicBool>, _wake: impl FnOnce() + Send + 'static) {}
