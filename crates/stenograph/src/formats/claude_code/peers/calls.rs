//! Which lines ccusage takes for the same call, and which of them it keeps: a whole line, never the largest of each counter. A line is
//! compared with what has been kept so far, as that is now, so that the order matters.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::ledger::{Money, Name, Names, Prices, Row, Tallied};

/// A call as one line tells of it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The id of the message. A line without one is always a call.
    pub id: Option<Name>,
    /// The id of the request.
    pub request: Option<Name>,
    /// The session that the line names.
    pub session: Name,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// Whether a sub-agent made it.
    pub is_sidechain: bool,
    /// Whether the line says at which speed it was served.
    pub has_speed: bool,
    /// What the line says that it cost.
    pub cost: Option<f64>,
    /// What it is in the ledger.
    pub row: Row,
}

/// Calls that were kept so far.
#[derive(Debug, Default)]
pub struct Calls {
    ids: Names,
    kept: Vec<(u32, Call)>,
    /// The call that has this key now.
    exact: HashMap<Exact, usize>,
    /// The calls that answer to a message id in a session.
    routes: HashMap<(Name, Name), Route>,
    routed: HashSet<(Name, Name, usize)>,
    prices: OnceCell<Prices>,
}

/// What makes two lines one call wherever they stand: the message and its request, or without one the session and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Exact {
    Request(Name, Name),
    Moment(Name, Name, i64),
}

/// Calls in the order in which they came to answer to something.
#[derive(Debug, Default)]
struct Route {
    calls: Vec<usize>,
    /// Those before this one are of no sidechain, and never will be again.
    next: usize,
}

impl Calls {
    /// The number of an id.
    pub fn id(&mut self, id: &str) -> Name {
        self.ids.number(id)
    }

    /// Joins a line with the call that it is of, or keeps it as a new one.
    pub fn add(&mut self, source: u32, call: Call, tallied: &Tallied) {
        let Some(id) = call.id else {
            self.kept.push((source, call));
            return;
        };
        let exact = exact(id, &call);
        let Some(at) = self.exact.get(&exact).copied().or_else(|| self.beside(id, &call)) else {
            self.exact.insert(exact, self.kept.len());
            self.answer(id, call.session, self.kept.len());
            self.kept.push((source, call));
            return;
        };
        let Some((_, old)) = self.kept.get(at) else { return };
        let (session, before) = (old.session, old.id.map(|id| self::exact(id, old)));
        let is_better = self.is_better(&call, old, tallied);
        self.answer(id, call.session, at);
        self.answer(id, session, at);
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

    /// What was kept, and of which source.
    pub fn close(&mut self) -> impl Iterator<Item = (u32, Row)> {
        std::mem::take(&mut self.kept).into_iter().map(|(source, call)| (source, call.row))
    }

    /// Makes a call answer to a message id in a session.
    fn answer(&mut self, id: Name, session: Name, at: usize) {
        if self.routed.insert((id, session, at)) {
            self.routes.entry((id, session)).or_default().calls.push(at);
        }
    }

    /// The first call of the same message in the same session of which one is a sidechain, and the other may be.
    fn beside(&mut self, id: Name, call: &Call) -> Option<usize> {
        let route = self.routes.get_mut(&(id, call.session))?;
        if call.is_sidechain {
            return route.calls.first().copied();
        }
        // Whatever is kept instead of another is of a sidechain only if that was, so that nothing is looked at twice.
        let is_sidechain = |at: &usize| self.kept.get(*at).is_some_and(|(_, kept)| kept.is_sidechain);
        while route.calls.get(route.next).is_some_and(|at| !is_sidechain(at)) {
            route.next += 1;
        }
        route.calls.get(route.next).copied()
    }

    /// Whether a line is kept instead of the one before.
    fn is_better(&self, new: &Call, old: &Call, tallied: &Tallied) -> bool {
        if new.is_sidechain != old.is_sidechain {
            return old.is_sidechain;
        }
        let sum = |call: &Call| call.row.tokens.counters().into_iter().take(4).fold(0, u64::saturating_add);
        if sum(new) != sum(old) {
            return sum(new) > sum(old);
        }
        let priced_by = |call: &Call| (call.row.tokens, call.row.model, call.row.service_tier);
        let is_equal = priced_by(new) == priced_by(old) && new.cost == old.cost;
        let (new_cost, old_cost) =
            if is_equal { Default::default() } else { (self.cost(new, tallied), self.cost(old, tallied)) };
        if new_cost != old_cost {
            return new_cost > old_cost;
        }
        new.has_speed && !old.has_speed
    }

    /// What a call cost: as its line says, else by its model's price. Nothing is known to cost nothing there.
    fn cost(&self, call: &Call, tallied: &Tallied) -> Money {
        let priced = || {
            let model = tallied.word(call.row.model?)?;
            let prices = self.prices.get_or_init(Prices::shipped);
            prices.price(model, call.row.service_tier)?.cost(&call.row.tokens)
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
