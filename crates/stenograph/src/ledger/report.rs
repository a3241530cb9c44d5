//! Sums over a ledger, grouped by day, by model and so on, with costs. The caller supplies the time zone and the names of
//! projects; this file reads no environment.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;

use super::builder::{Ledger, LedgerEntry};
use super::row::{Row, RowKind};
use super::source_usage::Name;
use super::{Money, Price, Prices, ServiceTier, Tokens};

/// How calls are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The day in the given time zone.
    Day,
    /// The week, starting on Monday.
    Week,
    /// The month.
    Month,
    /// Blocks of five hours, as vendors ration: a block begins at the full hour of its first call, the next one at a later
    /// call.
    HourBlock,
    /// The session.
    Session,
    /// The project.
    Project,
    /// The model.
    Model,
    /// The agent.
    Agent,
    /// The branch in version control.
    Branch,
    /// The tools that the answer calls. The usage of a call is divided among them.
    Tool,
    /// The sub-agent.
    Subagent,
}

impl By {
    /// Every grouping.
    pub const ALL: [By; 11] = [
        By::Day,
        By::Week,
        By::Month,
        By::HourBlock,
        By::Session,
        By::Project,
        By::Model,
        By::Agent,
        By::Branch,
        By::Tool,
        By::Subagent,
    ];

    /// The grouping with this name.
    pub fn named(name: &str) -> Option<By> {
        By::ALL.into_iter().find(|by| by.name() == name)
    }

    /// The description for help.
    pub fn says(self) -> &'static str {
        match self {
            By::Day => "The day",
            By::Week => "The week, starting on Monday",
            By::Month => "The month",
            By::HourBlock => "Blocks of five hours",
            By::Session => "The session",
            By::Project => "The project",
            By::Model => "The model",
            By::Agent => "The agent",
            By::Branch => "The git branch",
            By::Tool => "The tool; an answer that calls several tools is split among them",
            By::Subagent => "The sub-agent",
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            By::Day => "day",
            By::Week => "week",
            By::Month => "month",
            By::HourBlock => "hour-block",
            By::Session => "session",
            By::Project => "project",
            By::Model => "model",
            By::Agent => "agent",
            By::Branch => "branch",
            By::Tool => "tool",
            By::Subagent => "subagent",
        }
    }

    /// Whether groups are in order of time.
    pub fn is_time(self) -> bool {
        match self {
            By::Day | By::Week | By::Month | By::HourBlock => true,
            By::Session | By::Project | By::Model | By::Agent | By::Branch | By::Tool | By::Subagent => false,
        }
    }
}

/// A query of a ledger.
pub struct UsageQuery<'q> {
    /// How calls are grouped.
    pub by: By,
    /// How the calls of a group are grouped again.
    pub then_by: Option<By>,
    /// The time zone of days.
    pub zone: TimeZone,
    /// The prices of models.
    pub prices: &'q Prices,
    /// The name of the project of a call: its folder, and its session if it states one.
    pub project: &'q mut dyn FnMut(&str, Option<&str>) -> String,
    /// Which calls to include.
    pub keep: &'q mut dyn FnMut(&LedgerEntry) -> bool,
}

impl std::fmt::Debug for UsageQuery<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("UsageQuery").field("by", &self.by).finish_non_exhaustive()
    }
}

/// The result of a [`UsageQuery`].
#[derive(Debug, Default)]
pub struct UsageReport {
    /// The groups: in order of time, or else the most expensive first.
    pub groups: Vec<Group>,
    /// All groups together. A call that is divided among groups counts once.
    pub total: Group,
    /// Models without a price.
    pub unpriced: Vec<Unpriced>,
}

/// A group of calls.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The value they share; `None` if unknown.
    pub key: Option<String>,
    /// The value of the second grouping; `None` if unknown, or without one.
    pub then_key: Option<String>,
    /// The sum of their tokens.
    pub tokens: Tokens,
    /// The number of calls.
    pub calls: u64,
    /// The cost of those with a price.
    pub cost: Cost,
    /// The sum of the costs that sources state.
    pub stated: Option<Money>,
    /// Our cost of the calls whose cost a source states.
    pub compared: Option<Money>,
    /// The models.
    pub models: BTreeSet<String>,
    /// The agents.
    pub agents: BTreeSet<String>,
    /// The time of the first call, in milliseconds since 1970.
    pub first: Option<i64>,
    /// The time of the last call.
    pub last: Option<i64>,
    /// The numbers of the models and agents so far: each name is looked up once.
    numbers: [Vec<Name>; 2],
}

/// The cost of calls. If some have no price, the amount covers only the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The cost of the calls with a price; `None` if the amount overflows.
    pub money: Option<Money>,
    /// The number of calls with a price.
    pub priced: u64,
    /// The number of calls without one.
    pub unpriced: u64,
}

/// A model without a price.
#[derive(Clone, Debug)]
pub struct Unpriced {
    /// The model; `None` if sources name none.
    pub model: Option<String>,
    /// The service tier.
    pub service_tier: ServiceTier,
    /// The counters without a price; empty if the model is unknown.
    pub missing: Vec<super::PriceCounter>,
    /// The number of calls.
    pub calls: u64,
    /// The sum of their tokens.
    pub tokens: Tokens,
}

impl Group {
    /// How much more sources state than we compute, for the same calls.
    pub fn difference(&self) -> Option<Money> {
        self.stated?.less(self.compared?)
    }

    fn add(&mut self, ledger: &Ledger, row: &Row, tokens: &Tokens, cost: Option<Money>, stated: Option<Money>) {
        self.tokens = self.tokens.plus(tokens);
        self.calls += u64::from(row.calls);
        if row.kind != RowKind::Cost {
            match cost {
                Some(cost) => {
                    let before = if self.cost.priced == 0 { Some(Money::ZERO) } else { self.cost.money };
                    self.cost.money = before.and_then(|sum| sum.plus(cost));
                    self.cost.priced += u64::from(row.calls);
                }
                None => self.cost.unpriced += u64::from(row.calls),
            }
        }
        if let Some(stated) = stated {
            self.stated = self.stated.unwrap_or(Money::ZERO).plus(stated);
        }
        let [models, agents] = &mut self.numbers;
        for (set, numbers, number) in
            [(&mut self.models, models, row.model), (&mut self.agents, agents, Some(row.agent))]
        {
            if let Some(number) = number.filter(|number| !numbers.contains(number)) {
                numbers.push(number);
                set.extend(ledger.name(Some(number)).map(str::to_owned));
            }
        }
        self.first = self.first.into_iter().chain(row.time).min();
        self.last = self.last.max(row.time);
    }
}

/// Computes the report for a question.
pub fn report(ledger: &Ledger, question: &mut UsageQuery<'_>) -> UsageReport {
    let mut keys = Keys::default();
    let mut costs = Costs::new(question.prices);
    let mut groups: HashMap<[Option<String>; 2], Group> = HashMap::new();
    let (by, then_by) = (question.by, question.then_by);
    let mut total = Group::default();
    let costed = sessions_with_costs(ledger);
    for entry in &ledger.entries {
        if !(question.keep)(entry) {
            continue;
        }
        let row = &entry.row;
        let cost = if row.kind == RowKind::Cost { None } else { costs.of(ledger, row) };
        let stated = row.stated_cost.and_then(|stated| Money::parse(&stated.to_string()));
        // The stated cost of a whole session is compared with all of its calls.
        let is_compared = row.kind != RowKind::Cost && (stated.is_some() || costed.contains(&row.session));
        let compared = cost.filter(|_| is_compared);
        total.add(ledger, row, &row.tokens, cost, stated);
        add_compared(&mut total, compared);
        let mut put = |keys: [Option<String>; 2], tokens: &Tokens, [cost, stated, compared]: [Option<Money>; 3]| {
            let group = groups.entry(keys).or_default();
            group.add(ledger, row, tokens, cost, stated);
            add_compared(group, compared);
        };
        let money = [cost, stated, compared];
        let group = [keys.of(ledger, row, question, by), then_by.and_then(|by| keys.of(ledger, row, question, by))];
        if (by == By::Tool || then_by == Some(By::Tool)) && row.tools.iter().len() > 0 {
            for (tool, tokens, money) in shared(row, money) {
                let tool = ledger.name(Some(tool)).map(str::to_owned);
                let [first, second] = group.clone();
                put(if by == By::Tool { [tool, second] } else { [first, tool] }, &tokens, money);
            }
        } else {
            put(group, &row.tokens, money);
        }
    }
    let groups = groups.into_iter().map(|([key, then_key], group)| Group { key, then_key, ..group });
    UsageReport { groups: sorted(groups.collect(), by, then_by), total, unpriced: costs.unpriced(ledger) }
}

/// Groups in order of time, or else the most expensive first. Groups with the same first key stay together.
fn sorted(mut groups: Vec<Group>, by: By, then_by: Option<By>) -> Vec<Group> {
    let tokens = |group: &Group| group.tokens.total();
    groups.sort_by(|one, other| (&one.key, &one.then_key).cmp(&(&other.key, &other.then_key)));
    if then_by.is_some_and(|by| !by.is_time()) {
        groups.sort_by_key(|group| std::cmp::Reverse((group.cost.money, tokens(group))));
    }
    let mut sums: HashMap<Option<String>, (Option<Money>, u64)> = HashMap::new();
    for group in &groups {
        let (money, sum) = sums.entry(group.key.clone()).or_default();
        if let Some(cost) = group.cost.money {
            *money = money.unwrap_or(Money::ZERO).plus(cost);
        }
        *sum = sum.saturating_add(tokens(group));
    }
    groups.sort_by(|one, other| one.key.cmp(&other.key));
    if !by.is_time() {
        groups.sort_by_key(|group| std::cmp::Reverse(sums.get(&group.key).copied().unwrap_or_default()));
    }
    groups
}

fn add_compared(group: &mut Group, compared: Option<Money>) {
    if let Some(compared) = compared {
        group.compared = group.compared.unwrap_or(Money::ZERO).plus(compared);
    }
}

fn sessions_with_costs(ledger: &Ledger) -> HashSet<Option<Name>> {
    let rows = ledger.entries.iter().map(|entry| &entry.row);
    rows.filter(|row| row.kind == RowKind::Cost && row.session.is_some()).map(|row| row.session).collect()
}

/// The usage and cost of a call, divided among its tools; the remainder goes to the first ones.
fn shared(row: &Row, money: [Option<Money>; 3]) -> Vec<(Name, Tokens, [Option<Money>; 3])> {
    let parts = row.tools.iter().len().max(1);
    let divisor = parts as u64;
    let money = money.map(|money| money.map(|money| money.split(parts)).unwrap_or_default());
    let share = |(tool, at): (Name, u64)| {
        let counters = row.tokens.counters().map(|counter| counter / divisor + u64::from(at < counter % divisor));
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let money = [0, 1, 2].map(|which: usize| money.get(which).and_then(|money| money.get(at)).copied());
        (tool, Tokens::from_counters(counters), money)
    };
    row.tools.iter().zip(0..).map(share).collect()
}

/// The length of a block: five hours.
const BLOCK_MS: i64 = 5 * 60 * 60 * 1000;

/// Assigns rows to groups.
#[derive(Debug, Default)]
struct Keys {
    /// The start of the current block, and its last call.
    block: Option<(i64, i64)>,
    projects: HashMap<(Name, Option<Name>), String>,
}

impl Keys {
    fn of(&mut self, ledger: &Ledger, row: &Row, question: &mut UsageQuery<'_>, by: By) -> Option<String> {
        let name = |name: Option<Name>| ledger.name(name).map(str::to_owned);
        match by {
            By::Day | By::Week | By::Month => row.time.and_then(|time| day(time, question, by)),
            By::HourBlock => row.time.and_then(|time| self.block(time, question)),
            By::Session => name(row.session),
            By::Project => self.project(ledger, row, question),
            By::Model => name(row.model),
            By::Agent => name(Some(row.agent)),
            By::Branch => name(row.branch),
            By::Subagent => name(row.thread),
            // A row with tools is divided among their groups; this one has none.
            By::Tool => None,
        }
    }

    fn project(&mut self, ledger: &Ledger, row: &Row, question: &mut UsageQuery<'_>) -> Option<String> {
        let place = (row.cwd?, row.session);
        if let Some(project) = self.projects.get(&place) {
            return Some(project.clone());
        }
        let project = (question.project)(ledger.name(row.cwd)?, ledger.name(row.session));
        self.projects.insert(place, project.clone());
        Some(project)
    }

    /// The block of a time. Rows come in order of time.
    fn block(&mut self, time: i64, question: &UsageQuery<'_>) -> Option<String> {
        let start = match self.block {
            Some((start, last)) if time - start < BLOCK_MS && time - last < BLOCK_MS => start,
            _ => {
                let zoned = Timestamp::from_millisecond(time).ok()?.to_zoned(question.zone.clone());
                let hour = zoned.with().minute(0).second(0).subsec_nanosecond(0).build().ok()?;
                hour.timestamp().as_millisecond()
            }
        };
        self.block = Some((start, time));
        let zoned = Timestamp::from_millisecond(start).ok()?.to_zoned(question.zone.clone());
        Some(zoned.strftime("%Y-%m-%d %H:%M").to_string())
    }
}

fn day(time: i64, question: &UsageQuery<'_>, by: By) -> Option<String> {
    let day = Timestamp::from_millisecond(time).ok()?.to_zoned(question.zone.clone()).date();
    Some(match by {
        By::Month => day.strftime("%Y-%m").to_string(),
        By::Week if day.weekday() != Weekday::Monday => day.nth_weekday(-1, Weekday::Monday).ok()?.to_string(),
        _ => day.to_string(),
    })
}

/// The costs of calls, with each price looked up once.
struct Costs<'p> {
    prices: &'p Prices,
    known: HashMap<(Option<Name>, ServiceTier), Option<Price>>,
    unpriced: HashMap<(Option<Name>, ServiceTier), Unpriced>,
}

impl Costs<'_> {
    fn new(prices: &Prices) -> Costs<'_> {
        Costs { prices, known: HashMap::new(), unpriced: HashMap::new() }
    }

    fn of(&mut self, ledger: &Ledger, row: &Row) -> Option<Money> {
        let key = (row.model, row.service_tier);
        let look = || self.prices.price(ledger.name(row.model)?, row.service_tier);
        let price = self.known.entry(key).or_insert_with(look);
        let cost = price.as_ref().and_then(|price| price.cost(&row.tokens, row.calls));
        // A call without tokens costs nothing, whatever the model.
        let cost = cost.or_else(|| row.tokens.is_zero().then_some(Money::ZERO));
        if cost.is_none() {
            let missing = price.as_ref().map(|price| price.missing(&row.tokens, row.calls)).unwrap_or_default();
            let service_tier = row.service_tier;
            let none = || Unpriced { model: None, service_tier, missing, calls: 0, tokens: Tokens::default() };
            let unpriced = self.unpriced.entry(key).or_insert_with(none);
            unpriced.calls += u64::from(row.calls);
            unpriced.tokens = unpriced.tokens.plus(&row.tokens);
        }
        cost
    }

    fn unpriced(self, ledger: &Ledger) -> Vec<Unpriced> {
        let named = |((model, _), unpriced): ((Option<Name>, ServiceTier), Unpriced)| Unpriced {
            model: ledger.name(model).map(str::to_owned),
            ..unpriced
        };
        let mut unpriced: Vec<Unpriced> = self.unpriced.into_iter().map(named).collect();
        unpriced.sort_by(|one, other| (&one.model, one.service_tier).cmp(&(&other.model, other.service_tier)));
        unpriced
    }
}
