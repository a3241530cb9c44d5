//! Plays a tape: which answer comes next, and what has drifted so far. Answers go out in the order in which requests come in,
//! whoever sends them.

use std::collections::HashSet;

use super::drift::{Drift, KEPT_MAX, Remark, beside, drifts, remarks};
use super::side_requests::{OffersTools, is_beside};
use super::tape::Tape;
use super::vendor::Request;
use crate::json::Draft;
use crate::text::quote;

/// A tape and how far it was played.
#[derive(Debug)]
pub struct Player {
    tape: Tape,
    manner: Manner,
    /// The index of the next answer.
    next: usize,
    requests: u64,
    drifted: u64,
    beside: u64,
    refused: u64,
    habit: OffersTools,
    found: Vec<(u64, Drift)>,
    remarks: Vec<(u64, Remark)>,
    /// What was told already: a difference stays in every request after the one it first stood in.
    known: HashSet<u64>,
    differences: u64,
}

/// What is done with a request that is not the recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// It is answered all the same.
    #[default]
    Lenient,
    /// It is refused, and the tape waits.
    Strict,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Which request it was, from 1.
    pub request: u64,
    /// What it gets.
    pub verdict: Verdict,
    /// How many differences it has.
    pub count: usize,
    /// Those that no request before it had.
    pub news: Vec<Drift>,
    /// What differs beside the conversation, and was not said before.
    pub remarks: Vec<Remark>,
    /// How many answers are left.
    pub left: usize,
}

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer of that index.
    Answer(usize),
    /// Nothing, for it drifted from the request for the answer of that index.
    Refused(usize),
    /// Nothing that was recorded, for it is no part of the recorded conversation.
    Beside,
    /// Nothing, for nothing is left.
    Ended,
}

/// How many differences are kept for the report; all are counted.
const FOUND_MAX: usize = 10_000;

impl Player {
    /// A tape from its beginning.
    pub fn new(tape: Tape, manner: Manner) -> Player {
        Player {
            tape,
            manner,
            next: 0,
            requests: 0,
            drifted: 0,
            beside: 0,
            refused: 0,
            habit: OffersTools::default(),
            found: Vec::new(),
            remarks: Vec::new(),
            known: HashSet::new(),
            differences: 0,
        }
    }

    /// The tape.
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Whether every answer was given.
    pub fn is_at_end(&self) -> bool {
        self.next >= self.tape.answers().len()
    }

    /// How many requests were not the recorded ones.
    pub fn drifted(&self) -> u64 {
        self.drifted
    }

    /// How many requests were no part of the recorded conversation.
    pub fn beside(&self) -> u64 {
        self.beside
    }

    /// How many requests were refused because they were not the recorded ones.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// What is done with requests that are not the recorded ones.
    pub fn manner(&self) -> Manner {
        self.manner
    }

    /// How many differences were found, each counted once.
    pub fn differences(&self) -> u64 {
        self.differences
    }

    /// How many requests came.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// How many answers were given.
    pub fn given(&self) -> usize {
        self.next
    }

    /// Takes a request.
    pub fn ask(&mut self, request: &Request) -> Played {
        self.requests += 1;
        let answers = self.tape.answers();
        // After the end the conversation is still the one that the last answer stands in.
        let near = answers.get(self.next).or(answers.last());
        let is_beside = near.is_some_and(|answer| is_beside(&self.tape, answer, request, self.habit));
        let (verdict, found, beside) = match answers.get(self.next) {
            _ if is_beside => {
                self.beside += 1;
                (Verdict::Beside, Vec::new(), vec![beside(request)])
            }
            None => (Verdict::Ended, vec![Drift::after_end()], Vec::new()),
            Some(answer) => {
                let found = drifts(&self.tape, answer, request);
                let beside = remarks(&self.tape, answer, request);
                let is_refused = self.manner == Manner::Strict && !found.is_empty();
                (if is_refused { Verdict::Refused(self.next) } else { Verdict::Answer(self.next) }, found, beside)
            }
        };
        match verdict {
            Verdict::Answer(_) => self.next += 1,
            Verdict::Refused(_) => self.refused += 1,
            Verdict::Beside | Verdict::Ended => {}
        }
        if !request.tools.is_empty() {
            self.habit = OffersTools::Tools;
        }
        let count = found.len();
        self.drifted += u64::from(count > 0);
        let news = self.news(found);
        let remarks = self.new_remarks(beside);
        let left = self.tape.answers().len() - self.next;
        Played { request: self.requests, verdict, count, news, remarks, left }
    }

    fn news(&mut self, found: Vec<Drift>) -> Vec<Drift> {
        let mut news = Vec::new();
        for drift in found {
            if self.known.contains(&drift.print) {
                continue;
            }
            self.differences += 1;
            // What is not kept is not known again either: it is counted, and said, whenever it stands there.
            if self.found.len() < FOUND_MAX {
                self.known.insert(drift.print);
                self.found.push((self.requests, drift.clone()));
            }
            if news.len() < KEPT_MAX {
                news.push(drift);
            }
        }
        news
    }

    fn new_remarks(&mut self, beside: Vec<Remark>) -> Vec<Remark> {
        let mut news = Vec::new();
        for remark in beside {
            if self.remarks.len() < FOUND_MAX && self.remarks.iter().all(|(_, known)| *known != remark) {
                self.remarks.push((self.requests, remark.clone()));
                news.push(remark);
            }
        }
        news
    }

    /// The account so far, as one JSON object.
    pub fn report(&self) -> String {
        let mut draft = Draft::new();
        draft.set_number("answers", Some(self.tape.answers().len() as u64));
        draft.set_number("given", Some(self.next as u64));
        draft.set_number("requests", Some(self.requests));
        draft.set_number("drifted", Some(self.drifted));
        draft.set_number("beside", Some(self.beside));
        draft.set_number("differences", Some(self.differences));
        let drift = |(request, drift): &(u64, Drift)| {
            let json = drift.json();
            format!("{{\"request\":{request},{}", json.strip_prefix('{').unwrap_or("}"))
        };
        let drifts: Vec<String> = self.found.iter().map(drift).collect();
        draft.set("drift", format!("[{}]", drifts.join(",")));
        let remark = |(request, remark): &(u64, Remark)| {
            format!("{{\"request\":{request},\"remark\":{}}}", quote(&remark.line()))
        };
        let remarks: Vec<String> = self.remarks.iter().map(remark).collect();
        draft.set("remarks", format!("[{}]", remarks.join(",")));
        draft.render(None)
    }
}

#[cfg(test)]
mod tests;
