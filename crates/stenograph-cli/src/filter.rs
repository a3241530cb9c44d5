//! The conditions that commands share: `--agent`, `--project`, `--model`, `--since` and `--until`. Each means the same as the
//! field of that name in a query.

use stenograph::query::{Period, Query, SPELLINGS, Today, period};
use stenograph_store::project::Project;

use crate::error::CommandError;
use crate::{clock, completion};

/// Conditions on sessions and their calls.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FilterArgs {
    /// Only agents whose name, as in steno list, contains NAME
    #[arg(long, value_name = "NAME", add = completion::agent())]
    agent: Option<String>,
    /// Only projects whose name, folder or git remote contains NAME; . is the project of this folder
    #[arg(long, value_name = "NAME", add = completion::project())]
    project: Option<String>,
    /// Only models whose name contains these words
    #[arg(long, value_name = "NAME", add = completion::model())]
    model: Option<String>,
    #[command(flatten)]
    pub period: PeriodArgs,
}

/// A period of time. Every command that takes a period takes these options.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PeriodArgs {
    /// Only since TIME (7d, yesterday, 2026-01-15)
    #[arg(long, value_name = "TIME", long_help = format!("Only since TIME: {SPELLINGS}"))]
    since: Option<String>,
    /// Only until TIME; a day, week, month or year includes its end
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// A period, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// Its first moment.
    pub since: Option<i64>,
    /// The first moment after it.
    pub until: Option<i64>,
}

/// A condition of an option or a query: its field and its value.
pub type Condition<'a> = (&'static str, Option<&'a str>);

impl FilterArgs {
    /// The conditions on names, which are those without times.
    pub fn names(&self) -> [Condition<'_>; 3] {
        [("agent", self.agent.as_deref()), ("project", self.project.as_deref()), ("model", self.model.as_deref())]
    }

    /// All conditions.
    pub fn all(&self) -> Vec<Condition<'_>> {
        let times = [("since", self.period.since.as_deref()), ("until", self.period.until.as_deref())];
        self.names().into_iter().chain(times).collect()
    }
}

impl PeriodArgs {
    /// The period between two texts of options that describe themselves.
    pub fn between(since: Option<&String>, until: Option<&String>) -> PeriodArgs {
        PeriodArgs { since: since.cloned(), until: until.cloned() }
    }

    /// Whether no time is given.
    pub fn is_empty(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// The period; unlimited without options.
    pub fn range(&self) -> Result<TimeRange, CommandError> {
        let read = |text: &String| named_period(text);
        let (since, until) = (self.since.as_ref().map(read).transpose()?, self.until.as_ref().map(read).transpose()?);
        Ok(TimeRange { since: since.map(|period| period.start), until: until.map(|period| period.end) })
    }
}

impl TimeRange {
    /// Whether it has no limit.
    pub fn is_unlimited(&self) -> bool {
        *self == TimeRange::default()
    }

    /// Whether it includes a time, in milliseconds since 1970. Only the unlimited one includes an unknown time.
    pub fn has(&self, time: Option<i64>) -> bool {
        let Some(time) = time else { return self.is_unlimited() };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

/// The query of these conditions and of a text, which all must match; `None` if there are none.
pub fn query_of(conditions: &[Condition<'_>], text: &str) -> Result<Option<Query>, CommandError> {
    let mut parts = Vec::new();
    for (name, value) in conditions {
        let Some(value) = value else { continue };
        let value = match (*name, *value) {
            ("project", "." | "./") => format!("={}", project_here()?.key()),
            (_, value) => value.to_owned(),
        };
        if matches!(*name, "since" | "until") {
            named_period(&value)?;
        }
        parts.push(format!("{name}:\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")));
    }
    if !text.trim().is_empty() {
        // By itself first, so that an error names a position in what the user wrote.
        parse_query(text)?;
        parts.push(if parts.is_empty() { text.to_owned() } else { format!("({text})") });
    }
    if parts.is_empty() { Ok(None) } else { parse_query(&parts.join(" ")).map(Some) }
}

fn named_period(text: &str) -> Result<Period, CommandError> {
    period(text, &today())
        .ok_or_else(|| CommandError::new(format!("{text}: not a time")).hint(format!("write {SPELLINGS}")))
}

/// The project of the current folder.
pub fn project_here() -> Result<Project, CommandError> {
    let here = std::env::current_dir()?;
    Project::of(&here)
        .ok_or_else(|| CommandError::new("the current folder has no absolute path").hint("name the project instead"))
}

/// Parses a query of the user.
pub fn parse_query(text: &str) -> Result<Query, CommandError> {
    Query::parse(text, &today())
        .map_err(|mistake| CommandError::new(format!("invalid query: {mistake}")).hint(mistake.hint))
}

fn today() -> Today {
    Today { now: clock::timestamp(), zone: clock::zone() }
}
