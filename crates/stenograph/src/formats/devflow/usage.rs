//! What devflow tells about model calls beyond those of its turns: what the whole run took. Reads leftovers only.

use crate::ledger::{Input, Tokens, Told, Total, is_odd};
use crate::model::ExtraFields;

/// What is left of a record tells this: the header has what the run took. A total that is no count tells nothing, and the turns do.
pub fn told<'e>(left: &'e ExtraFields<'_>) -> Told<'e> {
    let is_stated_oddly =
        |left: &ExtraFields<'_>, names: [&str; 2]| names.iter().filter_map(|name| left.raw(name)).any(is_odd);
    let Some(metadata) = left.opened("metadata") else {
        return Told { odd: is_stated_oddly(left, ["tokensIn", "tokensOut"]), ..Told::default() };
    };
    let odd = is_stated_oddly(&metadata, ["totalTokensIn", "totalTokensOut"]);
    Told { total: total(&metadata).filter(|_| !odd), odd, ..Told::default() }
}

fn total(metadata: &ExtraFields<'_>) -> Option<Total> {
    let number = |key: &str| metadata.raw(key).and_then(crate::json::number);
    let (input, output) = (number("totalTokensIn"), number("totalTokensOut"));
    let cost = metadata.raw("totalCost").and_then(|raw| raw.parse::<f64>().ok()).filter(|cost| *cost > 0.0);
    // A run under way has only zeros yet: its turns are all that is known.
    let tokens = Tokens { input: input.unwrap_or(0), output: output.unwrap_or(0), ..Tokens::default() };
    (!tokens.is_zero() || cost.is_some()).then_some(Total { tokens, input: Input::Apart, cost })
}
