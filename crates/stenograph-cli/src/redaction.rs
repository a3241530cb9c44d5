//! Redaction for every command that reads a transcript: which rules apply, which key the masks depend on, and what to tell the
//! user. The library and the store do the work.

use std::ffi::OsString;

use stenograph::redact::{
    Finding, FindingClass, KnownSecrets, RecordSyntax, RedactionReport, RedactionSettings, Redactor,
};
use stenograph_store::redaction::{self, SecretSearch};

use crate::config::{self, Config};
use crate::error::CommandError;
use crate::input::TranscriptInput;
use crate::output::{Output, counted, harmless_line};
use crate::store::StoreArgs;

/// The option of every command that can redact what it reads.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct RedactArgs {
    /// Mask secrets, home folders, user names and e-mail addresses
    #[arg(long)]
    redact: bool,
}

impl RedactArgs {
    pub fn is_given(self) -> bool {
        self.redact
    }
}

/// A redaction of one or more sources. All of them are searched before the first is masked, so that a secret that one of them
/// reveals is masked in all.
pub struct Redaction {
    redactor: Redactor,
    found: RedactionReport,
    masked: RedactionReport,
}

impl Redaction {
    /// A redaction with the user's rules and the key of the store, or a random key without a store.
    pub fn new(place: &StoreArgs) -> Result<Redaction, CommandError> {
        match place.store() {
            Ok(store) if store.folder().is_dir() => Redaction::with_key(place, redaction::store_key(store.folder())?),
            _ => Redaction::only_search(place),
        }
    }

    /// A redaction that masks nothing which outlives the command, so the store needs no key.
    pub fn only_search(place: &StoreArgs) -> Result<Redaction, CommandError> {
        Redaction::with_key(place, redaction::random_key())
    }

    fn with_key(place: &StoreArgs, key: [u8; 32]) -> Result<Redaction, CommandError> {
        let config = Config::load()?;
        let settings = RedactionSettings {
            patterns: config.list(&config::REDACT_PATTERNS)?,
            allow: config.list(&config::REDACT_ALLOW)?,
            user_names: if place.home().given().is_none() { user_names() } else { Vec::new() },
        };
        let redactor = Redactor::new(&settings, key).map_err(|error| {
            CommandError::new(error.to_string()).hint(
                "correct it with steno config set Redact.Patterns or Redact.Allow; quote special characters with \\",
            )
        })?;
        Ok(Redaction { redactor, found: RedactionReport::default(), masked: RedactionReport::default() })
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The redactor, for a program that searches its sources itself.
    pub fn into_redactor(self) -> Redactor {
        self.redactor
    }

    /// Searches a source and remembers its secrets. `each` receives the line of each finding.
    pub fn search(
        &mut self,
        input: &mut TranscriptInput,
        each: &mut dyn FnMut(u64, &Finding),
    ) -> Result<(), CommandError> {
        let found = input.source.find_secrets(input.format, &self.redactor, each)?;
        self.learn(found);
        Ok(())
    }

    /// Remembers the secrets of a source.
    pub fn learn(&mut self, (report, known): (RedactionReport, KnownSecrets)) {
        self.found.merge(&report);
        self.redactor.learn(known);
    }

    /// Searches several sources while `work` goes on, and remembers their secrets. A source that cannot be read is skipped: the
    /// work reports it.
    pub fn search_during<T>(&mut self, searches: &[SecretSearch], work: impl FnOnce() -> T) -> T {
        let mut redactor = self.redactor.clone();
        let mut search = move || {
            let found = searches.iter().filter_map(|search| {
                let found = search.find(&redactor).ok()?;
                redactor.learn(found.1.clone());
                Some(found)
            });
            found.collect::<Vec<_>>()
        };
        let (done, found) =
            std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, search.clone()) {
                Ok(thread) => (work(), thread.join().unwrap_or_default()),
                Err(_) => (work(), search()),
            });
        found.into_iter().for_each(|found| self.learn(found));
        done
    }

    /// What the searches found.
    pub fn found(&self) -> &RedactionReport {
        &self.found
    }

    /// The source with its secrets masked.
    pub fn apply(&mut self, input: TranscriptInput) -> Result<TranscriptInput, CommandError> {
        let TranscriptInput { source, format } = input;
        let (source, report) = source.redacted(format, &self.redactor)?;
        self.add(&report);
        Ok(TranscriptInput { source, format })
    }

    /// A text that is not part of a source, with its secrets masked.
    pub fn masked_text(&self, text: &str) -> String {
        let masked = self.redactor.record(text.as_bytes(), RecordSyntax::Text);
        String::from_utf8_lossy(&masked.bytes).into_owned()
    }

    /// Counts what was masked.
    pub fn add(&mut self, report: &RedactionReport) {
        self.masked.merge(report);
    }

    /// Reports what was masked and what was not checked.
    pub fn report(&self, output: &mut Output<'_>) {
        say(&self.masked, "masked", output);
    }

    /// Tells how many likely secrets a source has that is not redacted.
    pub fn warn(&self, output: &mut Output<'_>) {
        let secrets = self.found.count_of(FindingClass::Secret);
        if secrets > 0 {
            output.say(&format!("warning: the input has {}", counted(secrets, "likely secret")));
            output.say("hint: mask them with --redact; list them with steno check --secrets SESSION");
        }
    }
}

/// The most rules that are listed.
const RULES_SHOWN: usize = 30;

/// Says what a redaction found, by rule.
pub fn say(report: &RedactionReport, verb: &str, output: &mut Output<'_>) {
    let secrets = counted(report.count_of(FindingClass::Secret), "secret");
    let personal = counted(report.count_of(FindingClass::Personal), "personal detail");
    output.say(&format!("{verb}: {secrets}, {personal}"));
    for (rule, _, count) in report.by_rule().into_iter().take(RULES_SHOWN) {
        output.say(&harmless_line(&format!("  {rule}: {count}")));
    }
    if report.signed > 0 {
        let thoughts = counted(report.signed, "signed thought");
        output.say(&format!("{thoughts} masked whole, because the signature covers every byte"));
    }
    if report.unchecked > 0 {
        output.say(&format!("not checked: {} (images, documents)", counted(report.unchecked, "attachment")));
    }
    if report.oversize > 0 {
        output.say(&format!("checked in pieces: {} over 32 MiB", counted(report.oversize, "record")));
    }
}

/// The names of the user who runs the command.
fn user_names() -> Vec<String> {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(config::variable);
    let home = std::env::home_dir().and_then(|home| home.file_name().map(OsString::from));
    let mut names: Vec<String> = named.chain(home).filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names.dedup();
    names
}
