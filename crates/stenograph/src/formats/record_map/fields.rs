//! The fields of a record and its usage, from the record to an event and back.

use std::borrow::Cow;

use super::{InputHas, OutputHas, RecordField, UsageMap};
use crate::json::{Draft, Object, number};
use crate::model::{Dollars, Event, ExtraFields, ForkOrigin, Held, Usage};
use crate::text::{Str, Text};
use crate::time::{Time, TimeUnit};

/// Takes the value at a path, if `read` understands it.
pub fn take_at<'a, T>(object: &mut Object<'a>, path: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
    if path.is_empty() {
        return None;
    }
    let Some((key, below)) = path.split_once('.') else { return object.take_as(path, read) };
    // An object that has nothing of interest keeps its spelling.
    if !object.is_open(key) && crate::json::value_at(object.peek(key)?, below).is_none() {
        return None;
    }
    let mut inner = object.open(key)?;
    let found = take_at(&mut inner, below, read);
    object.close(key, inner);
    found
}

/// The raw value at a path, without taking it.
pub fn peek_at<'a>(object: &Object<'a>, path: &str) -> Option<Cow<'a, str>> {
    let Some((key, below)) = path.split_once('.') else { return object.peek(path).map(Cow::Borrowed) };
    if object.is_open(key) {
        let mut copy = object.clone();
        return peek_at(&copy.open(key)?, below);
    }
    crate::json::value_at(object.peek(key)?, below).map(Cow::Borrowed)
}

fn name(raw: &str) -> Option<Str<'_>> {
    Text::from_json(raw)?.exact().filter(|text| !text.is_empty())
}

/// Marks a time without a UTC offset, so that it returns without one.
const NAIVE: char = 'z';

fn time(raw: &str) -> Option<Time<'_>> {
    let text = Text::from_json(raw)?.exact()?;
    let naive = format!("{text}{NAIVE}");
    Time::iso(text).or_else(|| Time::iso(Cow::Owned(naive)))
}

/// Takes the fields of a record into the envelope of its events.
pub fn take_fields<'a>(fields: &[(RecordField, &str)], object: &mut Object<'a>, event: &mut Event<'a>) {
    for (field, path) in fields {
        let mut word = || take_at(object, path, name);
        match field {
            RecordField::Id => event.id = word(),
            RecordField::IdNumber => event.id = take_at(object, path, |raw| number(raw).map(|_| Cow::Borrowed(raw))),
            RecordField::Parent => event.parent = word(),
            RecordField::Group => event.group = word(),
            RecordField::RequestId => event.request_id = word(),
            RecordField::Session => event.session = word(),
            RecordField::Thread => event.thread = word(),
            RecordField::OuterSession => {
                if let Some(outer) = word() {
                    event.thread = event.session.replace(outer);
                }
            }
            RecordField::ForkSession => {
                event.forked_from = word().map(|session| Box::new(ForkOrigin { session, record: None }));
            }
            RecordField::ForkRecord => {
                if let Some(fork) = &mut event.forked_from {
                    fork.record = word();
                }
            }
            RecordField::From => event.from = word(),
            RecordField::Model => event.model = word(),
            RecordField::ModelKey => event.model = peek_at(object, path).and_then(|raw| only_key(&raw)),
            RecordField::Cwd => event.cwd = word(),
            RecordField::Branch => event.branch = word(),
            RecordField::Version => event.version = word(),
            RecordField::StopReason => event.stop_reason = word(),
            // Only a result has this time.
            RecordField::ResultMillis => {}
            RecordField::Restates => event.restates = peek_at(object, path).as_deref() == Some("true"),
            RecordField::Time => event.time = take_at(object, path, time),
            RecordField::Millis => event.time = take_number_time(object, path, TimeUnit::Millis),
            RecordField::Seconds => event.time = take_number_time(object, path, TimeUnit::Seconds),
        }
    }
}

/// The time of a result that has one of its own.
pub fn result_time(fields: &[(RecordField, &str)], object: &Object<'_>) -> Option<Time<'static>> {
    let (_, path) = fields.iter().find(|(field, _)| *field == RecordField::ResultMillis)?;
    Time::number(Cow::Owned(peek_at(object, path)?.into_owned()), TimeUnit::Millis)
}

fn only_key(raw: &str) -> Option<Str<'static>> {
    let object = Object::parse(raw)?;
    let mut keys = object.keys();
    keys.next().filter(|_| keys.next().is_none()).map(|key| Cow::Owned(key.to_owned()))
}

fn take_number_time<'a>(object: &mut Object<'a>, path: &str, unit: TimeUnit) -> Option<Time<'a>> {
    take_at(object, path, |raw| Time::number(Cow::Borrowed(raw), unit))
}

/// Writes the fields of a record.
pub fn put_fields(
    fields: &[(RecordField, &'static str)],
    event: &Event<'_>,
    extra: &ExtraFields<'_>,
    out: &mut Values,
) {
    let fork = event.forked_from.as_ref();
    let is_nested = fields.iter().any(|(field, path)| *field == RecordField::OuterSession && is_taken(extra, path));
    for (field, path) in fields {
        let word = match field {
            RecordField::Id => &event.id,
            RecordField::Parent if event.parent.is_none() && is_taken(extra, path) => {
                out.put(path, "null".to_owned());
                continue;
            }
            RecordField::Parent => &event.parent,
            RecordField::Group => &event.group,
            RecordField::RequestId => &event.request_id,
            RecordField::Session if is_nested => &event.thread,
            RecordField::OuterSession if !is_nested => continue,
            RecordField::Session | RecordField::OuterSession => &event.session,
            RecordField::Thread => &event.thread,
            RecordField::ForkSession => {
                out.put_opt(path, fork.map(|fork| crate::text::quote(&fork.session)));
                continue;
            }
            RecordField::ForkRecord => {
                out.put_opt(path, fork.and_then(|fork| fork.record.as_deref()).map(crate::text::quote));
                continue;
            }
            RecordField::From => &event.from,
            RecordField::Model => &event.model,
            RecordField::Cwd => &event.cwd,
            RecordField::Branch => &event.branch,
            RecordField::Version => &event.version,
            RecordField::StopReason => &event.stop_reason,
            RecordField::Restates | RecordField::ModelKey | RecordField::ResultMillis => continue,
            RecordField::IdNumber => {
                let spelled = |id: &Str<'_>| if number(id).is_some() { id.to_string() } else { crate::text::quote(id) };
                out.put_opt(path, event.id.as_ref().map(spelled));
                continue;
            }
            RecordField::Time => {
                let text = event.time.as_ref().and_then(Time::to_iso);
                out.put_opt(path, text.map(|text| crate::text::quote(text.trim_end_matches(NAIVE))));
                continue;
            }
            RecordField::Millis => {
                let digits = event.time.as_ref().and_then(|time| match time.unit {
                    TimeUnit::Millis => Some(time.text.to_string()),
                    TimeUnit::Iso | TimeUnit::Seconds => Some(time.to_millis()?.to_string()),
                });
                out.put_opt(path, digits);
                continue;
            }
            RecordField::Seconds => {
                out.put_opt(path, event.time.as_ref().map(Time::seconds_json));
                continue;
            }
        };
        out.put_opt(path, word.as_deref().map(crate::text::quote));
    }
}

fn counters(map: &UsageMap) -> [&'static [&'static str]; 5] {
    [map.input, map.output, map.cache_read, map.cache_write, map.reasoning]
}

/// Takes the usage. If the counters contradict each other, they stay.
pub fn take_usage(map: &UsageMap, object: &mut Object<'_>) -> Option<Usage> {
    let stated = |paths: &[&'static str]| {
        paths.iter().find_map(|path| peek_at(object, path).as_deref().and_then(number).map(|count| (*path, count)))
    };
    let found = counters(map).map(stated);
    let [input, output, cache_read, cache_write, reasoning] = found.map(|found| found.map(|(_, count)| count));
    let input = match map.input_has {
        InputHas::NoCache => input,
        InputHas::Cache => {
            let cached = cache_read.unwrap_or(0).checked_add(cache_write.unwrap_or(0));
            match (input, cached) {
                (Some(all), Some(cached)) => Some(all.checked_sub(cached)?),
                (Some(_), None) => return None,
                (None, _) => None,
            }
        }
    };
    let output = match map.output_has {
        OutputHas::Thinking => output,
        OutputHas::NoThinking => match output {
            Some(output) => Some(output.checked_add(reasoning.unwrap_or(0))?),
            None => None,
        },
    };
    for (path, _) in found.into_iter().flatten() {
        take_at(object, path, Some);
    }
    let cost = map.cost.iter().find_map(|path| take_at(object, path, Dollars::spelled));
    Usage { input, output, cache_read, cache_write, reasoning, cost, ..Usage::default() }.stated()
}

/// Writes the usage to the fields it was taken from.
pub fn put_usage(map: &UsageMap, event: &Event<'_>, extra: &ExtraFields<'_>, out: &mut Values) {
    let Some(usage) = &event.usage else { return };
    let all = |input: u64| {
        let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
        input.saturating_add(cached)
    };
    let input = match map.input_has {
        InputHas::NoCache => usage.input,
        InputHas::Cache => usage.input.map(all),
    };
    let output = match map.output_has {
        OutputHas::Thinking => usage.output,
        OutputHas::NoThinking => usage.output.map(|output| output.saturating_sub(usage.reasoning.unwrap_or(0))),
    };
    let counts = [input, output, usage.cache_read, usage.cache_write, usage.reasoning];
    let spelled = counts.map(|count| count.map(|count| count.to_string()));
    let cost = usage.cost.map(|cost| cost.to_string());
    for (paths, value) in counters(map).into_iter().zip(spelled).chain([(map.cost, cost)]) {
        let taken = paths.iter().find(|path| is_taken(extra, path)).or(paths.first());
        if let (Some(path), Some(value)) = (taken, value) {
            out.put(path, value);
        }
    }
}

/// Whether a reader took the value at a path.
pub fn is_taken(extra: &ExtraFields<'_>, path: &str) -> bool {
    match path.split_once('.') {
        None => extra.held(path) == Some(&Held::Hole),
        Some((key, below)) => extra.object(key).is_some_and(|inner| is_taken(inner, below)),
    }
}

/// The values of a record by their paths.
#[derive(Debug, Default)]
pub struct Values(Vec<(&'static str, String)>);

impl Values {
    /// Adds a JSON value.
    pub fn put(&mut self, path: &'static str, json: String) {
        // An empty path means that the record has no such field.
        if !path.is_empty() {
            self.0.push((path, json));
        }
    }

    /// Adds a JSON value if there is one.
    pub fn put_opt(&mut self, path: &'static str, json: Option<String>) {
        if let Some(json) = json {
            self.put(path, json);
        }
    }

    /// The record: these values, merged with its extra fields.
    pub fn render(self, extra: &ExtraFields<'_>) -> String {
        let fields: Vec<(&str, String)> = self.0.into_iter().collect();
        draft(&fields).render(Some(extra))
    }
}

fn draft<'d>(fields: &[(&'d str, String)]) -> Draft<'d> {
    let mut draft = Draft::new();
    let mut done: Vec<&str> = Vec::new();
    for (path, json) in fields {
        match path.split_once('.') {
            None => draft.set(*path, json.clone()),
            Some((key, _)) if done.contains(&key) => {}
            Some((key, _)) => {
                done.push(key);
                let below = |(path, json): &(&'d str, String)| {
                    let (of, below) = path.split_once('.')?;
                    (of == key).then(|| (below, json.clone()))
                };
                let inner: Vec<(&str, String)> = fields.iter().filter_map(below).collect();
                draft.nest(key, self::draft(&inner));
            }
        }
    }
    draft
}
