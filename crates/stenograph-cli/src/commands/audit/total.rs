//! The totals of several sessions.

use stenograph::audit::FileOutcome;
use stenograph::json::Draft;
use stenograph::ledger::Money;
use stenograph_store::sessions::SessionCost;

use super::read::Audited;
use crate::output::{counted, grouped};

#[derive(Debug, Default)]
pub struct AuditTotal {
    pub sessions: u64,
    calls: u64,
    failed: u64,
    denied: u64,
    created: u64,
    changed: u64,
    deleted: u64,
    commands: u64,
    failures: u64,
    /// What the sessions took; `None` if that is not reported.
    took: Option<SessionCost>,
}

impl AuditTotal {
    pub fn add(&mut self, audited: &Audited) {
        let audit = &audited.audit;
        let files = |change: FileOutcome| audit.files.items.iter().filter(|file| file.change == change).count() as u64;
        self.sessions += 1;
        self.calls += audit.tools.iter().map(|tool| tool.calls).sum::<u64>();
        self.failed += audit.tools.iter().map(|tool| tool.failed).sum::<u64>();
        self.denied += audit.tools.iter().map(|tool| tool.denied).sum::<u64>();
        self.created += files(FileOutcome::Created);
        self.changed += files(FileOutcome::Changed);
        self.deleted += files(FileOutcome::Deleted);
        self.commands += audit.commands;
        self.failures += u64::from(audit.failure.is_some());
        if let Some(more) = audited.took {
            let sum = self.took.unwrap_or_default();
            let cost = match (sum.cost, more.cost) {
                (Some(sum), Some(more)) => Money::sum([sum, more]),
                (sum, more) => sum.or(more),
            };
            self.took = Some(SessionCost { tokens: sum.tokens.saturating_add(more.tokens), cost });
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        format!(
            "total: {}, {} failed; {}, {} failed, {} denied; {}; {} created, {} changed, {} deleted{}",
            counted(self.sessions, "session"),
            grouped(self.failures),
            counted(self.calls, "call"),
            grouped(self.failed),
            grouped(self.denied),
            counted(self.commands, "command"),
            counted(self.created, "file"),
            grouped(self.changed),
            grouped(self.deleted),
            self.took.filter(|took| took.tokens > 0).map(|took| format!("; {}", took.words())).unwrap_or_default(),
        )
    }

    /// One line for programs.
    pub fn json(&self) -> String {
        let mut total = Draft::new();
        for (key, number) in [
            ("sessions", self.sessions),
            ("failures", self.failures),
            ("calls", self.calls),
            ("failed", self.failed),
            ("denied", self.denied),
            ("commands", self.commands),
            ("created", self.created),
            ("changed", self.changed),
            ("deleted", self.deleted),
        ] {
            total.set_number(key, Some(number));
        }
        if let Some(took) = &self.took {
            total.set_number("tokens", Some(took.tokens));
            total.set("cost", took.cost.map_or_else(|| "null".to_owned(), |cost| cost.to_string()));
        }
        Draft::new().with_json("total", total.render(None)).render(None)
    }
}
