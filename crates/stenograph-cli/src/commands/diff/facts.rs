//! The facts of both runs. A differing fact does not make two runs different: they may be copies in two formats.

use stenograph::compare::{Class, DiffStep};
use stenograph::json::Draft;
use stenograph::model::Outline;
use stenograph::text::quote;
use stenograph::time::Time;

use super::ComparedRun;
use crate::clock;
use crate::commands::replay::header;
use crate::output::{grouped, stated_dollars};

/// One fact of both runs.
pub struct DiffFact {
    pub name: &'static str,
    pub a: Option<String>,
    pub b: Option<String>,
}

impl DiffFact {
    /// Whether both state it differently.
    pub fn differs(&self) -> bool {
        matches!((&self.a, &self.b), (Some(a), Some(b)) if a != b)
    }

    pub fn json(&self) -> String {
        let mut draft = Draft::new();
        draft.set("fact", quote(self.name));
        let value = |text: &Option<String>| text.as_deref().map_or_else(|| "null".to_owned(), quote);
        draft.set("a", value(&self.a));
        draft.set("b", value(&self.b));
        draft.set("differs", self.differs().to_string());
        draft.render(None)
    }
}

/// The facts that at least one of the runs states, with times as `time` formats them.
pub fn of([a, b]: [(&ComparedRun, &[DiffStep]); 2], time: fn(&Time<'_>) -> Option<String>) -> Vec<DiffFact> {
    let both = |name: &'static str, fact_of: &dyn Fn(&Outline, &[DiffStep]) -> Option<String>| DiffFact {
        name,
        a: fact_of(&a.0.outline, a.1),
        b: fact_of(&b.0.outline, b.1),
    };
    let stated = |name, fact_of: &dyn Fn(&ComparedRun) -> String| DiffFact {
        name,
        a: Some(fact_of(a.0)),
        b: Some(fact_of(b.0)),
    };
    let mut facts = vec![
        stated("format", &|run| run.format.to_owned()),
        both("session", &|outline, _| outline.session.clone()),
        both("title", &|outline, _| outline.header.title.clone()),
        both("model", &|outline, _| outline.header.model.clone()),
        both("version", &|outline, _| outline.header.version.clone()),
        both("folder", &|outline, _| outline.header.cwd.clone()),
        both("branch", &|outline, _| outline.header.branch.clone()),
        both("started", &|outline, _| time(outline.started.as_ref()?)),
        both("ended", &|outline, _| time(outline.ended.as_ref()?)),
        both("duration", &|outline, _| {
            let moment = |time: &Option<Time<'static>>| Some(time.as_ref()?.instant()?.as_millisecond());
            let ms = moment(&outline.ended)?.saturating_sub(moment(&outline.started)?);
            Some(clock::format_duration(u64::try_from(ms).ok()?))
        }),
        stated("turns", &|run| grouped(run.turns)),
        both("steps", &|_, steps| Some(grouped(steps.len() as u64))),
    ];
    for (name, class) in [("user messages", Class::User), ("calls", Class::Call)] {
        facts.push(both(name, &|_, steps| {
            Some(grouped(steps.iter().filter(|step| step.class == class).count() as u64))
        }));
    }
    facts.push(both("tokens", &|outline, _| Some(header::tokens(&outline.total)).filter(|text| !text.is_empty())));
    facts.push(both("cost", &|outline, _| outline.total.cost.and_then(|cost| stated_dollars(cost.value()))));
    facts.push(both("end", &|outline, _| header::ended(outline)));
    facts.retain(|fact| fact.a.is_some() || fact.b.is_some());
    facts
}
