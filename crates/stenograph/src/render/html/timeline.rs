//! The timeline of a session: a drawing of what each agent did when, and how full the context was. Pauses are shortened, so
//! that a night between two prompts does not hide the work. An exported page has one drawing; the viewer has one for each agent.

use crate::ledger::context_tokens;
use crate::model::Event;
use crate::render::ViewKind;
use crate::time::Time;

/// How many columns the drawing has.
const COLUMNS: usize = 240;

/// A pause counts as at most this long, in milliseconds.
const PAUSE_MS_MAX: i64 = 120_000;

/// The legend of the drawing.
pub const TIMELINE_LEGEND: &str = "<span class=\"k t-user\">prompt</span> <span class=\"k t-agent\">answer</span> <span class=\"k t-call\">call</span> \
<span class=\"k t-thinking\">thinking</span> <span class=\"k t-failure\">failure</span> <span class=\"k t-context\">context tokens</span>";

/// The heights of the parts, in units of the drawing.
const CONTEXT_HEIGHT: usize = 28;
const LANE_HEIGHT: usize = 20;
const LANE_GAP: usize = 3;

/// The sub-agents that have a lane of their own; the others share the last one.
const LANES_MAX: usize = 6;

/// The events of a timeline. Later ones are not drawn.
const SAMPLES_MAX: usize = 2_000_000;

/// What happened, for the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleKind {
    User,
    Agent,
    Thinking,
    Call,
    Failure,
    Compaction,
    Other,
}

impl SampleKind {
    /// The kinds that are drawn, from the bottom of a column to its top.
    const DRAWN: [SampleKind; 5] =
        [SampleKind::Thinking, SampleKind::Call, SampleKind::Agent, SampleKind::User, SampleKind::Failure];

    /// The kind of an event.
    pub(super) fn of(kind: ViewKind) -> SampleKind {
        match kind {
            ViewKind::User => SampleKind::User,
            ViewKind::Agent => SampleKind::Agent,
            ViewKind::Thinking => SampleKind::Thinking,
            ViewKind::Call(_) => SampleKind::Call,
            ViewKind::Result(outcome) if outcome.is_failure() => SampleKind::Failure,
            ViewKind::Failure => SampleKind::Failure,
            ViewKind::Compaction => SampleKind::Compaction,
            ViewKind::Result(_) | ViewKind::Notice | ViewKind::Injected | ViewKind::Bookkeeping => SampleKind::Other,
        }
    }

    fn class(self) -> &'static str {
        match self {
            SampleKind::User => "t-user",
            SampleKind::Agent => "t-agent",
            SampleKind::Thinking => "t-thinking",
            SampleKind::Call => "t-call",
            SampleKind::Failure => "t-failure",
            SampleKind::Compaction | SampleKind::Other => "",
        }
    }
}

/// One event on the timeline.
#[derive(Clone, Copy, Debug)]
struct TimelineSample {
    /// `i64::MIN` if the event has no time.
    time_ms: i64,
    context: u32,
    /// The number of the event; 0 if nothing leads to it.
    number: u32,
    agent: u16,
    kind: SampleKind,
}

impl TimelineSample {
    fn new(time_ms: Option<i64>, kind: SampleKind, agent: usize, context: u64, number: u64) -> TimelineSample {
        TimelineSample {
            time_ms: time_ms.unwrap_or(i64::MIN),
            context: u32::try_from(context).unwrap_or(u32::MAX),
            number: u32::try_from(number).unwrap_or(0),
            agent: u16::try_from(agent).unwrap_or(u16::MAX),
            kind,
        }
    }

    fn time_ms(&self) -> Option<i64> {
        (self.time_ms != i64::MIN).then_some(self.time_ms)
    }
}

/// What the agents of a session did when. A sample of each event takes some bytes.
#[derive(Debug, Default)]
pub struct SessionTimeline {
    samples: Vec<TimelineSample>,
}

/// One column of one lane: how many events of each kind.
type Column = [u32; SampleKind::DRAWN.len()];

/// The lane of one agent.
struct Lane {
    counts: [Column; COLUMNS],
    /// The first event of each column; 0 if there is none.
    first: [u32; COLUMNS],
    compactions: Vec<usize>,
}

impl SessionTimeline {
    /// Adds an event: its agent, of which 0 is the main one, and its number, or 0 if nothing leads to it.
    pub fn add(&mut self, agent: usize, number: u64, event: &Event<'_>, kind: ViewKind) {
        if self.samples.len() < SAMPLES_MAX {
            let time_ms = event.time.as_ref().and_then(Time::to_millis);
            let context = context_tokens(event).filter(|_| agent == 0).unwrap_or(0);
            self.samples.push(TimelineSample::new(time_ms, SampleKind::of(kind), agent, context, number));
        }
    }

    /// The times of the events.
    pub(super) fn times(&self) -> impl Iterator<Item = i64> {
        self.samples.iter().filter_map(TimelineSample::time_ms)
    }

    /// One drawing of all agents; empty if there is nothing to see. The last lanes share a place.
    pub(super) fn html(&self, agents: usize) -> String {
        if self.samples.len() < 3 {
            return String::new();
        }
        let (lanes, context) = self.lanes(agents.clamp(1, LANES_MAX));
        let has_context = context.iter().any(|tokens| *tokens > 0);
        let top = if has_context { CONTEXT_HEIGHT + LANE_GAP } else { 0 };
        let height = top + lanes.len() * (LANE_HEIGHT + LANE_GAP) - LANE_GAP;
        // Only events of the main agent have a number.
        let mut first = [0; COLUMNS];
        for lane in &lanes {
            first.iter_mut().zip(lane.first).for_each(|(known, here)| *known = if *known == 0 { here } else { *known });
        }
        let mut out = format!(
            "<svg class=\"timeline lanes-{}\" viewBox=\"0 0 {COLUMNS} {height}\" preserveAspectRatio=\"none\" aria-hidden=\"true\" data-ids=\"{}\">\n",
            lanes.len() + usize::from(has_context),
            ids(&first, "e")
        );
        if has_context {
            out.push_str(&context_path(&context));
        }
        for (at, lane) in lanes.iter().enumerate() {
            out.push_str(&lane_paths(&lane.counts, top + at * (LANE_HEIGHT + LANE_GAP)));
        }
        lanes.iter().for_each(|lane| lane.compaction_paths(height, &mut out));
        out.push_str("</svg>\n");
        out
    }

    /// One drawing for each agent, with the number of the first event of each column in `data-events`. All have the same scale.
    pub fn lanes_html(&self, agents: usize) -> Vec<String> {
        let (lanes, context) = self.lanes(agents.max(1));
        let drawn = lanes.iter().enumerate().map(|(at, lane)| {
            let has_context = at == 0 && context.iter().any(|tokens| *tokens > 0);
            let top = if has_context { CONTEXT_HEIGHT + LANE_GAP } else { 0 };
            let height = top + LANE_HEIGHT;
            let mut out = format!(
                "<svg class=\"timeline\" viewBox=\"0 0 {COLUMNS} {height}\" preserveAspectRatio=\"none\" aria-hidden=\"true\" data-events=\"{}\">",
                ids(&lane.first, "")
            );
            if has_context {
                out.push_str(&context_path(&context));
            }
            out.push_str(&lane_paths(&lane.counts, top));
            lane.compaction_paths(height, &mut out);
            out.push_str("</svg>");
            out
        });
        drawn.collect()
    }

    /// The lanes, and how full the context of the main agent was in each column.
    fn lanes(&self, lanes: usize) -> (Vec<Lane>, [u32; COLUMNS]) {
        let empty = || Lane { counts: [Column::default(); COLUMNS], first: [0; COLUMNS], compactions: Vec::new() };
        let mut drawn: Vec<Lane> = std::iter::repeat_with(empty).take(lanes).collect();
        let mut context = [0_u32; COLUMNS];
        for (sample, column) in self.samples.iter().zip(columns(&self.samples)) {
            let Some(lane) = drawn.get_mut(usize::from(sample.agent).min(lanes - 1)) else { continue };
            let kind = SampleKind::DRAWN.iter().position(|kind| *kind == sample.kind);
            if let Some(count) = lane.counts.get_mut(column).zip(kind).and_then(|(cell, kind)| cell.get_mut(kind)) {
                *count += 1;
            }
            if let Some(full) = context.get_mut(column) {
                *full = (*full).max(sample.context);
            }
            if let Some(first) = lane.first.get_mut(column).filter(|first| **first == 0) {
                *first = sample.number;
            }
            if sample.kind == SampleKind::Compaction && lane.compactions.last() != Some(&column) {
                lane.compactions.push(column);
            }
        }
        (drawn, context)
    }
}

impl Lane {
    fn compaction_paths(&self, height: usize, out: &mut String) {
        for column in &self.compactions {
            out.push_str(&format!("<path class=\"t-compaction\" d=\"M{column} 0V{height}\"/>\n"));
        }
    }
}

/// The id of the first event of each column. A column without one leads to the event before it.
fn ids(first: &[u32; COLUMNS], prefix: &str) -> String {
    let mut last = 0;
    let id = |first: &u32| {
        last = if *first > 0 { *first } else { last };
        if last > 0 { format!("{prefix}{last}") } else { String::new() }
    };
    first.iter().map(id).collect::<Vec<_>>().join(" ")
}

/// The column of each sample: by time without long pauses, or by order if times are missing.
fn columns(samples: &[TimelineSample]) -> Vec<usize> {
    let mut times: Vec<i64> = samples.iter().filter_map(TimelineSample::time_ms).collect();
    times.sort_unstable();
    times.dedup();
    // Each time with the active time before it.
    let mut active = 0_i64;
    let mut moments: Vec<(i64, i64)> = Vec::with_capacity(times.len());
    for time in times {
        let before = moments.last().map_or(time, |(before, _)| *before);
        active = active.saturating_add(time.saturating_sub(before).min(PAUSE_MS_MAX));
        moments.push((time, active));
    }
    let place = |part: i64, all: i64| {
        let column = (part as f64 / all.max(1) as f64 * (COLUMNS - 1) as f64).round();
        (column as usize).min(COLUMNS - 1)
    };
    if active <= 0 {
        let all = samples.len() as i64 - 1;
        return (0..samples.len()).map(|at| place(at as i64, all)).collect();
    }
    let mut last = 0;
    let of = |sample: &TimelineSample| {
        // An event without a time happened with the one before it.
        if let Some(time) = sample.time_ms() {
            let at = moments.binary_search_by_key(&time, |(time, _)| *time).unwrap_or(0);
            last = place(moments.get(at).map_or(0, |(_, active)| *active), active);
        }
        last
    };
    samples.iter().map(of).collect()
}

/// How full the context was, as an area. A column without a request continues the one before it.
fn context_path(context: &[u32; COLUMNS]) -> String {
    let most = context.iter().max().copied().unwrap_or(1).max(1);
    let mut path = format!("M0 {CONTEXT_HEIGHT}");
    let mut tokens = 0;
    for (column, stated) in context.iter().enumerate() {
        tokens = if *stated > 0 { *stated } else { tokens };
        let height = f64::from(tokens) / f64::from(most) * (CONTEXT_HEIGHT - 2) as f64;
        path.push_str(&format!("L{column} {:.1}", CONTEXT_HEIGHT as f64 - height));
    }
    path.push_str(&format!("V{CONTEXT_HEIGHT}z"));
    format!("<path class=\"t-context\" d=\"{path}\"/>\n")
}

/// The columns of one agent: a stack of what it did, one path for each kind.
fn lane_paths(lane: &[Column; COLUMNS], top: usize) -> String {
    let total = |column: &Column| column.iter().sum::<u32>();
    let most = f64::from(lane.iter().map(total).max().unwrap_or(1).max(1));
    let mut paths = vec![String::new(); SampleKind::DRAWN.len()];
    for (at, column) in lane.iter().enumerate() {
        let mut bottom = (top + LANE_HEIGHT) as f64;
        for (count, path) in column.iter().zip(&mut paths).filter(|(count, _)| **count > 0) {
            // The root keeps columns with few events visible.
            let share = (f64::from(*count) / f64::from(total(column))) * (f64::from(total(column)) / most).sqrt();
            let height = (share * LANE_HEIGHT as f64).max(1.0).min(bottom - top as f64);
            bottom -= height;
            path.push_str(&format!("M{at} {bottom:.1}h1v{height:.1}h-1z"));
        }
    }
    let drawn = SampleKind::DRAWN.iter().zip(paths).filter(|(_, path)| !path.is_empty());
    let mut out = format!("<path class=\"t-base\" d=\"M0 {0}H{COLUMNS}\"/>\n", top + LANE_HEIGHT);
    out.extend(drawn.map(|(kind, path)| format!("<path class=\"{}\" d=\"{path}\"/>\n", kind.class())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_takes_little_room() {
        let night = 12 * 3_600_000;
        let times = [0, 60_000, 120_000, night, night + 60_000, night + 120_000];
        let samples = times.map(|time| TimelineSample::new(Some(time), SampleKind::Call, 0, 0, 1));
        let columns = columns(&samples);
        assert_eq!((columns[0], columns[5]), (0, COLUMNS - 1));
        assert!(columns[3] - columns[2] < COLUMNS / 2, "{columns:?}");
    }

    #[test]
    fn without_times_the_order_counts() {
        let samples = [TimelineSample::new(None, SampleKind::User, 0, 0, 1); 5];
        assert_eq!(columns(&samples), [0, 60, 120, 179, COLUMNS - 1]);
        assert!(SessionTimeline { samples: samples.to_vec() }.html(1).contains("t-user"));
    }

    #[test]
    fn odd_times_and_agents_are_drawn() {
        let samples = [i64::MAX, i64::MIN + 1, 0]
            .map(|time| TimelineSample::new(Some(time), SampleKind::Failure, 70_000, u64::MAX, u64::MAX));
        assert!(SessionTimeline { samples: samples.to_vec() }.html(3).starts_with("<svg"));
    }

    #[test]
    fn every_agent_has_a_lane_that_leads_to_its_own_events() {
        let sample = |time, kind, agent, number| TimelineSample::new(Some(time), kind, agent, 0, number);
        let samples = vec![
            sample(0, SampleKind::User, 0, 1),
            sample(1000, SampleKind::Call, 1, 7),
            sample(2000, SampleKind::Compaction, 1, 9),
        ];
        let lanes = SessionTimeline { samples }.lanes_html(2);
        assert!(lanes[0].contains("data-events=\"1 1") && !lanes[0].contains("t-call"), "{}", lanes[0]);
        assert!(
            lanes[1].contains(" 7 ") && lanes[1].contains(" 9\"") && lanes[1].contains("t-compaction"),
            "{}",
            lanes[1]
        );
        assert_eq!(SessionTimeline::default().lanes_html(0).len(), 1);
    }
}
