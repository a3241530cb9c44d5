//! One rule: a pattern, what a match begins with, and what excludes a match. `rules.rs` loads them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, meta};

use super::check::Check;

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingClass {
    /// A credential.
    Secret,
    /// A home folder, a user name or an e-mail address.
    Personal,
}

impl FindingClass {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FindingClass::Secret => "secret",
            FindingClass::Personal => "personal",
        }
    }
}

/// How a match of a rule looks around the text that it is searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A match begins with the text.
    Prefix,
    /// A match begins with the text, which is a name; an operator and a value follow.
    Assignment,
    /// The text is anywhere near a match.
    Floating,
    /// `://` of an address with a password.
    Address,
    /// `@` of an e-mail address. A match begins before it.
    Mail,
    /// A match begins with the text and has no character that JSON escapes: it is found in the bytes as spelled.
    Direct,
}

/// How sure a rule is. Where findings overlap, the surer one names the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    Personal,
    /// Only the words around it make it a secret.
    Context,
    /// Its own form makes it a secret.
    Form,
}

pub(super) struct Rule {
    pub id: Cow<'static, str>,
    pub class: FindingClass,
    pub shape: Shape,
    pub certainty: Certainty,
    /// What it is searched by, in lower case.
    pub begins: Vec<String>,
    /// The minimum length of a match.
    pub length: usize,
    /// Whether a match has no space and no quote.
    pub is_solid: bool,
    pub pattern: String,
    pub regex: OnceLock<Option<meta::Regex>>,
    pub entropy_min: f64,
    pub group: Option<usize>,
    pub allow: Vec<AllowList>,
    pub check: Check,
}

/// A match of a rule: all of it, and the secret in it.
pub(super) struct RuleMatch {
    pub whole: Range<usize>,
    pub secret: Range<usize>,
}

/// How far a match may extend. Private keys are the longest secrets; a pattern that accepts any text must end somewhere.
const MATCH_SIZE_MAX: usize = 16 << 10;

/// A match whose text occurs again after this many bytes ends there: the next occurrence has a match of its own. Otherwise a text
/// that repeats a command would be searched as often as it has that command.
const REPEATED_SIZE_MIN: usize = 1 << 10;

impl Rule {
    /// The match that begins at `start`, if there is one.
    pub fn match_at(&self, text: &[u8], start: usize) -> Option<RuleMatch> {
        let end = self.window_end(text, start);
        self.search(&Input::new(text).range(start..end).anchored(Anchored::Yes))
    }

    /// Whether a match begins at `start`.
    pub fn is_match_at(&self, text: &[u8], start: usize) -> bool {
        let end = self.window_end(text, start);
        self.compiled().is_some_and(|regex| regex.is_match(Input::new(text).range(start..end).anchored(Anchored::Yes)))
    }

    /// How far a match that begins at `start` is searched.
    fn window_end(&self, text: &[u8], start: usize) -> usize {
        let end = text.len().min(start.saturating_add(MATCH_SIZE_MAX));
        let [command] = self.begins.as_slice() else { return end };
        let from = start + REPEATED_SIZE_MIN;
        // A word that begins a command, as in `curl … -u name:password`.
        let is_command = self.shape == Shape::Prefix && !self.is_solid && self.pattern.starts_with(r"\b");
        let again = is_command.then(|| memchr::memmem::find(text.get(from..end)?, command.as_bytes())).flatten();
        again.map_or(end, |again| from + again)
    }

    /// The first match at or after `start`.
    pub fn match_after(&self, text: &[u8], start: usize) -> Option<RuleMatch> {
        self.search(&Input::new(text).range(start..))
    }

    fn compiled(&self) -> Option<&meta::Regex> {
        self.regex.get_or_init(|| regex(&self.pattern, None).ok()).as_ref()
    }

    fn search(&self, input: &Input<'_>) -> Option<RuleMatch> {
        let regex = self.compiled()?;
        let mut captures = regex.create_captures();
        regex.search_captures(input, &mut captures);
        let whole = captures.get_match()?.range();
        let secret = match self.group {
            Some(group) => captures.get_group(group),
            None => (1..captures.group_len()).find_map(|group| captures.get_group(group)),
        };
        let secret = secret.map_or(whole.clone(), |span| span.range());
        Some(RuleMatch { whole, secret })
    }

    /// Whether a match is a secret: neither too regular nor allowed.
    pub fn accepts(&self, text: &[u8], found: &RuleMatch) -> bool {
        let secret = text.get(found.secret.clone()).unwrap_or_default();
        if secret.is_empty() || (self.entropy_min > 0.0 && entropy(secret) <= self.entropy_min) {
            return false;
        }
        self.check.accepts(text, found) && !self.allow.iter().any(|list| list.allows(text, found))
    }
}

/// A list of texts that are not secrets.
pub(super) struct AllowList {
    pub target: AllowTarget,
    pub patterns: Vec<String>,
    pub stopwords: Vec<String>,
    pub regexes: OnceLock<Vec<meta::Regex>>,
    pub finder: OnceLock<Option<AhoCorasick>>,
}

/// The text that an allow list looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowTarget {
    Secret,
    Match,
    Line,
}

impl AllowList {
    pub fn allows(&self, text: &[u8], found: &RuleMatch) -> bool {
        let secret = text.get(found.secret.clone()).unwrap_or_default();
        let target = match self.target {
            AllowTarget::Secret => secret,
            AllowTarget::Match => text.get(found.whole.clone()).unwrap_or_default(),
            AllowTarget::Line => line_around(text, &found.whole),
        };
        let all = || self.patterns.iter().filter_map(|pattern| regex(pattern, None).ok()).collect();
        if self.regexes.get_or_init(all).iter().any(|regex| regex.is_match(target)) {
            return true;
        }
        let finder = self.finder.get_or_init(|| {
            let words = Some(&self.stopwords).filter(|words| !words.is_empty())?;
            AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
        });
        finder.as_ref().is_some_and(|finder| finder.is_match(secret))
    }
}

/// A part of a line that is longer than this says nothing about the match.
const LINE_SIZE_MAX: usize = 500;

fn line_around<'t>(text: &'t [u8], at: &Range<usize>) -> &'t [u8] {
    let before = text.get(at.start.saturating_sub(LINE_SIZE_MAX)..at.start).unwrap_or_default();
    let after = text.get(at.end..text.len().min(at.end + LINE_SIZE_MAX)).unwrap_or_default();
    let start = at.start - before.iter().rev().position(|byte| *byte == b'\n').unwrap_or(before.len());
    let end = at.end + after.iter().position(|byte| *byte == b'\n').unwrap_or(after.len());
    text.get(start..end).unwrap_or_default()
}

/// Compiles a pattern for bytes.
pub(super) fn regex(pattern: &str, size_max: Option<usize>) -> Result<meta::Regex, Box<meta::BuildError>> {
    let config = meta::Config::new().utf8_empty(false).nfa_size_limit(size_max);
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    meta::Regex::builder().configure(config).syntax(syntax).build(pattern).map_err(Box::new)
}

/// Shannon's entropy of a text, in bits for each byte.
pub(super) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let length = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum()
}
