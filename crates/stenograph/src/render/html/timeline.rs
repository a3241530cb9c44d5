//! The timeline of a session: a drawing of what each agent did when, and how full the context was. Pauses are shortened, so
//! that a night between two prompts does not hide the work.

/// How many columns the drawing has.
const COLUMNS: usize = 240;

/// A pause counts as at most this long, in milliseconds.
const PAUSE_MS_MAX: i64 = 120_000;

/// The heights of the parts, in units of the drawing.
const CONTEXT_HEIGHT: usize = 28;
const LANE_HEIGHT: usize = 20;
const LANE_GAP: usize = 3;

/// The sub-agents that have a lane of their own; the others share the last one.
const LANES_MAX: usize = 6;

/// What happened, for the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
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
pub struct Sample {
    /// `i64::MIN` if the event has no time.
    time_ms: i64,
    context: u32,
    /// The number of the event in the main conversation; 0 elsewhere.
    number: u32,
    agent: u16,
    kind: SampleKind,
}

impl Sample {
    pub fn new(time_ms: Option<i64>, kind: SampleKind, agent: usize, context: u64, number: u64) -> Sample {
        Sample {
            time_ms: time_ms.unwrap_or(i64::MIN),
            context: u32::try_from(context).unwrap_or(u32::MAX),
            number: u32::try_from(number).unwrap_or(0),
            agent: u16::try_from(agent).unwrap_or(u16::MAX),
            kind,
        }
    }

    pub fn time_ms(&self) -> Option<i64> {
        (self.time_ms != i64::MIN).then_some(self.time_ms)
    }
}

/// One column of one lane: how many events of each kind.
type Column = [u32; SampleKind::DRAWN.len()];

/// Draws the samples; empty if there is nothing to see.
pub fn timeline(samples: &[Sample], agents: usize) -> String {
    if samples.len() < 3 {
        return String::new();
    }
    let columns = columns(samples);
    let lanes = agents.clamp(1, LANES_MAX);
    let mut counts = vec![[Column::default(); COLUMNS]; lanes];
    let mut context = [0_u32; COLUMNS];
    let mut first = [0_u32; COLUMNS];
    for (sample, column) in samples.iter().zip(&columns) {
        let lane = usize::from(sample.agent).min(lanes - 1);
        let kind = SampleKind::DRAWN.iter().position(|kind| *kind == sample.kind);
        if let Some(cell) = counts.get_mut(lane).and_then(|lane| lane.get_mut(*column)).zip(kind) {
            let (cell, kind) = cell;
            if let Some(count) = cell.get_mut(kind) {
                *count += 1;
            }
        }
        if let Some(full) = context.get_mut(*column) {
            *full = (*full).max(sample.context);
        }
        if let Some(first) = first.get_mut(*column).filter(|first| **first == 0) {
            *first = sample.number;
        }
    }
    let has_context = context.iter().any(|tokens| *tokens > 0);
    let top = if has_context { CONTEXT_HEIGHT + LANE_GAP } else { 0 };
    let height = top + lanes * (LANE_HEIGHT + LANE_GAP) - LANE_GAP;
    let mut out = format!(
        "<svg class=\"timeline lanes-{}\" viewBox=\"0 0 {COLUMNS} {height}\" preserveAspectRatio=\"none\" aria-hidden=\"true\" data-ids=\"{}\">\n",
        lanes + usize::from(has_context),
        ids(&first)
    );
    if has_context {
        out.push_str(&context_path(&context));
    }
    for (at, lane) in counts.iter().enumerate() {
        out.push_str(&lane_paths(lane, top + at * (LANE_HEIGHT + LANE_GAP)));
    }
    let is_compaction = |(sample, _): &(&Sample, &usize)| sample.kind == SampleKind::Compaction;
    for (_, column) in samples.iter().zip(&columns).filter(is_compaction) {
        out.push_str(&format!("<path class=\"t-compaction\" d=\"M{column} 0V{height}\"/>\n"));
    }
    out.push_str("</svg>\n");
    out
}

/// The id of the first event of each column. A column without one leads to the event before it.
fn ids(first: &[u32; COLUMNS]) -> String {
    let mut last = 0;
    let mut id = |first: &u32| {
        last = if *first > 0 { *first } else { last };
        if last > 0 { format!("e{last}") } else { String::new() }
    };
    first.iter().map(|first| id(first)).collect::<Vec<_>>().join(" ")
}

/// The column of each sample: by time without long pauses, or by order if times are missing.
fn columns(samples: &[Sample]) -> Vec<usize> {
    let mut times: Vec<i64> = samples.iter().filter_map(Sample::time_ms).collect();
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
    let of = |sample: &Sample| {
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
        let samples = times.map(|time| Sample::new(Some(time), SampleKind::Call, 0, 0, 1));
        let columns = columns(&samples);
        assert_eq!((columns[0], columns[5]), (0, COLUMNS - 1));
        assert!(columns[3] - columns[2] < COLUMNS / 2, "{columns:?}");
    }

    #[test]
    fn without_times_the_order_counts() {
        let samples = [Sample::new(None, SampleKind::User, 0, 0, 1); 5];
        assert_eq!(columns(&samples), [0, 60, 120, 179, COLUMNS - 1]);
        assert!(timeline(&samples, 1).contains("t-user"));
    }

    #[test]
    fn odd_times_and_agents_are_drawn() {
        let samples = [i64::MAX, i64::MIN + 1, 0]
            .map(|time| Sample::new(Some(time), SampleKind::Failure, 70_000, u64::MAX, u64::MAX));
        assert!(timeline(&samples, 3).starts_with("<svg"));
    }
}
