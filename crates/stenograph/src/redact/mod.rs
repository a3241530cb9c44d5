//! Redaction: finds secrets and personal data in the bytes of a transcript and masks them. Every other byte stays as it is, so
//! framing, ids and order do not change. This folder knows texts and JSON strings; it must not interpret events.
//!
//! [`Redactor::record`] handles one record, [`SourceRedactor`] a whole source in chunks. Rules come from gitleaks
//! (`rules/gitleaks.jsonl`, written by `cargo xtask rules`) and from `own_rules.rs`. `docs/design/018-redaction.md` explains the
//! decisions.

mod base64_text;
mod check;
mod detect;
mod literals;
mod mask;
mod own_rules;
mod prefilter;
mod report;
mod rule;
mod rules;
mod source;
mod unescape;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use regex_automata::meta;

pub use report::RedactionReport;
pub use rule::FindingClass;
pub use source::{KnownSecrets, RedactionSink, SourceRedactor};

use detect::Detected;
use literals::Literals;
use rules::Rules;

/// How the records of a source are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSyntax {
    /// JSON, whole or a line of a document: only the contents of strings change.
    Json,
    /// Text for people.
    Text,
}

impl RecordSyntax {
    /// The syntax of a format. A format for people is text; all others are JSON.
    pub fn of(format: &dyn crate::format::Format) -> RecordSyntax {
        if format.info().traits.lossy { RecordSyntax::Text } else { RecordSyntax::Json }
    }
}

/// A user's own rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactionSettings {
    /// Regular expressions of further secrets. The first group is the secret, or else the whole match.
    pub patterns: Vec<String>,
    /// Regular expressions of secrets that are not masked.
    pub allow: Vec<String>,
    /// Names of users to mask wherever they are a word of their own.
    pub user_names: Vec<String>,
}

/// A pattern of the user that is not a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a regular expression: {pattern}: {reason}")]
pub struct InvalidPattern {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A secret or personal data in a record.
#[derive(Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule that found it.
    pub rule: Cow<'static, str>,
    /// Its kind.
    pub class: FindingClass,
    /// The bytes of the record that the mask replaces.
    pub at: Range<usize>,
    /// The field, such as `message.content[0].text`; empty in a text for people.
    pub place: String,
    /// The secret as text. It must not be printed.
    secret: Vec<u8>,
}

impl Finding {
    /// The first characters and the length of the secret: enough to recognise it, too little to use it.
    pub fn preview(&self) -> String {
        const SHOWN_MAX: usize = 3;
        // A short secret would be revealed by its beginning.
        const LENGTH_MIN: usize = 12;
        let text = String::from_utf8_lossy(&self.secret);
        let length = text.chars().count();
        let shown: String = text.chars().take(if length < LENGTH_MIN { 0 } else { SHOWN_MAX }).collect();
        format!("{shown}… ({length} characters)")
    }
}

impl std::fmt::Debug for Finding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret itself must not reach a log.
        formatter.debug_struct("Finding").field("rule", &self.rule).field("at", &self.at).finish_non_exhaustive()
    }
}

/// A record without its secrets.
#[derive(Clone, Debug)]
pub struct Redacted<'r> {
    /// The bytes; borrowed if nothing was found.
    pub bytes: Cow<'r, [u8]>,
    /// What was masked, in order.
    pub findings: Vec<Finding>,
    /// The number of images and other binary attachments, which are not checked.
    pub unchecked: u64,
    /// The number of signed thoughts that were masked whole, because their signature covers every byte.
    pub signed: u64,
}

/// Finds and masks secrets.
#[derive(Clone)]
pub struct Redactor {
    key: [u8; 32],
    patterns: Vec<meta::Regex>,
    allow: Vec<meta::Regex>,
    known: Option<Known>,
    known_secrets: KnownSecrets,
}

/// Texts that are masked wherever they occur.
#[derive(Clone)]
struct Known {
    finder: AhoCorasick,
    /// Finds those that JSON or XML spells otherwise.
    escaped: Option<AhoCorasick>,
    rules: Vec<(Cow<'static, str>, FindingClass)>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither the key nor the known secrets must reach a log.
        formatter.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor whose masks depend on this key: with the same key, the same secret has the same mask in every source.
    pub fn new(settings: &RedactionSettings, key: [u8; 32]) -> Result<Redactor, InvalidPattern> {
        let all = |patterns: &[String]| patterns.iter().map(|pattern| compiled(pattern)).collect::<Result<Vec<_>, _>>();
        let (patterns, allow) = (all(&settings.patterns)?, all(&settings.allow)?);
        let mut known = KnownSecrets::default();
        settings.user_names.iter().for_each(|name| known.add_user_name(name));
        let mut redactor = Redactor { key, patterns, allow, known: None, known_secrets: known };
        redactor.index_known();
        Ok(redactor)
    }

    /// Also masks these secrets wherever they occur, even where no rule would find them.
    pub fn learn(&mut self, secrets: KnownSecrets) {
        if !secrets.is_empty() {
            self.known_secrets.extend(secrets);
            self.index_known();
        }
    }

    /// Whether it masks all of these secrets wherever they occur.
    pub fn knows(&self, secrets: &KnownSecrets) -> bool {
        self.known_secrets.has_all(secrets)
    }

    /// A text for people without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.record(text.as_bytes(), RecordSyntax::Text).bytes {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The beginning of a longer text, without its secrets. If it ends in the middle of a known secret, that part is masked too.
    pub fn beginning<'t>(&self, text: &'t str) -> Cow<'t, str> {
        /// Fewer bytes of a secret tell nothing about it.
        const PART_MIN: usize = 4;
        let masked = self.text(text);
        let cut = self.known_secrets.iter().filter(|(_, _, class)| *class == FindingClass::Secret).find_map(
            |(secret, rule, _)| {
                let lengths = (PART_MIN..secret.len().min(masked.len() + 1)).rev();
                let part = lengths
                    .into_iter()
                    .find(|length| masked.as_bytes().ends_with(secret.get(..*length).unwrap_or(b"\0")))?;
                Some((masked.len() - part, self.mask_of(rule, secret)))
            },
        );
        match cut {
            Some((end, mask)) => Cow::Owned(format!("{}{mask}", masked.get(..end).unwrap_or_default())),
            None => masked,
        }
    }

    /// The secrets and names that it masks wherever they occur.
    pub fn known_secrets(&self) -> &KnownSecrets {
        &self.known_secrets
    }

    fn index_known(&mut self) {
        let texts = self.known_secrets.iter();
        let (texts, rules): (Vec<&[u8]>, Vec<_>) =
            texts.map(|(text, rule, class)| (text, (rule.clone(), class))).unzip();
        if !texts.is_empty() {
            let escaped: Vec<Vec<u8>> = texts.iter().flat_map(|text| unescape::escaped_spellings(text)).collect();
            let escaped = Some(escaped).filter(|texts| !texts.is_empty());
            let escaped = escaped.and_then(|texts| AhoCorasick::new(texts).ok());
            let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
            self.known = finder.ok().map(|finder| Known { finder, escaped, rules });
        }
    }

    /// The built-in rules. They are loaded when the first text is searched, by the thread that searches it.
    fn rule_set(&self) -> &'static Rules {
        Rules::built_in()
    }

    /// The names of all built-in rules, with their kinds.
    pub fn rules(&self) -> impl Iterator<Item = (&str, FindingClass)> {
        self.rule_set().all.iter().map(|rule| (rule.id.as_ref(), rule.class))
    }

    /// Masks the secrets of one record.
    pub fn record<'r>(&self, bytes: &'r [u8], syntax: RecordSyntax) -> Redacted<'r> {
        let mut redacted = Redacted { bytes: Cow::Borrowed(bytes), findings: Vec::new(), unchecked: 0, signed: 0 };
        let runs = base64_text::runs(bytes);
        redacted.unchecked = runs.binary;
        let mut found = Vec::new();
        let suspects = self.suspects(bytes, &mut |detected| found.push(detected));
        found.extend(self.detect(bytes, syntax, suspects));
        for run in runs.text {
            found.extend(self.inside_base64(bytes, run, base64_text::DEPTH_MAX));
        }
        if found.is_empty() {
            return redacted;
        }
        let is_json = syntax == RecordSyntax::Json && literals::is_json(bytes);
        let edits = match is_json {
            true => self.edits_of_json(bytes, &found, &mut redacted),
            false => self.edits_of_text(detect::merged(found), &mut redacted),
        };
        if !edits.is_empty() {
            redacted.bytes = Cow::Owned(replaced(bytes, &edits));
        }
        redacted
    }

    fn edits_of_text(&self, found: Vec<Detected>, redacted: &mut Redacted<'_>) -> Vec<Edit> {
        let mut edits = Vec::with_capacity(found.len());
        for detected in found {
            edits.push((detected.at.clone(), self.replacement(&detected)));
            redacted.findings.push(detected.finding(String::new()));
        }
        edits
    }

    /// Keeps what is inside strings, and lets a signed thought go whole.
    fn edits_of_json(&self, bytes: &[u8], found: &[Detected], redacted: &mut Redacted<'_>) -> Vec<Edit> {
        let literals = Literals::around(bytes, found);
        let inside: Vec<Detected> = found.iter().flat_map(|detected| literals.clip(bytes, detected)).collect();
        let mut edits: Vec<Edit> = Vec::with_capacity(inside.len());
        let mut masked_whole = HashSet::new();
        for detected in detect::merged(inside) {
            let literal = literals.at(detected.at.start);
            let place = literal.map(|literal| literal.place.clone()).unwrap_or_default();
            match literal.and_then(|literal| Some((literal, literals.signature_of(literal)?))) {
                // The literal may hold several findings; it goes once.
                Some((literal, signature)) => {
                    if masked_whole.insert(literal.at.start) {
                        edits.push((literal.at.clone(), self.mask_of("signed-thought", &detected.secret)));
                        edits.push((signature, String::new()));
                        redacted.signed += 1;
                    }
                }
                None => {
                    edits.push((detected.at.clone(), self.replacement(&detected)));
                }
            }
            redacted.findings.push(detected.finding(place));
        }
        without_overlaps(edits)
    }
}

/// The edits in order, without those inside a wider one.
fn without_overlaps(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|(at, _)| (at.start, std::cmp::Reverse(at.end)));
    let mut end = 0;
    edits.retain(|(at, _)| {
        let is_outside = at.start >= end;
        end = end.max(at.end);
        is_outside
    });
    edits
}

/// A range of a record and its replacement.
type Edit = (Range<usize>, String);

/// The largest compiled form of a user's pattern, so that a pattern cannot exhaust memory.
const PATTERN_SIZE_MAX: usize = 4 << 20;

fn compiled(pattern: &str) -> Result<meta::Regex, InvalidPattern> {
    rule::regex(pattern, Some(PATTERN_SIZE_MAX))
        .map_err(|error| InvalidPattern { pattern: pattern.to_owned(), reason: error.to_string() })
}

/// The bytes with each range replaced. The ranges are sorted and do not overlap.
fn replaced(bytes: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16 * edits.len());
    let mut from = 0;
    for (at, text) in edits {
        out.extend_from_slice(bytes.get(from..at.start).unwrap_or_default());
        out.extend_from_slice(text.as_bytes());
        from = at.end;
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    out
}
