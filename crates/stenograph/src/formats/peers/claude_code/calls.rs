//! Which lines ccusage takes for the same call, and which of them it keeps: a whole line, never the largest of each counter. It compares
//! a line with the lines kept so far, so the order of the lines matters.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::ledger::{Money, Name, Names, PeerRows, Prices, Row};

/// A call as one line reports it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The message id. A line without one is always a new call.
    pub id: Option<Name>,
    /// The request id.
    pub request: Option<Name>,
    /// The session that the line names.
    pub session: Name,
    /// Milliseconds since 1970.
    pub time: i64,
    /// Whether a sub-agent made it.
    pub is_sidechain: bool,
    /// Whether the line states a speed.
    pub has_speed: bool,
    /// The stated cost.
    pub cost: Option<f64>,
    /// The row for the ledger.
    pub row: Row,
}

/// The calls kept so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    ids: Names,
    kept: Vec<(u32, Call)>,
    /// The kept call of each key.
    exact: HashMap<Exact, usize>,
    /// The calls of a message id in a session.
    routes: HashMap<(Name, Name), Route>,
    routed: HashSet<(Name, Name, usize)>,
    prices: OnceCell<Prices>,
}

/// The key that makes two lines one call in any file: message and request, or without a request message, session and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Exact {
    Request(Name, Name),
    Moment(Name, Name, i64),
}

/// Calls of one message id and session, in the order in which they were added.
#[derive(Debug, Default)]
struct Route {
    calls: Vec<usize>,
    /// All calls before this index are outside sidechains and stay so.
    next: usize,
}

impl Calls {
    /// The number of an id.
    pub fn id(&mut self, id: &str) -> Name {
        self.ids.number(id)
    }

    /// Joins a line with its call, or keeps it as a new call.
    pub fn add(&mut self, source: u32, call: Call, counted: &PeerRows) {
        let Some(id) = call.id else {
            self.kept.push((source, call));
            return;
        };
        let exact = exact(id, &call);
        let Some(at) = self.exact.get(&exact).copied().or_else(|| self.beside(id, &call)) else {
            self.exact.insert(exact, self.kept.len());
            self.add_route(id, call.session, self.kept.len());
            self.kept.push((source, call));
            return;
        };
        let Some((_, old)) = self.kept.get(at) else { return };
        let (session, before) = (old.session, old.id.map(|id| self::exact(id, old)));
        let is_better = self.is_better(&call, old, counted);
        self.add_route(id, call.session, at);
        self.add_route(id, session, at);
        let Some((kept_source, kept)) = self.kept.get_mut(at) else { return };
        let records = kept.row.records.saturating_add(1);
        if is_better {
            (*kept_source, *kept) = (source, call);
            if let Some(before) = before {
                self.exact.remove(&before);
            }
            self.exact.insert(exact, at);
        }
        kept.row.records = records;
    }

    /// The kept calls, each with its source.
    pub fn close(&mut self) -> impl Iterator<Item = (u32, Row)> {
        std::mem::take(&mut self.kept).into_iter().map(|(source, call)| (source, call.row))
    }

    /// Adds a call to the calls of a message id in a session.
    fn add_route(&mut self, id: Name, session: Name, at: usize) {
        if self.routed.insert((id, session, at)) {
            self.routes.entry((id, session)).or_default().calls.push(at);
        }
    }

    /// The first call of the same message and session, if either it or this call belongs to a sidechain.
    fn beside(&mut self, id: Name, call: &Call) -> Option<usize> {
        let route = self.routes.get_mut(&(id, call.session))?;
        if call.is_sidechain {
            return route.calls.first().copied();
        }
        // A replacement belongs to a sidechain only if the replaced call did, so no call is checked twice.
        let is_sidechain = |at: &usize| self.kept.get(*at).is_some_and(|(_, kept)| kept.is_sidechain);
        while route.calls.get(route.next).is_some_and(|at| !is_sidechain(at)) {
            route.next += 1;
        }
        route.calls.get(route.next).copied()
    }

    /// Whether a new line replaces the kept one.
    fn is_better(&self, new: &Call, old: &Call, counted: &PeerRows) -> bool {
        if new.is_sidechain != old.is_sidechain {
            return old.is_sidechain;
        }
        let sum = |call: &Call| call.row.tokens.total();
        if sum(new) != sum(old) {
            return sum(new) > sum(old);
        }
        let priced_by = |call: &Call| (call.row.tokens, call.row.model, call.row.service_tier);
        let is_equal = priced_by(new) == priced_by(old) && new.cost == old.cost;
        let (new_cost, old_cost) =
            if is_equal { Default::default() } else { (self.cost(new, counted), self.cost(old, counted)) };
        if new_cost != old_cost {
            return new_cost > old_cost;
        }
        new.has_speed && !old.has_speed
    }

    /// The stated cost of a call, otherwise its cost by the model's price, otherwise 0.
    fn cost(&self, call: &Call, counted: &PeerRows) -> Money {
        let priced = || {
            let model = counted.word(call.row.model?)?;
            let prices = self.prices.get_or_init(Prices::shipped);
            prices.price(model, call.row.service_tier)?.cost(&call.row.tokens, call.row.calls)
        };
        let stated = call.cost.and_then(|cost| Money::parse(&cost.to_string()));
        stated.or_else(priced).unwrap_or(Money::ZERO)
    }
}

fn exact(id: Name, call: &Call) -> Exact {
    match call.request {
        Some(request) => Exact::Request(id, request),
        None => Exact::Moment(id, call.session, call.time),
    }
}
