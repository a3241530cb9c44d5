//! The totals of several sessions.

use stenograph::audit::{Audit, FileOutcome};
use stenograph::json::Draft;

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
}

impl AuditTotal {
    pub fn add(&mut self, audit: &Audit) {
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
    }

    /// One line for people.
    pub fn line(&self) -> String {
        format!(
            "total: {}, {} failed; {}, {} failed, {} denied; {}; {} created, {} changed, {} deleted",
            counted(self.sessions, "session"),
            grouped(self.failures),
            counted(self.calls, "call"),
            grouped(self.failed),
            grouped(self.denied),
            counted(self.commands, "command"),
            counted(self.created, "file"),
            grouped(self.changed),
            grouped(self.deleted),
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
        Draft::new().with_json("total", total.render(None)).render(None)
    }
}
