//! What models cost: the table that is shipped, and the file in which people say otherwise. Only the file's spelling is known
//! here; what prices mean is the library's business.

use std::path::{Path, PathBuf};

use stenograph::ledger::{Money, Override, PriceCounter, Prices, Rates, ServiceTier, Tier};
use toml_edit::{Item, TableLike, Value};

use crate::config;
use crate::error::CommandError;

/// The variable that names the file.
const VARIABLE: &str = "STENO_PRICES";

const FILE_NAME: &str = "prices.toml";

const HINT: &str = "it should read like: \"model-name\" = { input = 3, output = 15, cache_read = 0.3 }, in dollars for a million tokens";

/// The most models that can be spoken of. People write this by hand, and every call is held against every one of them.
const OVERRIDES_MAX: usize = 1_000;

/// The prices that count.
pub fn load() -> Result<Prices, CommandError> {
    let shipped = Prices::shipped();
    let named = config::variable(VARIABLE).map(PathBuf::from);
    let Some(path) = named.clone().or_else(|| config::user_file(FILE_NAME)) else { return Ok(shipped) };
    match config::toml(&path, HINT)? {
        Some(document) => {
            let overrides = overrides(document.as_table(), &shipped);
            let overrides = overrides.map_err(|wrong| wrong.at(&path))?;
            Ok(shipped.with(overrides))
        }
        None if named.is_none() => Ok(shipped),
        None => {
            Err(CommandError::new(format!("{}: there is no such file, though {VARIABLE} names it", path.display()))
                .hint(format!("unset {VARIABLE}, or let it name a file of prices")))
        }
    }
}

/// What is wrong in the file, and how it should be.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    what: String,
    hint: String,
}

impl Wrong {
    fn new(what: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), hint: HINT.to_owned() }
    }

    fn hint(self, hint: impl Into<String>) -> Wrong {
        Wrong { hint: hint.into(), ..self }
    }

    fn at(self, path: &Path) -> CommandError {
        CommandError::new(format!("{}: {}", path.display(), self.what)).hint(self.hint)
    }
}

/// What the file says, in its order.
fn overrides(file: &dyn TableLike, shipped: &Prices) -> Result<Vec<Override>, Wrong> {
    if file.len() > OVERRIDES_MAX {
        return Err(Wrong::new(format!("it speaks of more than {OVERRIDES_MAX} models")));
    }
    file.iter().map(|(model, item)| one(model, item, shipped)).collect()
}

/// What it says of one model.
fn one(model: &str, item: &Item, shipped: &Prices) -> Result<Override, Wrong> {
    let Some(table) = item.as_table_like() else {
        return Err(Wrong::new(format!("{model} is not a table of prices")));
    };
    let mut said = Override { model: model.to_owned(), same_as: None, prices: Vec::new() };
    let usual = block(model, table, ServiceTier::Standard, &mut said.prices)?;
    for (key, item) in table.iter() {
        if key == "same_as" {
            said.same_as = Some(same_as(model, item, shipped)?);
        } else if let Some(pace) = ServiceTier::named(key) {
            let Some(table) = item.as_table_like() else {
                return Err(Wrong::new(format!("{model}: {key} is not a table of prices")));
            };
            block(model, table, pace, &mut said.prices)?;
        }
    }
    let is_whole = usual.of(PriceCounter::Input).is_some() && usual.of(PriceCounter::Output).is_some();
    if said.same_as.is_none() && !is_whole {
        return Err(Wrong::new(format!("{model} needs a price for input and one for output, or same_as")));
    }
    Ok(said)
}

fn same_as(model: &str, item: &Item, shipped: &Prices) -> Result<String, Wrong> {
    let name = item.as_str().ok_or_else(|| Wrong::new(format!("{model}: same_as is not the name of a model")))?;
    if shipped.knows(name) {
        return Ok(name.to_owned());
    }
    Err(Wrong::new(format!("{model}: same_as names {name}, which is not in the table of prices"))
        .hint(format!("give its prices: \"{model}\" = {{ input = 3, output = 15 }}")))
}

/// The prices that a table states for one pace, with those for larger contexts in `over`.
fn block(
    model: &str,
    table: &dyn TableLike,
    pace: ServiceTier,
    prices: &mut Vec<(ServiceTier, Tier)>,
) -> Result<Rates, Wrong> {
    let mut rates = Rates::default();
    for (key, item) in table.iter() {
        if let Some(counter) = PriceCounter::named(key) {
            rates.set(counter, Some(rate(model, counter, item)?));
        } else if key == "over" {
            let Some(sizes) = item.as_table_like() else {
                return Err(Wrong::new(format!("{model}: over is not a table of sizes"))
                    .hint("over = { 200000 = { input = 6, output = 22.5 } }"));
            };
            for (size, item) in sizes.iter() {
                let over = size.replace('_', "").parse::<u64>().ok().filter(|over| *over > 0);
                let (Some(over), Some(table)) = (over, item.as_table_like()) else {
                    return Err(Wrong::new(format!("{model}: over {size} is not a size with a table of prices"))
                        .hint("over = { 200000 = { input = 6, output = 22.5 } }"));
                };
                prices.push((pace, Tier { over, rates: tier(model, table)? }));
            }
        } else if pace != ServiceTier::Standard || key != "same_as" && ServiceTier::named(key).is_none() {
            return Err(unknown(model, key));
        }
    }
    if !rates.is_empty() {
        prices.push((pace, Tier { over: 0, rates }));
    }
    Ok(rates)
}

/// The prices from one size on.
fn tier(model: &str, table: &dyn TableLike) -> Result<Rates, Wrong> {
    let mut rates = Rates::default();
    for (key, item) in table.iter() {
        let counter = PriceCounter::named(key).ok_or_else(|| unknown(model, key))?;
        rates.set(counter, Some(rate(model, counter, item)?));
    }
    Ok(rates)
}

/// A price, by the spelling of its number.
fn rate(model: &str, counter: PriceCounter, item: &Item) -> Result<Money, Wrong> {
    let spelled = match item.as_value() {
        Some(Value::Integer(number)) => Some(number.display_repr().replace('_', "")),
        Some(Value::Float(number)) => Some(number.display_repr().replace('_', "")),
        // What is quoted is meant all the same.
        Some(Value::String(text)) => Some(text.value().clone()),
        _ => None,
    };
    let price = spelled.and_then(|spelled| Money::parse(&spelled)).filter(|price| !price.is_negative());
    let rate = price.and_then(|price| price.shared_by(counter.price_unit()));
    rate.ok_or_else(|| Wrong::new(format!("{model}: {} is not a price in dollars", counter.name())))
}

fn unknown(model: &str, key: &str) -> Wrong {
    let counters = PriceCounter::ALL.map(PriceCounter::name).join(", ");
    let wrong = Wrong::new(format!("{model}: {key} is nothing that has a price"));
    wrong.hint(format!("there are {counters}; over; fast, priority, flex, batch; same_as"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::ledger::Tokens;
    use toml_edit::DocumentMut;

    fn read(text: &str) -> Result<Prices, Wrong> {
        let shipped = Prices::shipped();
        let document: DocumentMut = text.parse().unwrap();
        Ok(shipped.clone().with(overrides(document.as_table(), &shipped)?))
    }

    fn cost(prices: &Prices, model: &str, pace: ServiceTier, call: &Tokens) -> Option<String> {
        prices.price(model, pace)?.cost(call).map(|cost| cost.to_string())
    }

    #[test]
    fn prices_are_read_by_their_spelling() {
        let prices = read(
            "# ours\n\"house-model\" = { input = 0.1, output = 1_000, cache_read = \"1e-2\", search = 0.005, \
             over = { 200_000 = { input = 0.3, output = 2000 } }, fast = { input = 1, output = 2 } }\n\
             \n[\"proxy/*\"]\nsame_as = \"claude-sonnet-4-5\"\n",
        )
        .unwrap();
        let call = Tokens { input: 3, cache_read: 100, output: 1, searches: 1, ..Tokens::default() };
        assert_eq!(cost(&prices, "house-model", ServiceTier::Standard, &call).as_deref(), Some("0.0060013"));
        let large = Tokens { input: 200_001, ..Tokens::default() };
        assert_eq!(cost(&prices, "house-model", ServiceTier::Standard, &large).as_deref(), Some("0.0600003"));
        assert_eq!(cost(&prices, "house-model", ServiceTier::Fast, &call).as_deref(), None);
        let small = Tokens { input: 1_000, ..Tokens::default() };
        assert_eq!(cost(&prices, "house-model", ServiceTier::Fast, &small).as_deref(), Some("0.001"));
        assert_eq!(cost(&prices, "proxy/some-sonnet", ServiceTier::Standard, &small).as_deref(), Some("0.003"));
    }

    #[test]
    fn a_file_that_is_wrong_says_what_and_how_it_should_be() {
        for (text, what) in [
            ("a = 3", "a is not a table of prices"),
            ("a = { input = 3 }", "a needs a price for input and one for output, or same_as"),
            ("a = { input = \"much\", output = 1 }", "a: input is not a price in dollars"),
            ("a = { input = -1, output = 1 }", "a: input is not a price in dollars"),
            ("a = { input = nan, output = 1 }", "a: input is not a price in dollars"),
            ("a = { input = 0x10, output = 1 }", "a: input is not a price in dollars"),
            ("a = { inputs = 1, output = 1 }", "a: inputs is nothing that has a price"),
            ("a = { input = 1, output = 1, fast = { same_as = \"b\" } }", "a: same_as is nothing that has a price"),
            ("a = { input = 1, output = 1, fast = 2 }", "a: fast is not a table of prices"),
            ("a = { input = 1, output = 1, over = 2 }", "a: over is not a table of sizes"),
            (
                "a = { input = 1, output = 1, over = { many = { input = 1 } } }",
                "a: over many is not a size with a table of prices",
            ),
            ("a = { same_as = \"nobody\" }", "a: same_as names nobody, which is not in the table of prices"),
            ("a = { same_as = 3 }", "a: same_as is not the name of a model"),
        ] {
            let wrong = read(text).unwrap_err();
            assert_eq!(wrong.what, what, "{text}");
            assert!(!wrong.hint.is_empty());
        }
    }

    #[test]
    fn the_example_in_the_guide_is_read() {
        let guide = include_str!("../../../docs/guide/usage-prices.md");
        let example = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let prices = read(example).unwrap();
        assert_eq!(prices.overrides().len(), 4);
    }
}
