//! The current `transcript/` folder: entries go to the active file, which becomes a partition when it is full or old, and a
//! manifest lists the partitions. These are Chibi's rules, with one exception: a partition never replaces another one of its
//! name.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use stenograph::json::{self, Draft, Object};
use stenograph::model::Role;
use stenograph::text::quote;

use super::entry::{self, ContextEntry};
use super::inbox_lock::InboxLock;
use super::transcript::{SyncTime, append_lines};
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, replace};
use crate::tail::Warning;

/// The folder.
#[derive(Debug)]
pub struct Partitions {
    folder: PathBuf,
    /// The state of the active file, as long as no other process writes to it.
    active: Option<ActiveFile>,
}

/// When the active file becomes a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RotationPolicy {
    entries_max: u64,
    age_seconds_max: u64,
    tokens_max: Option<u64>,
}

impl Default for RotationPolicy {
    fn default() -> Self {
        RotationPolicy { entries_max: 1_000, age_seconds_max: 30 * 24 * 60 * 60, tokens_max: Some(100_000) }
    }
}

/// The manifest. It is written at the first rotation, so it may be missing.
#[derive(Debug, Default)]
struct Manifest {
    active: Option<String>,
    /// The partitions as they are written: unknown fields stay.
    partitions: Vec<String>,
    policy: RotationPolicy,
    /// The manifest as it was read.
    text: Option<String>,
}

/// The counts of the active file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ActiveFile {
    length: u64,
    entries: u64,
    prompts: u64,
    tokens: u64,
    first_seconds: Option<u64>,
    last_seconds: Option<u64>,
}

/// Chibi's estimate for its partitions.
const BYTES_PER_TOKEN: usize = 3;

const ACTIVE: &str = "active.jsonl";
const MANIFEST_SIZE_MAX: u64 = 64 << 20;

impl Partitions {
    /// The folder of the transcript.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The partitions in this folder.
    pub fn new(folder: PathBuf) -> Partitions {
        Partitions { folder, active: None }
    }

    /// All files, oldest first: listed partitions, partitions that a crash left unlisted, and the active file.
    pub fn files(&self, files: &dyn Files) -> Result<Vec<PathBuf>, Error> {
        let manifest = self.manifest(files)?;
        let mut paths = Vec::new();
        for partition in &manifest.partitions {
            let file = Object::parse(partition).and_then(|object| Some(object.peek_str("file")?.into_owned()));
            if let Some(file) = file {
                paths.push(self.below(&file)?);
            }
        }
        paths.extend(self.unlisted(files, &manifest)?);
        let active = self.active_path(files, &manifest)?;
        if !paths.contains(&active) {
            paths.push(active);
        }
        Ok(paths)
    }

    /// Appends entries and starts a new file whenever the active one is full.
    pub fn append(
        &mut self,
        files: &dyn Files,
        entries: &[&ContextEntry],
        now: u64,
        sync: SyncTime,
    ) -> Result<Vec<Warning>, Error> {
        let _latch = InboxLock::wait(&self.folder.join(".transcript.lock"))?;
        let mut manifest = self.manifest(files)?;
        let mut warnings = self.adopt(files, &mut manifest)?;
        let mut rest = entries;
        loop {
            let path = self.active_path(files, &manifest)?;
            let mut active = self.known(files, &path)?;
            let fits = rest.iter().position(|entry| {
                active.add(entry);
                active.is_full(&manifest.policy, now)
            });
            let (batch, after) = rest.split_at(fits.map_or(rest.len(), |last| last + 1));
            self.active = None;
            warnings.extend(append_lines(files, &path, batch, sync)?);
            rest = after;
            if !active.is_full(&manifest.policy, now) || active.entries == 0 {
                let length = files.length(&path).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
                active.length = length.unwrap_or(0);
                self.active = Some(active);
                return Ok(warnings);
            }
            self.rotate(files, &mut manifest, &path, &active)?;
            if rest.is_empty() {
                return Ok(warnings);
            }
        }
    }

    /// Changes the active file while no other process writes to it.
    pub fn change<T>(&mut self, files: &dyn Files, change: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
        let _latch = InboxLock::wait(&self.folder.join(".transcript.lock"))?;
        self.active = None;
        change(&self.active_path(files, &self.manifest(files)?)?)
    }

    /// Makes the active file a partition. If a crash follows before the manifest is written, the partition is found unlisted.
    fn rotate(
        &self,
        files: &dyn Files,
        manifest: &mut Manifest,
        path: &Path,
        active: &ActiveFile,
    ) -> Result<(), Error> {
        let folder = self.folder.join("partitions");
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        create_folder_durably(files, &folder).map_err(unwritable)?;
        files.open(path).and_then(|mut file| file.sync()).map_err(unwritable)?;
        let range = format!("{}-{}", active.first_seconds.unwrap_or(0), active.last_seconds.unwrap_or(0));
        let mut name = format!("{range}.jsonl");
        let mut number = 1_u32;
        while files.length(&folder.join(&name)).map_err(unwritable)?.is_some() {
            name = format!("{range}-{number}.jsonl");
            number += 1;
        }
        files.rename(path, &folder.join(&name)).map_err(unwritable)?;
        files.sync_folder(&folder).and_then(|()| files.sync_folder(&self.folder)).map_err(unwritable)?;
        manifest.list(&format!("partitions/{name}"), active);
        manifest.active = Some(ACTIVE.to_owned());
        self.write_manifest(files, manifest)
    }

    /// Lists partitions that a crash left unlisted: Chibi would never find them.
    fn adopt(&self, files: &dyn Files, manifest: &mut Manifest) -> Result<Vec<Warning>, Error> {
        if self.active.is_some() {
            return Ok(Vec::new());
        }
        let unlisted = self.unlisted(files, manifest)?;
        for path in &unlisted {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            manifest.list(&format!("partitions/{name}"), &ActiveFile::of(files, path)?);
        }
        if unlisted.is_empty() {
            return Ok(Vec::new());
        }
        // The active file in the manifest may be the one that was moved.
        manifest.active = manifest.active.take().filter(|active| active == ACTIVE);
        self.write_manifest(files, manifest)?;
        let message = "the manifest did not list this partition: added";
        Ok(unlisted.iter().map(|path| Warning::new(path, message)).collect())
    }

    fn unlisted(&self, files: &dyn Files, manifest: &Manifest) -> Result<Vec<PathBuf>, Error> {
        let folder = self.folder.join("partitions");
        let found = files.list(&folder).map_err(|error| Error::at(&folder, Problem::Unreadable, error))?;
        let listed = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = quote(&format!("partitions/{name}"));
            manifest.partitions.iter().any(|partition| {
                Object::parse(partition).and_then(|object| object.peek("file").map(|raw| raw == file)) == Some(true)
            })
        };
        let mut unlisted: Vec<PathBuf> = found
            .into_iter()
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl") && !listed(path))
            .collect();
        let start = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.split('-').next().and_then(|start| start.parse::<u64>().ok())
        };
        unlisted.sort_by_key(start);
        Ok(unlisted)
    }

    fn known(&self, files: &dyn Files, path: &Path) -> Result<ActiveFile, Error> {
        let length = files.length(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        match &self.active {
            Some(active) if Some(active.length) == length => Ok(active.clone()),
            _ => ActiveFile::of(files, path),
        }
    }

    fn active_path(&self, files: &dyn Files, manifest: &Manifest) -> Result<PathBuf, Error> {
        let legacy = self.folder.join("context.jsonl");
        let unreadable = |error| Error::at(&legacy, Problem::Unreadable, error);
        match &manifest.active {
            Some(active) => self.below(active),
            None if manifest.text.is_none() && files.length(&legacy).map_err(unreadable)?.is_some() => Ok(legacy),
            None => Ok(self.folder.join(ACTIVE)),
        }
    }

    /// A path in a manifest, which must not lead out of the folder.
    fn below(&self, name: &str) -> Result<PathBuf, Error> {
        let path = Path::new(name);
        let inside = path.components().all(|step| matches!(step, Component::Normal(_))) && !name.is_empty();
        if inside { Ok(self.folder.join(path)) } else { Err(Error::about(path, Problem::BadName)) }
    }

    fn manifest(&self, files: &dyn Files) -> Result<Manifest, Error> {
        let path = self.folder.join("manifest.json");
        let unreadable = |error| Error::at(&path, Problem::Unreadable, error);
        match files.length(&path).map_err(unreadable)? {
            None => return Ok(Manifest::default()),
            Some(length) if length > MANIFEST_SIZE_MAX => {
                return Err(Error::about(&path, Problem::TooLarge { size_max: MANIFEST_SIZE_MAX }));
            }
            Some(_) => {}
        }
        let bytes = files.read(&path, 0).map_err(unreadable)?;
        let damaged = || Error::at(&path, Problem::Unreadable, std::io::ErrorKind::InvalidData.into());
        Manifest::parse(String::from_utf8(bytes).map_err(|_| damaged())?).ok_or_else(damaged)
    }

    fn write_manifest(&self, files: &dyn Files, manifest: &Manifest) -> Result<(), Error> {
        let path = self.folder.join("manifest.json");
        let text = json::indent(&manifest.render(), 0);
        replace(files, &path, text.as_bytes()).map_err(|error| Error::at(&path, Problem::Unwritable, error))
    }
}

impl Manifest {
    fn parse(text: String) -> Option<Manifest> {
        let mut object = Object::parse(&text)?;
        let active = object.peek_str("active_partition").map(Cow::into_owned);
        let partitions = object.take_items("partitions").unwrap_or_default();
        let partitions = partitions.into_iter().map(|raw| json::compact(raw).into_owned()).collect();
        let mut policy = RotationPolicy::default();
        if let Some(mut stated) = object.open("rotation_policy") {
            policy.entries_max = stated.take_number("max_entries").unwrap_or(policy.entries_max).max(1);
            policy.age_seconds_max = stated.take_number("max_age_seconds").unwrap_or(policy.age_seconds_max).max(60);
            policy.tokens_max = stated.take_number("max_tokens").map(|tokens| tokens.max(1));
        }
        Some(Manifest { active, partitions, policy, text: Some(text) })
    }

    fn list(&mut self, file: &str, active: &ActiveFile) {
        let mut draft = Draft::new();
        draft.set_str("file", file);
        draft.set("start_ts", active.first_seconds.unwrap_or(0).to_string());
        draft.set("end_ts", active.last_seconds.unwrap_or(0).to_string());
        draft.set("entry_count", active.entries.to_string());
        draft.set("prompt_count", active.prompts.to_string());
        draft.set("token_count", active.tokens.to_string());
        self.partitions.push(draft.render(None));
    }

    /// The manifest as text, with all fields unknown here.
    fn render(&self) -> String {
        let mut draft = Draft::new();
        draft.default("version", "1");
        draft.set_str("active_partition", self.active.as_deref().unwrap_or(ACTIVE));
        draft.set("partitions", format!("[{}]", self.partitions.join(",")));
        let mut policy = Draft::new();
        policy.set("max_entries", self.policy.entries_max.to_string());
        policy.set("max_age_seconds", self.policy.age_seconds_max.to_string());
        policy.set_number("max_tokens", self.policy.tokens_max);
        draft.default("rotation_policy", policy.render(None));
        let before = self.text.as_deref().and_then(Object::parse).map(|mut object| {
            object.take("active_partition");
            object.take("partitions");
            object.into_extra()
        });
        draft.render(before.as_ref())
    }
}

impl ActiveFile {
    fn of(files: &dyn Files, path: &Path) -> Result<ActiveFile, Error> {
        let length = files.length(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        let mut active = ActiveFile { length: length.unwrap_or(0), ..ActiveFile::default() };
        entry::each(files, path, &mut |entry| {
            active.add(&entry);
            Ok(())
        })?;
        Ok(active)
    }

    fn add(&mut self, entry: &ContextEntry) {
        // Chibi does not count unreadable entries.
        if entry.entry_type.is_none() {
            return;
        }
        self.entries += 1;
        self.prompts += u64::from(entry.role == Some(Role::User));
        self.tokens = self.tokens.saturating_add(entry.content_size.div_ceil(BYTES_PER_TOKEN) as u64);
        self.first_seconds = self.first_seconds.or(entry.seconds);
        self.last_seconds = entry.seconds.or(self.last_seconds);
    }

    fn is_full(&self, policy: &RotationPolicy, now: u64) -> bool {
        self.entries >= policy.entries_max
            || policy.tokens_max.is_some_and(|tokens| self.tokens >= tokens)
            || self.first_seconds.is_some_and(|first| now.saturating_sub(first) >= policy.age_seconds_max)
    }
}

#[cfg(test)]
#[path = "partitions_tests.rs"]
mod tests;
