//! Formats sums of the ledger: as a table, as JSON, as CSV.

use std::fmt::Write as _;

use stenograph::json::Draft;
use stenograph::ledger::{By, Group, Ledger, Money, Prices, ServiceTier, Tokens, Unpriced, UsageReport};

use crate::clock;
use crate::csv;
use crate::output::{Colour, TextStyle, counted, dollars, grouped, harmless_json, harmless_line};
use crate::store::SessionLabels;
use crate::table::{self, Align};
use crate::terminal;

use super::Grouping;

/// The label of calls that lack the grouping property.
fn unnamed(by: By) -> &'static str {
    match by {
        By::Day | By::Week | By::Month | By::HourBlock => "(no time)",
        By::Session | By::Project | By::Model | By::Agent | By::Branch => "(unknown)",
        By::Tool => "(no tool)",
        By::Subagent => "(main)",
    }
}

/// The cost of a group for people. A model without a price is never free.
fn cost(group: &Group) -> String {
    match (group.cost.priced, group.cost.unpriced, group.cost.money) {
        (_, 0, Some(money)) => dollars(money),
        (0, 0, _) => String::new(),
        (0, _, _) => "no price".to_owned(),
        (_, 0, None) => "too much".to_owned(),
        (_, _, Some(money)) => format!("{} +?", dollars(money)),
        (_, _, None) => "too much +?".to_owned(),
    }
}

/// The table with its total. On a terminal, each group has a bar for its share.
pub fn table(
    report: &UsageReport,
    grouping: Grouping,
    labels: &SessionLabels,
    width: usize,
    colour: Colour,
) -> Vec<String> {
    let mut lines = match width {
        usize::MAX => complete_table(report, grouping),
        width => {
            let is_wide = width >= WIDE;
            let wide = is_wide.then(|| terminal_table(report, grouping, labels, width, TerminalColumns::All)).flatten();
            let narrow = || terminal_table(report, grouping, labels, width, TerminalColumns::Sums);
            wide.or_else(narrow).unwrap_or_else(|| complete_table(report, grouping))
        }
    };
    if let Some(first) = lines.first_mut() {
        *first = colour.paint(TextStyle::Faint, first);
    }
    if let Some(last) = lines.last_mut() {
        *last = colour.paint(TextStyle::Strong, last);
    }
    // The first screen has the total.
    if terminal::height().is_some_and(|height| lines.len() >= height)
        && let Some(total) = lines.pop()
    {
        lines.insert(1, total);
    }
    lines
}

fn heading(by: By) -> String {
    by.name().replace('-', " ").to_uppercase()
}

/// The names of a group, for people: those of its first and of its second grouping.
fn names(group: &Group, Grouping { by, then_by }: Grouping) -> [String; 2] {
    let name = |key: &Option<String>, by: By| harmless_line(key.as_deref().unwrap_or(unnamed(by)));
    [name(&group.key, by), then_by.map(|by| name(&group.then_key, by)).unwrap_or_default()]
}

/// Names of groups in which a session that the index knows has the short id and the title of `steno list`.
fn labelled([name, second]: [String; 2], Grouping { by, then_by }: Grouping, labels: &SessionLabels) -> [String; 2] {
    let label = |name: String, by: Option<By>| match labels.get(&name).filter(|_| by == Some(By::Session)) {
        Some(label) => harmless_line(&format!("{} {}", label.short, label.title)),
        None => name,
    };
    [label(name, Some(by)), label(second, then_by)]
}

/// The stated cost of a group, and how it differs from ours.
fn stated(group: &Group) -> String {
    match (group.stated, group.difference()) {
        (Some(stated), Some(difference)) => format!("{} ({})", dollars(stated), signed(difference)),
        (Some(stated), None) => dollars(stated),
        (None, _) => String::new(),
    }
}

/// Every column, for files and programs.
fn complete_table(report: &UsageReport, grouping: Grouping) -> Vec<String> {
    let has_models = grouping.by != By::Model && grouping.then_by != Some(By::Model);
    let cells = |group: &Group, [name, second]: [String; 2]| {
        let Tokens { input, output, cache_write, cache_read, .. } = group.tokens;
        let [calls, input, output, write, read] = [group.calls, input, output, cache_write, cache_read].map(grouped);
        let models = match has_models {
            true => harmless_line(&group.models.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
            false => String::new(),
        };
        [name, second, calls, input, output, write, read, cost(group), stated(group), models]
    };
    let mut rows: Vec<[String; 10]> = report.groups.iter().map(|group| cells(group, names(group, grouping))).collect();
    let mut total = report.total.clone();
    total.models.clear();
    rows.push(cells(&total, ["total".to_owned(), String::new()]));
    let (first, second) = (heading(grouping.by), grouping.then_by.map(heading));
    let headings = [
        ("CALLS", Align::Right),
        ("INPUT", Align::Right),
        ("OUTPUT", Align::Right),
        ("CACHE WRITE", Align::Right),
        ("CACHE READ", Align::Right),
        ("COST", Align::Right),
        (if report.total.stated.is_some() { "STATED" } else { "" }, Align::Right),
        (if has_models { "MODELS" } else { "" }, Align::Left),
    ];
    let [calls, input, output, write, read, cost, stated, models] = headings;
    let first = (first.as_str(), Align::Left);
    match &second {
        Some(second) => {
            let second = (second.as_str(), Align::Left);
            let headings = [first, second, calls, input, output, write, read, cost, stated, models];
            table::lines(headings, &rows, usize::MAX)
        }
        None => {
            let headings = [first, calls, input, output, write, read, cost, stated, models];
            let one_name = |[name, _, calls, input, output, write, read, cost, stated, models]: [String; 10]| {
                [name, calls, input, output, write, read, cost, stated, models]
            };
            table::lines(headings, &rows.into_iter().map(one_name).collect::<Vec<_>>(), usize::MAX)
        }
    }
}

/// On a narrower terminal, one column has all tokens.
const WIDE: usize = 110;

/// The maximum widths of a name, and of a bar.
const NAME_WIDTH_MAX: usize = 28;
const NAMES_WIDTH_MAX: usize = 18;
const BAR_WIDTH_MAX: usize = 40;

/// Which columns a terminal shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TerminalColumns {
    /// All counters.
    All,
    /// The sum of all tokens.
    Sums,
}

/// The columns that fit a terminal, and bars; `None` if they do not fit.
fn terminal_table(
    report: &UsageReport,
    grouping: Grouping,
    labels: &SessionLabels,
    width: usize,
    columns: TerminalColumns,
) -> Option<Vec<String>> {
    let is_wide = columns == TerminalColumns::All;
    let name_width = if grouping.then_by.is_some() && !is_wide { NAMES_WIDTH_MAX } else { NAME_WIDTH_MAX };
    let cells = |group: &Group, [name, second]: [String; 2]| -> Vec<String> {
        let Tokens { input, output, cache_write, cache_read, .. } = group.tokens;
        let mut cells = vec![table::truncated(&name, name_width)];
        cells.extend(grouping.then_by.map(|_| table::truncated(&second, name_width)));
        cells.push(grouped(group.calls));
        match is_wide {
            true => cells.extend([input, output, cache_write, cache_read].map(grouped)),
            false => cells.push(grouped(group.tokens.total())),
        }
        cells.push(cost(group));
        if report.total.stated.is_some() && is_wide {
            cells.push(stated(group));
        }
        cells
    };
    let mut headings: Vec<String> = std::iter::once(grouping.by).chain(grouping.then_by).map(heading).collect();
    let name_count = headings.len();
    let numbers = ["CALLS", "INPUT", "OUTPUT", "CACHE WRITE", "CACHE READ", "COST", "STATED"];
    let numbers = if is_wide { numbers.to_vec() } else { vec!["CALLS", "TOKENS", "COST"] };
    headings.extend(numbers.into_iter().map(str::to_owned));
    let mut rows = vec![headings];
    let groups = for_people(&report.groups, grouping.by);
    rows.extend(groups.iter().map(|group| cells(group, labelled(names(group, grouping), grouping, labels))));
    rows.push(cells(&report.total, ["total".to_owned(), String::new()]));
    let columns = rows.iter().skip(1).map(Vec::len).max().unwrap_or(0);
    let width_of =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| table::display_width(cell)).max();
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
    let taken: usize = widths.iter().map(|width| width + 2).sum();
    // The last column needs no gap.
    if taken.saturating_sub(2) > width {
        return None;
    }
    let bars = bars(&groups, width.saturating_sub(taken).min(BAR_WIDTH_MAX));
    let line = |(at, row): (usize, &Vec<String>)| {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width.saturating_sub(table::display_width(cell)));
            line += &if column < name_count { format!("{cell}{gap}  ") } else { format!("{gap}{cell}  ") };
        }
        // The first row is the heading.
        line += at.checked_sub(1).and_then(|at| bars.get(at)).map(String::as_str).unwrap_or_default();
        line.trim_end().to_owned()
    };
    Some(rows.iter().enumerate().map(line).collect())
}

/// The groups in the order in which people read them: times begin with the newest, and calls without a time come last.
fn for_people(groups: &[Group], by: By) -> Vec<&Group> {
    let mut groups: Vec<&Group> = groups.iter().collect();
    match by {
        By::Day | By::Week | By::Month | By::HourBlock => {
            // A stable sort keeps the order within a time.
            groups.sort_by(|one, other| other.key.cmp(&one.key));
            groups
        }
        By::Session | By::Project | By::Model | By::Agent | By::Branch | By::Tool | By::Subagent => groups,
    }
}

/// A bar for each group: its cost, or its tokens if nothing has a price.
fn bars(groups: &[&Group], width: usize) -> Vec<String> {
    let money = |group: &Group| group.cost.money.and_then(|money| money.rounded(6).parse::<f64>().ok()).unwrap_or(0.0);
    let has_costs = groups.iter().any(|group| money(group) > 0.0);
    let value = |group: &Group| if has_costs { money(group) } else { group.tokens.total() as f64 };
    let most = groups.iter().map(|group| value(group)).fold(0.0, f64::max);
    groups.iter().map(|group| bar(value(group) / most, width)).collect()
}

/// A bar that is a part of the width, in eighths of a column.
fn bar(part: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
    if !part.is_finite() || part <= 0.0 || width == 0 {
        return String::new();
    }
    let eighths = ((part.min(1.0) * width as f64 * 8.0).round() as usize).max(1);
    format!("{}{}", "\u{2588}".repeat(eighths / 8), EIGHTHS.get(eighths % 8).copied().unwrap_or_default())
}

fn signed(money: Money) -> String {
    let sign = if money.is_negative() { "" } else { "+" };
    format!("{sign}{}", dollars(money))
}

/// The models without a price, as a sentence.
pub fn unpriced(unpriced: &Unpriced) -> String {
    let mut model = unpriced.model.as_deref().map_or("calls without a model name".to_owned(), harmless_line);
    if unpriced.service_tier != ServiceTier::Standard {
        let _ = write!(model, " ({})", unpriced.service_tier.name());
    }
    let tokens = unpriced.tokens.total();
    let what = match unpriced.missing.as_slice() {
        [] => "no price".to_owned(),
        missing => {
            let names: Vec<&str> = missing.iter().map(|counter| counter.name()).collect();
            format!("no price for {}", names.join(", "))
        }
    };
    format!("{model}: {what}; {}, {} tokens", counted(unpriced.calls, "call"), grouped(tokens))
}

/// One JSON object; `more` fields follow at its end.
pub fn json(
    report: &UsageReport,
    ledger: &Ledger,
    grouping: Grouping,
    prices: &Prices,
    explain: bool,
    fields: &[(&str, String)],
) -> String {
    let Grouping { by, then_by } = grouping;
    let mut draft = Draft::new().with("by", by.name());
    draft.set_opt("then_by", then_by.map(By::name));
    draft.set_list("rows", report.groups.iter().map(|group| group_json(group, Some(grouping))));
    draft.set("total", group_json(&report.total, None));
    draft.set_list("unpriced", report.unpriced.iter().map(unpriced_json));
    let list = Draft::new().with("date", prices.date()).with("source", prices.source());
    draft.nest("prices", list.with("digest", prices.digest()));
    if explain {
        draft.set_list("decisions", super::explain::json(ledger));
    }
    for (name, value) in fields {
        draft.set(*name, value.as_str());
    }
    harmless_json(&draft.render(None)).into_owned()
}

/// What was not counted, as fields.
pub fn not_counted(
    [odd_counts, oversize_records]: [u64; 2],
    not_counted: &super::NotCounted,
) -> Vec<(&'static str, String)> {
    let unread = not_counted.unread.iter();
    let unread: Vec<String> = unread
        .map(|warning| {
            Draft::new().with("file", warning.path.to_string_lossy()).with("says", &warning.text).render(None)
        })
        .collect();
    vec![
        ("odd_counts", odd_counts.to_string()),
        ("oversize_records", oversize_records.to_string()),
        ("forgotten", not_counted.forgotten.to_string()),
        ("unknown_files", not_counted.strangers.count.to_string()),
        ("unread", format!("[{}]", unread.join(","))),
    ]
}

fn group_json(group: &Group, grouping: Option<Grouping>) -> String {
    let mut draft = Draft::new();
    if let Some(Grouping { by, then_by }) = grouping {
        draft = draft.with("key", &group.key).with(by.name(), &group.key);
        if let Some(by) = then_by {
            draft = draft.with(by.name(), &group.then_key);
        }
    }
    let Tokens { input, output, cache_read, cache_write, cache_write_hour, reasoning, searches, fetches } =
        group.tokens;
    let money = |money: Option<Money>| money.map_or("null".to_owned(), |money| money.to_string());
    draft
        .with("calls", group.calls)
        .with("input", input)
        .with("output", output)
        .with("cache_write", cache_write)
        .with("cache_write_hour", cache_write_hour)
        .with("cache_read", cache_read)
        .with("reasoning", reasoning)
        .with("searches", searches)
        .with("fetches", fetches)
        .with_json("cost", money(group.cost.money))
        .with("unpriced_calls", group.cost.unpriced)
        .with_json("stated_cost", money(group.stated))
        .with_json("compared_cost", money(group.compared))
        .with_json("difference", money(group.difference()))
        .with("models", &group.models)
        .with("agents", &group.agents)
        .with("first", clock::iso(group.first))
        .with("last", clock::iso(group.last))
        .render(None)
}

fn unpriced_json(unpriced: &Unpriced) -> String {
    let missing: Vec<&str> = unpriced.missing.iter().map(|counter| counter.name()).collect();
    let Tokens { input, output, cache_read, cache_write, .. } = unpriced.tokens;
    Draft::new()
        .with("model", &unpriced.model)
        .with("service_tier", unpriced.service_tier.name())
        .with("missing", missing)
        .with("calls", unpriced.calls)
        .with("input", input)
        .with("output", output)
        .with("cache_write", cache_write)
        .with("cache_read", cache_read)
        .render(None)
}

/// The rows as CSV, without the total.
pub fn rows(report: &UsageReport, Grouping { by, then_by }: Grouping) -> Vec<String> {
    let names: Vec<&str> = std::iter::once(by).chain(then_by).map(By::name).collect();
    let mut lines = vec![format!(
        "{},calls,input,output,cache_write,cache_write_hour,cache_read,reasoning,searches,fetches,cost,unpriced_calls,stated_cost,models",
        names.join(",")
    )];
    for group in &report.groups {
        let counters = group.tokens;
        let money = |money: Option<Money>| money.map(|money| money.to_string()).unwrap_or_default();
        let models = group.models.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let keys = std::iter::once(&group.key).chain(then_by.map(|_| &group.then_key));
        let numbers = [
            group.calls.to_string(),
            counters.input.to_string(),
            counters.output.to_string(),
            counters.cache_write.to_string(),
            counters.cache_write_hour.to_string(),
            counters.cache_read.to_string(),
            counters.reasoning.to_string(),
            counters.searches.to_string(),
            counters.fetches.to_string(),
            money(group.cost.money),
            group.cost.unpriced.to_string(),
            money(group.stated),
            models,
        ];
        lines.push(csv::line(keys.map(|key| key.clone().unwrap_or_default()).chain(numbers)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_the_newest_day_first_and_calls_without_a_time_last() {
        let mut groups = vec![Group::default(); 3];
        for (group, key) in groups.iter_mut().zip([None, Some("2025-11-02"), Some("2026-01-01")]) {
            group.key = key.map(str::to_owned);
        }
        let keys = |by| for_people(&groups, by).iter().map(|group| group.key.as_deref()).collect::<Vec<_>>();
        assert_eq!(keys(By::Day), [Some("2026-01-01"), Some("2025-11-02"), None]);
        assert_eq!(keys(By::Model), [None, Some("2025-11-02"), Some("2026-01-01")]);
    }
}
