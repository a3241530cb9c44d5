//! What became of each event in a stretch of both sides: same, changed, moved, gone or new. How the stretch was cut out of the
//! streams is not known here.

use std::collections::HashMap;

use super::digest::{Digest, FIELDS, Paths, STICKY, USAGE};
use super::report::{How, Report};
use crate::model::Kind;

/// The values of the sticky fields that were stated last, on each side.
#[derive(Clone, Debug, Default)]
pub struct InForce {
    source: [u64; FIELDS.len()],
    target: [u64; FIELDS.len()],
}

/// A stretch of both sides in which every event's fate is decided.
pub struct Settling<'a> {
    source: &'a [Digest],
    target: &'a [Digest],
    /// For each source event its twin.
    twin: Vec<Option<usize>>,
    taken: Vec<bool>,
}

impl<'a> Settling<'a> {
    /// Pairs the events of both sides.
    pub fn new(source: &'a [Digest], target: &'a [Digest], matches: Vec<(usize, usize)>) -> Settling<'a> {
        let mut settling =
            Settling { source, target, twin: vec![None; source.len()], taken: vec![false; target.len()] };
        for (a, b) in matches {
            settling.pair(a, b);
        }
        settling.pair_reordered();
        settling.pair_changed();
        settling.pair_across_kinds();
        settling
    }

    /// For each source event its twin.
    pub fn into_twins(self) -> Vec<Option<usize>> {
        self.twin
    }

    fn pair(&mut self, a: usize, b: usize) {
        if let (Some(twin), Some(taken)) = (self.twin.get_mut(a), self.taken.get_mut(b)) {
            *twin = Some(b);
            *taken = true;
        }
    }

    /// Pairs events that say the same and stand in another order.
    fn pair_reordered(&mut self) {
        let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
        for (b, digest) in self.target.iter().enumerate().rev() {
            if self.taken.get(b) == Some(&false) {
                open.entry(digest.key).or_default().push(b);
            }
        }
        for (a, digest) in self.source.iter().enumerate() {
            // An empty text is no ground to call two events the same, wherever they stand.
            if self.twin.get(a) == Some(&None)
                && digest.length > 0
                && let Some(b) = open.get_mut(&digest.key).and_then(Vec::pop)
            {
                self.pair(a, b);
            }
        }
    }

    /// Pairs what says the same as another kind of event: a summary that became a message.
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

    /// Pairs what is left: by id or call first, then by what follows the same neighbour and is of the same kind.
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
            // Only events between the twins of the neighbours can be meant.
            let open = self.taken.get(b..).unwrap_or_default();
            let length = open.iter().position(|taken| *taken).unwrap_or(open.len());
            let gap = self.target.get(b..b + length).unwrap_or_default();
            if let Some(at) = gap.iter().position(|other| other.kind == digest.kind && alike(digest, other)) {
                self.pair(a, b + at);
                b += at + 1;
            }
        }
    }

    /// Says what became of each.
    pub fn settle(self, in_force: &mut InForce, paths: &Paths, report: &mut Report) {
        let mut found = self.usage_only_in_target();
        let mut seen = 0;
        for (a, digest) in self.source.iter().enumerate() {
            state(digest, &mut in_force.source);
            let Some(b) = self.twin.get(a).copied().flatten() else {
                settle_gone(digest, &mut found, report);
                continue;
            };
            if b < seen {
                report.add(digest.kind, super::report::ORDER, How::Moved, digest.at);
            }
            for other in self.target.get(seen..=b).unwrap_or_default() {
                state(other, &mut in_force.target);
            }
            seen = seen.max(b + 1);
            if let Some(twin) = self.target.get(b) {
                *report.kept.entry(digest.kind).or_default() += 1;
                if digest.kind != twin.kind {
                    report.add(digest.kind, "kind", How::Changed, digest.at);
                }
                compare_fields(digest, twin, &mut found, in_force, report);
                compare_text(digest, twin, report);
                compare_extra(digest, twin, paths, report);
            }
        }
        for other in self.target.get(seen..).unwrap_or_default() {
            state(other, &mut in_force.target);
        }
        self.settle_invented(found, report);
    }

    /// What is in the target alone. An event that holds something moved was not invented for its own sake.
    fn settle_invented(&self, mut found: HashMap<u64, u32>, report: &mut Report) {
        for (b, digest) in self.target.iter().enumerate() {
            if self.taken.get(b) == Some(&false) {
                let holds_moved = digest.states_usage() && digest.kind == Kind::Fact && !take(&mut found, digest);
                if !holds_moved {
                    report.add(digest.kind, "", How::Invented, None);
                }
            }
        }
        for (a, digest) in self.source.iter().enumerate() {
            let twin = self.twin.get(a).copied().flatten().and_then(|b| self.target.get(b));
            if digest.fields.get(USAGE) == Some(&0) && twin.is_some_and(|twin| take(&mut found, twin)) {
                report.add(digest.kind, "usage", How::Invented, digest.at);
            }
        }
    }

    /// Usage that the target states where the source states none, each as often as it stands there.
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

/// An event that has no twin. Its usage may stand on another event: a fact that says nothing else moved there, and of every
/// other event only the usage did.
fn settle_gone(digest: &Digest, found: &mut HashMap<u64, u32>, report: &mut Report) {
    let usage_moved = take(found, digest);
    let dropped = How::Dropped { why: "" };
    let how = if usage_moved && digest.kind == Kind::Fact { How::Moved } else { dropped };
    report.add(digest.kind, "", how, digest.at);
    if usage_moved && digest.kind != Kind::Fact {
        report.add(digest.kind, "usage", How::Moved, digest.at);
    } else if !usage_moved && digest.states_usage() {
        report.add(digest.kind, "usage", dropped, digest.at);
    }
}

/// Takes notice of the sticky fields an event states.
fn state(digest: &Digest, in_force: &mut [u64; FIELDS.len()]) {
    for field in STICKY {
        if let (Some(hash), Some(value)) = (digest.fields.get(field), in_force.get_mut(field))
            && *hash != 0
        {
            *value = *hash;
        }
    }
}

/// Whether two events of one kind can be the same event with another text: a call of the same tool, a text that begins alike.
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

fn compare_text(source: &Digest, target: &Digest, report: &mut Report) {
    if source.text == target.text {
        // Texts that stood apart and are joined read differently: a blank line is between them that nobody wrote.
        if source.texts != target.texts {
            report.add(source.kind, "content", How::Changed, source.at);
        }
        return;
    }
    // A marker such as an ellipsis may stand where the text was cut.
    const MARKER_SIZE_MAX: usize = 16;
    let shared = common_prefix(source, target);
    let is_cut = target.length < source.length && shared + MARKER_SIZE_MAX >= target.head.len() && shared > 0;
    if is_cut || (target.length == 0 && source.length > 0) {
        let count = report.add(source.kind, "content", How::Cut, source.at);
        count.kept += target.length;
        count.of += source.length;
    } else {
        report.add(source.kind, "content", How::Changed, source.at);
    }
}

fn compare_fields(
    source: &Digest,
    target: &Digest,
    found: &mut HashMap<u64, u32>,
    in_force: &InForce,
    report: &mut Report,
) {
    for (index, name) in FIELDS.iter().enumerate() {
        let ours = source.fields.get(index).copied().unwrap_or(0);
        let theirs = target.fields.get(index).copied().unwrap_or(0);
        let holds = |side: &[u64; FIELDS.len()], value: u64| STICKY.contains(&index) && side.get(index) == Some(&value);
        let how = match (ours, theirs) {
            (ours, theirs) if ours == theirs => continue,
            // Only some kinds of events have these.
            _ if source.kind != target.kind && matches!(*name, "role" | "name" | "error") => continue,
            (0, theirs) if holds(&in_force.source, theirs) => continue,
            // Usage that nobody claims as moved is counted as invented at the end.
            (0, _) if index == USAGE => continue,
            (0, _) => How::Invented,
            (ours, 0) if holds(&in_force.target, ours) => How::Moved,
            (_, 0) if index == USAGE && take(found, source) => How::Moved,
            (_, 0) => How::Dropped { why: "" },
            _ => How::Changed,
        };
        report.add(source.kind, field_name(source.kind, name), how, source.at);
    }
}

/// The word for a field in events of this kind.
fn field_name(kind: Kind, name: &'static str) -> &'static str {
    match (kind, name) {
        (Kind::Stop, "error") => "success",
        (Kind::Stop, "name") => "reason",
        _ => name,
    }
}

fn compare_extra(source: &Digest, target: &Digest, paths: &Paths, report: &mut Report) {
    for left in &source.extra {
        let kept = left.hash != 0 && target.extra.iter().any(|other| other.hash == left.hash);
        if !kept {
            for path in paths.list(left.paths) {
                report.add(source.kind, path, How::Dropped { why: "" }, source.at);
            }
        }
    }
}
