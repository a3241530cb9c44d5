//! Matches the events of a window of both sides and reports what happened to each: kept, changed, moved, dropped or invented.
//! How the window was chosen is not known here.

use std::collections::HashMap;

use super::digest::{Digest, FIELDS, Paths, STICKY, USAGE};
use super::report::{LossKind, LossReport};
use crate::model::Kind;

/// The values of the sticky fields that were stated last on each side.
#[derive(Clone, Debug, Default)]
pub struct CurrentFields {
    source: [u64; FIELDS.len()],
    target: [u64; FIELDS.len()],
}

/// A window of both sides, with its events matched.
pub struct Matching<'a> {
    source: &'a [Digest],
    target: &'a [Digest],
    /// For each source event its counterpart in the target.
    twin: Vec<Option<usize>>,
    taken: Vec<bool>,
}

impl<'a> Matching<'a> {
    /// Matches the events of both sides.
    pub fn new(source: &'a [Digest], target: &'a [Digest], matches: Vec<(usize, usize)>) -> Matching<'a> {
        let mut matching =
            Matching { source, target, twin: vec![None; source.len()], taken: vec![false; target.len()] };
        for (a, b) in matches {
            matching.pair(a, b);
        }
        matching.pair_reordered();
        matching.pair_changed();
        matching.pair_across_kinds();
        matching
    }

    /// For each source event its counterpart in the target.
    pub fn into_twins(self) -> Vec<Option<usize>> {
        self.twin
    }

    fn pair(&mut self, a: usize, b: usize) {
        if let (Some(twin), Some(taken)) = (self.twin.get_mut(a), self.taken.get_mut(b)) {
            *twin = Some(b);
            *taken = true;
        }
    }

    /// Pairs events with the same content in another order.
    fn pair_reordered(&mut self) {
        let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
        for (b, digest) in self.target.iter().enumerate().rev() {
            if self.taken.get(b) == Some(&false) {
                open.entry(digest.key).or_default().push(b);
            }
        }
        for (a, digest) in self.source.iter().enumerate() {
            // Two events with empty texts at different positions need not be the same.
            if self.twin.get(a) == Some(&None)
                && digest.length > 0
                && let Some(b) = open.get_mut(&digest.key).and_then(Vec::pop)
            {
                self.pair(a, b);
            }
        }
    }

    /// Pairs events of different kinds with the same text, such as a summary that became a message.
    fn pair_across_kinds(&mut self) {
        let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
        for (b, digest) in self.target.iter().enumerate().rev() {
            if self.taken.get(b) == Some(&false) && digest.length > 0 {
                open.entry(digest.text).or_default().push(b);
            }
        }
        for (a, digest) in self.source.iter().enumerate() {
            if self.twin.get(a) == Some(&None)
                && digest.length > 0
                && let Some(b) = open.get_mut(&digest.text).and_then(Vec::pop)
            {
                self.pair(a, b);
            }
        }
    }

    /// Pairs the remaining events: first by id or call, then by kind between the same neighbours.
    fn pair_changed(&mut self) {
        let mut by_tie: HashMap<(Kind, usize, u64), Vec<usize>> = HashMap::new();
        for (b, digest) in self.target.iter().enumerate().rev() {
            if self.taken.get(b) == Some(&false) {
                digest.ties().for_each(|tie| by_tie.entry(tie).or_default().push(b));
            }
        }
        for (a, digest) in self.source.iter().enumerate() {
            if self.twin.get(a) != Some(&None) {
                continue;
            }
            let found = digest.ties().find_map(|tie| {
                let open = by_tie.get_mut(&tie)?;
                while let Some(b) = open.pop() {
                    if self.taken.get(b) == Some(&false) {
                        return Some(b);
                    }
                }
                None
            });
            if let Some(b) = found {
                self.pair(a, b);
            }
        }
        let mut b = 0;
        for (a, digest) in self.source.iter().enumerate() {
            if let Some(Some(twin)) = self.twin.get(a) {
                b = b.max(twin + 1);
                continue;
            }
            // Only events between the counterparts of the neighbours qualify.
            let open = self.taken.get(b..).unwrap_or_default();
            let length = open.iter().position(|taken| *taken).unwrap_or(open.len());
            let gap = self.target.get(b..b + length).unwrap_or_default();
            if let Some(at) = gap.iter().position(|other| other.kind == digest.kind && alike(digest, other)) {
                self.pair(a, b + at);
                b += at + 1;
            }
        }
    }

    /// Reports what happened to each event.
    pub fn report_losses(self, current: &mut CurrentFields, paths: &Paths, report: &mut LossReport) {
        let mut found = self.usage_only_in_target();
        let mut seen = 0;
        for (a, digest) in self.source.iter().enumerate() {
            remember(digest, &mut current.source);
            let Some(b) = self.twin.get(a).copied().flatten() else {
                report_missing(digest, &mut found, report);
                continue;
            };
            if b < seen {
                report.add(digest.kind, super::report::ORDER, LossKind::Moved, digest.at);
            }
            for other in self.target.get(seen..=b).unwrap_or_default() {
                remember(other, &mut current.target);
            }
            seen = seen.max(b + 1);
            if let Some(twin) = self.target.get(b) {
                *report.kept.entry(digest.kind).or_default() += 1;
                if digest.kind != twin.kind {
                    report.add(digest.kind, "kind", LossKind::Changed, digest.at);
                }
                compare_fields(digest, twin, &mut found, current, report);
                compare_text(digest, twin, report);
                compare_extra(digest, twin, paths, report);
            }
        }
        for other in self.target.get(seen..).unwrap_or_default() {
            remember(other, &mut current.target);
        }
        self.report_invented(found, report);
    }

    /// Reports events that only the target has. An event that holds moved usage does not count as invented.
    fn report_invented(&self, mut found: HashMap<u64, u32>, report: &mut LossReport) {
        for (b, digest) in self.target.iter().enumerate() {
            if self.taken.get(b) == Some(&false) {
                let holds_moved = digest.states_usage() && digest.kind == Kind::Fact && !take(&mut found, digest);
                if !holds_moved {
                    report.add(digest.kind, "", LossKind::Invented, None);
                }
            }
        }
        for (a, digest) in self.source.iter().enumerate() {
            let twin = self.twin.get(a).copied().flatten().and_then(|b| self.target.get(b));
            if digest.fields.get(USAGE) == Some(&0) && twin.is_some_and(|twin| take(&mut found, twin)) {
                report.add(digest.kind, "usage", LossKind::Invented, digest.at);
            }
        }
    }

    /// Usage that the target states where the source states none, with the number of times.
    fn usage_only_in_target(&self) -> HashMap<u64, u32> {
        let usage = |digest: &Digest| digest.fields.get(USAGE).copied().unwrap_or(0);
        let mut found: HashMap<u64, u32> = HashMap::new();
        let mut stated = vec![false; self.target.len()];
        for (a, twin) in self.twin.iter().enumerate() {
            if let Some(stated) = twin.and_then(|b| stated.get_mut(b)) {
                *stated = self.source.get(a).is_some_and(|digest| usage(digest) != 0);
            }
        }
        for (digest, _) in self.target.iter().zip(&stated).filter(|(digest, stated)| usage(digest) != 0 && !**stated) {
            *found.entry(usage(digest)).or_default() += 1;
        }
        found
    }
}

/// Reports an event without a counterpart. Its usage may be on another event of the target: a usage fact then counts as moved;
/// of any other event only the usage does.
fn report_missing(digest: &Digest, found: &mut HashMap<u64, u32>, report: &mut LossReport) {
    let usage_moved = take(found, digest);
    let dropped = LossKind::Dropped { why: "" };
    let how = if usage_moved && digest.kind == Kind::Fact { LossKind::Moved } else { dropped };
    report.add(digest.kind, "", how, digest.at);
    if usage_moved && digest.kind != Kind::Fact {
        report.add(digest.kind, "usage", LossKind::Moved, digest.at);
    } else if !usage_moved && digest.states_usage() {
        report.add(digest.kind, "usage", dropped, digest.at);
    }
}

/// Remembers the sticky fields that an event states.
fn remember(digest: &Digest, current: &mut [u64; FIELDS.len()]) {
    for field in STICKY {
        if let (Some(hash), Some(value)) = (digest.fields.get(field), current.get_mut(field))
            && *hash != 0
        {
            *value = *hash;
        }
    }
}

/// Whether two events of one kind can be the same event with another text: a call of the same tool, or a text with the same
/// beginning.
fn alike(source: &Digest, target: &Digest) -> bool {
    const NAME: usize = 13;
    let name = |digest: &Digest| digest.fields.get(NAME).copied().unwrap_or(0);
    match source.kind {
        Kind::Fact | Kind::Other => name(source) == name(target),
        Kind::ToolCall => name(source) == name(target) || begins_alike(source, target),
        Kind::Message | Kind::Thinking | Kind::ToolResult | Kind::Compaction | Kind::Failure | Kind::Stop => true,
    }
}

fn begins_alike(source: &Digest, target: &Digest) -> bool {
    common_prefix(source, target) > 0
}

fn common_prefix(source: &Digest, target: &Digest) -> usize {
    source.head.iter().zip(&target.head).take_while(|(a, b)| a == b).count()
}

fn take(found: &mut HashMap<u64, u32>, digest: &Digest) -> bool {
    let hash = digest.fields.get(USAGE).copied().unwrap_or(0);
    match found.get_mut(&hash) {
        Some(times) if hash != 0 => {
            *times -= 1;
            if *times == 0 {
                found.remove(&hash);
            }
            true
        }
        _ => false,
    }
}

fn compare_text(source: &Digest, target: &Digest, report: &mut LossReport) {
    if source.text == target.text {
        // Joined texts read differently: a blank line separates them that is not in the source.
        if source.texts != target.texts {
            report.add(source.kind, "content", LossKind::Changed, source.at);
        }
        return;
    }
    // A marker such as an ellipsis may replace the cut part.
    const MARKER_SIZE_MAX: usize = 16;
    let shared = common_prefix(source, target);
    let is_cut = target.length < source.length && shared + MARKER_SIZE_MAX >= target.head.len() && shared > 0;
    if is_cut || (target.length == 0 && source.length > 0) {
        let count = report.add(source.kind, "content", LossKind::Cut, source.at);
        count.kept += target.length;
        count.of += source.length;
    } else {
        report.add(source.kind, "content", LossKind::Changed, source.at);
    }
}

fn compare_fields(
    source: &Digest,
    target: &Digest,
    found: &mut HashMap<u64, u32>,
    current: &CurrentFields,
    report: &mut LossReport,
) {
    for (index, name) in FIELDS.iter().enumerate() {
        let ours = source.fields.get(index).copied().unwrap_or(0);
        let theirs = target.fields.get(index).copied().unwrap_or(0);
        let holds = |side: &[u64; FIELDS.len()], value: u64| STICKY.contains(&index) && side.get(index) == Some(&value);
        let how = match (ours, theirs) {
            (ours, theirs) if ours == theirs => continue,
            // Only some kinds of events have these fields.
            _ if source.kind != target.kind && matches!(*name, "role" | "name" | "error") => continue,
            (0, theirs) if holds(&current.source, theirs) => continue,
            // Usage that is not claimed as moved counts as invented at the end.
            (0, _) if index == USAGE => continue,
            (0, _) => LossKind::Invented,
            (ours, 0) if holds(&current.target, ours) => LossKind::Moved,
            (_, 0) if index == USAGE && take(found, source) => LossKind::Moved,
            (_, 0) => LossKind::Dropped { why: "" },
            _ => LossKind::Changed,
        };
        report.add(source.kind, field_name(source.kind, name), how, source.at);
    }
}

/// The name of a field in events of this kind.
fn field_name(kind: Kind, name: &'static str) -> &'static str {
    match (kind, name) {
        (Kind::Stop, "error") => "success",
        (Kind::Stop, "name") => "reason",
        _ => name,
    }
}

fn compare_extra(source: &Digest, target: &Digest, paths: &Paths, report: &mut LossReport) {
    for extra in &source.extra {
        let kept = extra.hash != 0 && target.extra.iter().any(|other| other.hash == extra.hash);
        if !kept {
            for path in paths.list(extra.paths) {
                report.add(source.kind, path, LossKind::Dropped { why: "" }, source.at);
            }
        }
    }
}
