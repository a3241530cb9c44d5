//! Formats sums of the ledger: as a table, as JSON, as CSV.

use std::fmt::Write as _;

use stenograph::ledger::{By, Group, Ledger, Money, Prices, ServiceTier, Tokens, Unpriced, UsageReport};
use stenograph::text::quote;

use crate::clock;
use crate::csv;
use crate::output::{Colour, TextStyle, counted, grouped, harmless_json, harmless_line};
use crate::table::{self, Align};

/// The label of calls that lack the grouping property.
fn unnamed(by: By) -> &'static str {
    match by {
        By::Day | By::Week | By::Month | By::HourBlock => "(no time)",
        By::Session | By::Project | By::Model | By::Agent | By::Branch => "(unknown)",
        By::Tool => "(no tool)",
        By::Subagent => "(main)",
    }
}

fn dollars(money: Money) -> String {
    format!("${}", money.rounded(2))
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

/// The table with its total.
pub fn table(report: &UsageReport, by: By, colour: Colour) -> Vec<String> {
    let has_stated = report.total.stated.is_some();
    let cells = |group: &Group, name: String| {
        let Tokens { input, output, cache_write, cache_read, .. } = group.tokens;
        let [calls, input, output, write, read] = [group.calls, input, output, cache_write, cache_read].map(grouped);
        let models = match by {
            By::Model => String::new(),
            _ => harmless_line(&group.models.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
        };
        let stated = match (has_stated, group.stated, group.difference()) {
            (_, Some(stated), Some(difference)) => format!("{} ({})", dollars(stated), signed(difference)),
            (_, Some(stated), None) => dollars(stated),
            _ => String::new(),
        };
        [name, calls, input, output, write, read, cost(group), stated, models]
    };
    let named = |group: &Group| harmless_line(group.key.as_deref().unwrap_or(unnamed(by)));
    let mut rows: Vec<[String; 9]> = report.groups.iter().map(|group| cells(group, named(group))).collect();
    let mut total = report.total.clone();
    total.models.clear();
    rows.push(cells(&total, "total".to_owned()));
    let heading = by.name().replace('-', " ").to_uppercase();
    let headings = [
        (heading.as_str(), Align::Left),
        ("CALLS", Align::Right),
        ("INPUT", Align::Right),
        ("OUTPUT", Align::Right),
        ("CACHE WRITE", Align::Right),
        ("CACHE READ", Align::Right),
        ("COST", Align::Right),
        (if has_stated { "STATED" } else { "" }, Align::Right),
        (if by == By::Model { "" } else { "MODELS" }, Align::Left),
    ];
    let mut lines = table::lines(headings, &rows, table::screen_width());
    if let Some(first) = lines.first_mut() {
        *first = colour.paint(TextStyle::Faint, first);
    }
    if let Some(last) = lines.last_mut() {
        *last = colour.paint(TextStyle::Strong, last);
    }
    lines
}

fn signed(money: Money) -> String {
    let sign = if money.is_negative() { "" } else { "+" };
    format!("{sign}{}", money.rounded(2))
}

/// The models without a price, as a sentence.
pub fn unpriced(unpriced: &Unpriced) -> String {
    let mut model = unpriced.model.as_deref().map_or("calls without a model name".to_owned(), harmless_line);
    if unpriced.service_tier != ServiceTier::Standard {
        let _ = write!(model, " ({})", unpriced.service_tier.name());
    }
    let tokens = unpriced.tokens.counters().into_iter().take(4).fold(0, u64::saturating_add);
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
    by: By,
    prices: &Prices,
    explain: bool,
    fields: &[(&str, String)],
) -> String {
    let rows: Vec<String> = report.groups.iter().map(|group| group_json(group, Some(by))).collect();
    let unpriced: Vec<String> = report.unpriced.iter().map(unpriced_json).collect();
    let mut json = format!(
        "{{\"by\":\"{}\",\"rows\":[{}],\"total\":{},\"unpriced\":[{}],\"prices\":{{\"date\":{},\"source\":{},\"digest\":{}}}",
        by.name(),
        rows.join(","),
        group_json(&report.total, None),
        unpriced.join(","),
        quote(prices.date()),
        quote(prices.source()),
        quote(prices.digest()),
    );
    if explain {
        let _ = write!(json, ",\"decisions\":[{}]", super::explain::json(ledger).join(","));
    }
    for (name, value) in fields {
        let _ = write!(json, ",\"{name}\":{value}");
    }
    json.push('}');
    harmless_json(&json).into_owned()
}

/// What was not counted, as fields.
pub fn not_counted(
    [odd_counts, oversize_records]: [u64; 2],
    not_counted: &super::NotCounted,
) -> Vec<(&'static str, String)> {
    let unread: Vec<String> = not_counted
        .unread
        .iter()
        .map(|warning| {
            format!("{{\"file\":{},\"says\":{}}}", quote(&warning.path.to_string_lossy()), quote(&warning.text))
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

fn group_json(group: &Group, by: Option<By>) -> String {
    let mut json = String::from("{");
    if let Some(by) = by {
        let key = group.key.as_deref().map_or("null".to_owned(), quote);
        let _ = write!(json, "\"key\":{key},\"{}\":{key},", by.name());
    }
    let Tokens { input, output, cache_read, cache_write, cache_write_hour, reasoning, searches, fetches } =
        group.tokens;
    let money = |money: Option<Money>| money.map_or("null".to_owned(), |money| money.to_string());
    let list =
        |names: &std::collections::BTreeSet<String>| names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(",");
    let time = |time: Option<i64>| clock::iso(time).map_or("null".to_owned(), |time| quote(&time));
    let _ = write!(
        json,
        "\"calls\":{},\"input\":{input},\"output\":{output},\"cache_write\":{cache_write},\
         \"cache_write_hour\":{cache_write_hour},\"cache_read\":{cache_read},\"reasoning\":{reasoning},\
         \"searches\":{searches},\"fetches\":{fetches},\"cost\":{},\"unpriced_calls\":{},\"stated_cost\":{},\
         \"compared_cost\":{},\"difference\":{},\"models\":[{}],\"agents\":[{}],\"first\":{},\"last\":{}}}",
        group.calls,
        money(group.cost.money),
        group.cost.unpriced,
        money(group.stated),
        money(group.compared),
        money(group.difference()),
        list(&group.models),
        list(&group.agents),
        time(group.first),
        time(group.last),
    );
    json
}

fn unpriced_json(unpriced: &Unpriced) -> String {
    let missing: Vec<String> = unpriced.missing.iter().map(|counter| quote(counter.name())).collect();
    let Tokens { input, output, cache_read, cache_write, .. } = unpriced.tokens;
    format!(
        "{{\"model\":{},\"pace\":\"{}\",\"missing\":[{}],\"calls\":{},\"input\":{input},\"output\":{output},\
         \"cache_write\":{cache_write},\"cache_read\":{cache_read}}}",
        unpriced.model.as_deref().map_or("null".to_owned(), quote),
        unpriced.service_tier.name(),
        missing.join(","),
        unpriced.calls,
    )
}

/// The rows as CSV, without the total.
pub fn rows(report: &UsageReport, by: By) -> Vec<String> {
    let mut lines = vec![format!(
        "{},calls,input,output,cache_write,cache_write_hour,cache_read,reasoning,searches,fetches,cost,unpriced_calls,stated_cost,models",
        by.name()
    )];
    for group in &report.groups {
        let counters = group.tokens;
        let money = |money: Option<Money>| money.map(|money| money.to_string()).unwrap_or_default();
        let models = group.models.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let cells = [
            group.key.clone().unwrap_or_default(),
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
        lines.push(csv::line(cells));
    }
    lines
}
