//! Plays a tape: selects the answer to each request and records the drift so far. Answers follow the order of requests, whoever
//! sends them.

use std::collections::HashSet;

use super::drift::{Drift, KEPT_MAX, Remark, drifts, remarks, side_request_remark};
use super::side_requests::{OffersTools, is_side_request};
use super::tape::Tape;
use super::vendor::Request;
use crate::json::Draft;
use crate::text::quote;

/// A tape and its position.
#[derive(Debug)]
pub struct CassettePlayer {
    tape: Tape,
    mode: MatchMode,
    /// The index of the next answer.
    next: usize,
    requests: u64,
    drifted: u64,
    side_requests: u64,
    refused: u64,
    offers_tools: OffersTools,
    found: Vec<(u64, Drift)>,
    remarks: Vec<(u64, Remark)>,
    /// Hashes of reported differences: a difference stays in all later requests.
    known: HashSet<u64>,
    differences: u64,
}

/// How a request that differs from the recorded one is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// The player answers it.
    #[default]
    Lenient,
    /// The player refuses it, and the tape stays at its position.
    Strict,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The number of the request, from 1.
    pub request: u64,
    /// Its answer.
    pub verdict: PlayedAnswer,
    /// The number of differences.
    pub count: usize,
    /// The differences that no earlier request had.
    pub news: Vec<Drift>,
    /// Differences outside the conversation that were not reported before.
    pub remarks: Vec<Remark>,
    /// The number of remaining answers.
    pub left: usize,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayedAnswer {
    /// The recorded answer with this index.
    Answer(usize),
    /// None: the request differs from the recorded request for the answer with this index.
    Refused(usize),
    /// None: the request is not part of the recorded conversation.
    SideRequest,
    /// None: the recording has ended.
    Ended,
}

/// The most differences in the report. All are counted.
const FOUND_MAX: usize = 10_000;

impl CassettePlayer {
    /// A player at the beginning of a tape.
    pub fn new(tape: Tape, mode: MatchMode) -> CassettePlayer {
        CassettePlayer {
            tape,
            mode,
            next: 0,
            requests: 0,
            drifted: 0,
            side_requests: 0,
            refused: 0,
            offers_tools: OffersTools::default(),
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

    /// Whether all answers have been played.
    pub fn is_at_end(&self) -> bool {
        self.next >= self.tape.answers().len()
    }

    /// The number of requests that differ from the recorded ones.
    pub fn drifted(&self) -> u64 {
        self.drifted
    }

    /// The number of requests that are not part of the recorded conversation.
    pub fn side_requests(&self) -> u64 {
        self.side_requests
    }

    /// How many requests were refused because they differ from the recorded ones.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// How requests that differ from the recorded ones are treated.
    pub fn match_mode(&self) -> MatchMode {
        self.mode
    }

    /// The number of different differences.
    pub fn differences(&self) -> u64 {
        self.differences
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The number of played answers.
    pub fn given(&self) -> usize {
        self.next
    }

    /// Answers a request.
    pub fn ask(&mut self, request: &Request) -> Played {
        self.requests += 1;
        let answers = self.tape.answers();
        // After the end, the last answer still identifies the conversation.
        let near = answers.get(self.next).or(answers.last());
        let is_side_request =
            near.is_some_and(|answer| is_side_request(&self.tape, answer, request, self.offers_tools));
        let (verdict, found, remarks_found) = match answers.get(self.next) {
            _ if is_side_request => {
                self.side_requests += 1;
                (PlayedAnswer::SideRequest, Vec::new(), vec![side_request_remark(request)])
            }
            None => (PlayedAnswer::Ended, vec![Drift::after_end()], Vec::new()),
            Some(answer) => {
                let found = drifts(&self.tape, answer, request);
                let remarks_found = remarks(&self.tape, answer, request);
                let is_refused = self.mode == MatchMode::Strict && !found.is_empty();
                (
                    if is_refused { PlayedAnswer::Refused(self.next) } else { PlayedAnswer::Answer(self.next) },
                    found,
                    remarks_found,
                )
            }
        };
        match verdict {
            PlayedAnswer::Answer(_) => self.next += 1,
            PlayedAnswer::Refused(_) => self.refused += 1,
            PlayedAnswer::SideRequest | PlayedAnswer::Ended => {}
        }
        if !request.tools.is_empty() {
            self.offers_tools = OffersTools::Tools;
        }
        let count = found.len();
        self.drifted += u64::from(count > 0);
        let news = self.news(found);
        let remarks = self.new_remarks(remarks_found);
        let left = self.tape.answers().len() - self.next;
        Played { request: self.requests, verdict, count, news, remarks, left }
    }

    fn news(&mut self, found: Vec<Drift>) -> Vec<Drift> {
        let mut news = Vec::new();
        for drift in found {
            if self.known.contains(&drift.fingerprint) {
                continue;
            }
            self.differences += 1;
            // A difference beyond the limit is not remembered, so that every request that has it reports it again.
            if self.found.len() < FOUND_MAX {
                self.known.insert(drift.fingerprint);
                self.found.push((self.requests, drift.clone()));
            }
            if news.len() < KEPT_MAX {
                news.push(drift);
            }
        }
        news
    }

    fn new_remarks(&mut self, found: Vec<Remark>) -> Vec<Remark> {
        let mut news = Vec::new();
        for remark in found {
            if self.remarks.len() < FOUND_MAX && self.remarks.iter().all(|(_, known)| *known != remark) {
                self.remarks.push((self.requests, remark.clone()));
                news.push(remark);
            }
        }
        news
    }

    /// The report so far, as one JSON object.
    pub fn report(&self) -> String {
        let mut draft = Draft::new();
        draft.set_number("answers", Some(self.tape.answers().len() as u64));
        draft.set_number("given", Some(self.next as u64));
        draft.set_number("requests", Some(self.requests));
        draft.set_number("drifted", Some(self.drifted));
        draft.set_number("side_requests", Some(self.side_requests));
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
