//! `steno usage --as`: counts as another program does, and with `--explain` compares its numbers with ours. The library has the
//! counting rules.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use stenograph::formats::peers::PeerRule;
use stenograph::json::Draft;
use stenograph::ledger::{By, Group, Ledger, Tokens, UsageReport};
use stenograph_store::peer_usage::{PeerUsage, peer_usage};

use super::{Options, STOPPED, print_first};
use crate::error::CommandError;
use crate::output::{Output, TextStyle, counted, grouped, harmless_line};
use crate::progress::IndexProgressBar;
use crate::table::{self, Align};

/// A program that counts otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum As {
    /// The daily report of ccusage 20.0.24: the largest record of a call counts
    #[value(name = "ccusage-20")]
    Ccusage20,
    /// ccstat 0.6.2: the first record of a call counts
    FirstRow,
}

impl As {
    fn meaning(self) -> PeerRule {
        match self {
            As::Ccusage20 => PeerRule::Ccusage20,
            As::FirstRow => PeerRule::FirstRow,
        }
    }
}

/// The other program, and what it does not count.
#[derive(Debug)]
pub struct Peer {
    rule: PeerRule,
    agents: Vec<&'static str>,
    unknown: Vec<(&'static str, u64)>,
    unread: u64,
    sides: Vec<BothCounts>,
}

/// An agent's usage by our count and by the other program's; the last entry is the total.
#[derive(Debug)]
struct BothCounts {
    agent: Option<String>,
    ours: Numbers,
    /// `None` if the program does not know the agent.
    theirs: Option<Numbers>,
}

/// Calls, input, output, cache write, cache read.
type Numbers = [u64; 5];

const NAMES: [&str; 5] = ["calls", "input", "output", "cache_write", "cache_read"];

/// Counts as another program does; `None` if the user stopped it.
pub fn count(
    rule: As,
    options: &Options,
    stop: &Arc<AtomicBool>,
    output: &mut Output<'_>,
) -> Result<Option<(Ledger, Peer)>, CommandError> {
    let rule = rule.meaning();
    if options.by.contains(&By::Tool) {
        let error = format!("{} cannot group by tool: it does not read tool calls", rule.program());
        return Err(CommandError::new(error).hint("omit --as, or choose another --by"));
    }
    let (files, places) = options.sources(&options.place.store()?)?;
    let mut bar = IndexProgressBar::new("counting", stop);
    let PeerUsage { ledger, agents, unknown, unread, notes, warnings, stopped } =
        peer_usage(rule, places.as_ref(), &files, &mut bar);
    drop(bar);
    if stopped {
        output.say(STOPPED);
        return Ok(None);
    }
    let peer = Peer { rule, agents, unknown: unknown.into_iter().collect(), unread, sides: Vec::new() };
    peer.say(output);
    print_first(notes.into_iter(), output);
    print_first(warnings.iter().map(|warning| format!("{}: {}", warning.path.display(), warning.text)), output);
    Ok(Some((ledger, peer)))
}

impl Peer {
    fn say(&self, output: &mut Output<'_>) {
        let Peer { rule, unknown, unread, .. } = self;
        let program = rule.program();
        output.say(&format!("note: counted by the rules of {program} {}: {}", rule.version(), rule.says()));
        if !unknown.is_empty() {
            let agents: Vec<String> =
                unknown.iter().map(|(agent, files)| format!("{agent} ({})", counted(*files, "file"))).collect();
            output.say(&format!("note: {program} does not count {}", agents.join(", ")));
        }
        if *unread > 0 {
            output.say(&format!("note: {program} does not read {} with other names", counted(*unread, "file")));
        }
    }

    /// Compares both counts by agent.
    pub fn compare(&mut self, ours: &UsageReport, theirs: &UsageReport) {
        let numbers = |group: Option<&Group>| group.map(numbers).unwrap_or_default();
        let find = |report: &'_ UsageReport, key: &Option<String>| {
            report.groups.iter().find(|group| group.key == *key).cloned()
        };
        let only_theirs = theirs.groups.iter().filter(|group| find(ours, &group.key).is_none());
        self.sides = ours
            .groups
            .iter()
            .chain(only_theirs)
            .map(|group| {
                let other = find(theirs, &group.key);
                let is_counted = group.key.as_deref().is_some_and(|key| self.agents.contains(&key));
                BothCounts {
                    agent: group.key.clone(),
                    ours: numbers(find(ours, &group.key).as_ref()),
                    theirs: (is_counted || other.is_some()).then(|| numbers(other.as_ref())),
                }
            })
            .collect();
        let total = BothCounts {
            agent: Some("total".to_owned()),
            ours: numbers(Some(&ours.total)),
            theirs: Some(numbers(Some(&theirs.total))),
        };
        self.sides.push(total);
    }

    /// Both counts for people.
    pub fn print(&self, output: &mut Output<'_>) -> Result<(), CommandError> {
        let mut rows = Vec::new();
        for BothCounts { agent, ours, theirs } in &self.sides {
            let agent = harmless_line(agent.as_deref().unwrap_or("(unknown)"));
            rows.push(cells(&agent, "steno", ours.map(grouped)));
            let other = theirs.map_or([(); 5].map(|()| "not counted".to_owned()), |theirs| theirs.map(grouped));
            rows.push(cells("", self.rule.name(), other));
            if let Some(theirs) = theirs {
                rows.push(cells("", "difference", differences(*ours, *theirs).map(signed)));
            }
        }
        let headings = [
            ("AGENT", Align::Left),
            ("COUNTED BY", Align::Left),
            ("CALLS", Align::Right),
            ("INPUT", Align::Right),
            ("OUTPUT", Align::Right),
            ("CACHE WRITE", Align::Right),
            ("CACHE READ", Align::Right),
        ];
        output.line("")?;
        let colour = output.colour();
        for (at, line) in table::lines(headings, &rows, table::screen_width()).into_iter().enumerate() {
            output.line(&if at == 0 { colour.paint(TextStyle::Faint, &line) } else { line })?;
        }
        let rule = self.rule;
        output.line(&format!("{} is {} {}: {}", rule.name(), rule.program(), rule.version(), rule.says()))
    }

    /// The comparison in JSON: fields and their values.
    pub fn json(&self) -> Vec<(&'static str, String)> {
        let rule = self.rule;
        let unknown = self
            .unknown
            .iter()
            .map(|(agent, files)| Draft::new().with("agent", agent).with("files", files).render(None));
        let counted_as = Draft::new()
            .with("rule", rule.name())
            .with("program", rule.program())
            .with("version", rule.version())
            .with("says", rule.says())
            .with("agents", &self.agents)
            .with_list("not_counted", unknown)
            .with("unread_files", self.unread);
        let mut fields = vec![("as", counted_as.render(None))];
        if !self.sides.is_empty() {
            let sides: Vec<String> = self.sides.iter().map(BothCounts::json).collect();
            fields.push(("compared", format!("[{}]", sides.join(","))));
        }
        fields
    }
}

impl BothCounts {
    fn json(&self) -> String {
        let theirs = self.theirs.map_or("null".to_owned(), object);
        let difference = self.theirs.map_or("null".to_owned(), |theirs| object(differences(self.ours, theirs)));
        let draft = Draft::new().with("agent", &self.agent).with_json("ours", object(self.ours));
        draft.with_json("theirs", theirs).with_json("difference", difference).render(None)
    }
}

fn object<N: serde::Serialize>(numbers: [N; 5]) -> String {
    NAMES.iter().zip(numbers).fold(Draft::new(), |draft, (name, number)| draft.with(*name, number)).render(None)
}

fn numbers(group: &Group) -> Numbers {
    let Tokens { input, output, cache_write, cache_read, .. } = group.tokens;
    [group.calls, input, output, cache_write, cache_read]
}

/// Theirs minus ours.
fn differences(ours: Numbers, theirs: Numbers) -> [i128; 5] {
    let mut differences = theirs.map(i128::from);
    for (difference, ours) in differences.iter_mut().zip(ours) {
        *difference -= i128::from(ours);
    }
    differences
}

fn signed(difference: i128) -> String {
    let size = grouped(u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX));
    match difference {
        0 => "0".to_owned(),
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

fn cells(agent: &str, side: &str, numbers: [String; 5]) -> [String; 7] {
    let [calls, input, output, write, read] = numbers;
    [agent.to_owned(), side.to_owned(), calls, input, output, write, read]
}
