//! Model prices: the shipped table and the user's file that overrides it. This file only parses the override file; the library
//! computes costs.

use std::path::{Path, PathBuf};

use stenograph::ledger::{Money, Override, PriceCounter, Prices, Rates, ServiceTier, Tier};
use toml_edit::{Item, TableLike, Value};

use crate::config;
use crate::error::CommandError;

/// The environment variable that names the file.
const VARIABLE: &str = "STENO_PRICES";

const FILE_NAME: &str = "prices.toml";

const HINT: &str = "write \"model-name\" = { input = 3, output = 15, cache_read = 0.3 }, in dollars per million tokens";

/// The limit of models in the file. People write it by hand, and every call is matched against every entry.
const OVERRIDES_MAX: usize = 1_000;

/// The user's price file, whether it exists or not.
pub fn own_path() -> Option<PathBuf> {
    config::variable(VARIABLE).map(PathBuf::from).or_else(|| config::user_file(FILE_NAME))
}

/// Loads the shipped prices with the user's overrides.
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
        None => Err(CommandError::new(format!("{}: no such file (from {VARIABLE})", path.display()))
            .hint(format!("unset {VARIABLE}, or set it to a price file"))),
    }
}

/// An error in the file, and how to correct it.
#[derive(Debug, PartialEq, Eq)]
struct PriceFileError {
    what: String,
    hint: String,
}

impl PriceFileError {
    fn new(what: impl Into<String>) -> PriceFileError {
        PriceFileError { what: what.into(), hint: HINT.to_owned() }
    }

    fn hint(self, hint: impl Into<String>) -> PriceFileError {
        PriceFileError { hint: hint.into(), ..self }
    }

    fn at(self, path: &Path) -> CommandError {
        CommandError::new(format!("{}: {}", path.display(), self.what)).hint(self.hint)
    }
}

/// Parses the file, in its order.
fn overrides(file: &dyn TableLike, shipped: &Prices) -> Result<Vec<Override>, PriceFileError> {
    if file.len() > OVERRIDES_MAX {
        return Err(PriceFileError::new(format!("more than {OVERRIDES_MAX} models")));
    }
    file.iter().map(|(model, item)| model_prices(model, item, shipped)).collect()
}

/// Parses the entry of one model.
fn model_prices(model: &str, item: &Item, shipped: &Prices) -> Result<Override, PriceFileError> {
    let Some(table) = item.as_table_like() else {
        return Err(PriceFileError::new(format!("{model} is not a table of prices")));
    };
    let mut override_entry = Override { model: model.to_owned(), same_as: None, prices: Vec::new() };
    let standard = block(model, table, ServiceTier::Standard, &mut override_entry.prices)?;
    for (key, item) in table.iter() {
        if key == "same_as" {
            override_entry.same_as = Some(same_as(model, item, shipped)?);
        } else if let Some(service_tier) = ServiceTier::named(key) {
            let Some(table) = item.as_table_like() else {
                return Err(PriceFileError::new(format!("{model}: {key} is not a table of prices")));
            };
            block(model, table, service_tier, &mut override_entry.prices)?;
        }
    }
    let is_whole = standard.of(PriceCounter::Input).is_some() && standard.of(PriceCounter::Output).is_some();
    if override_entry.same_as.is_none() && !is_whole {
        return Err(PriceFileError::new(format!("{model} needs prices for input and output, or same_as")));
    }
    Ok(override_entry)
}

fn same_as(model: &str, item: &Item, shipped: &Prices) -> Result<String, PriceFileError> {
    let name =
        item.as_str().ok_or_else(|| PriceFileError::new(format!("{model}: same_as must be the name of a model")))?;
    if shipped.knows(name) {
        return Ok(name.to_owned());
    }
    Err(PriceFileError::new(format!("{model}: same_as names {name}, which has no price"))
        .hint(format!("give its prices: \"{model}\" = {{ input = 3, output = 15 }}")))
}

/// Parses the prices of one service tier, including `over`, the prices for larger contexts.
fn block(
    model: &str,
    table: &dyn TableLike,
    service_tier: ServiceTier,
    prices: &mut Vec<(ServiceTier, Tier)>,
) -> Result<Rates, PriceFileError> {
    let mut rates = Rates::default();
    for (key, item) in table.iter() {
        if let Some(counter) = PriceCounter::named(key) {
            rates.set(counter, Some(rate(model, counter, item)?));
        } else if key == "over" {
            let Some(sizes) = item.as_table_like() else {
                return Err(PriceFileError::new(format!("{model}: over must be a table of sizes"))
                    .hint("write over = { 200000 = { input = 6, output = 22.5 } }"));
            };
            for (size, item) in sizes.iter() {
                let over = size.replace('_', "").parse::<u64>().ok().filter(|over| *over > 0);
                let (Some(over), Some(table)) = (over, item.as_table_like()) else {
                    return Err(PriceFileError::new(format!(
                        "{model}: over {size} must be a number of tokens with a table of prices"
                    ))
                    .hint("write over = { 200000 = { input = 6, output = 22.5 } }"));
                };
                prices.push((service_tier, Tier { over, rates: tier(model, table)? }));
            }
        } else if service_tier != ServiceTier::Standard || key != "same_as" && ServiceTier::named(key).is_none() {
            return Err(unknown(model, key));
        }
    }
    if !rates.is_empty() {
        prices.push((service_tier, Tier { over: 0, rates }));
    }
    Ok(rates)
}

/// Parses the prices from one context size on.
fn tier(model: &str, table: &dyn TableLike) -> Result<Rates, PriceFileError> {
    let mut rates = Rates::default();
    for (key, item) in table.iter() {
        let counter = PriceCounter::named(key).ok_or_else(|| unknown(model, key))?;
        rates.set(counter, Some(rate(model, counter, item)?));
    }
    Ok(rates)
}

/// Parses a price from the text of its number.
fn rate(model: &str, counter: PriceCounter, item: &Item) -> Result<Money, PriceFileError> {
    let text_of_number = match item.as_value() {
        Some(Value::Integer(number)) => Some(number.display_repr().replace('_', "")),
        Some(Value::Float(number)) => Some(number.display_repr().replace('_', "")),
        // A quoted price means the same as an unquoted one.
        Some(Value::String(text)) => Some(text.value().clone()),
        _ => None,
    };
    let price =
        text_of_number.and_then(|text_of_number| Money::parse(&text_of_number)).filter(|price| !price.is_negative());
    let rate = price.and_then(|price| price.shared_by(counter.price_unit()));
    rate.ok_or_else(|| PriceFileError::new(format!("{model}: {} is not a price in dollars", counter.name())))
}

fn unknown(model: &str, key: &str) -> PriceFileError {
    let counters = PriceCounter::ALL.map(PriceCounter::name).join(", ");
    let wrong = PriceFileError::new(format!("{model}: unknown key {key}"));
    wrong.hint(format!("valid keys: {counters}; over; fast, priority, flex, batch; same_as"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::ledger::Tokens;
    use toml_edit::DocumentMut;

    fn read(text: &str) -> Result<Prices, PriceFileError> {
        let shipped = Prices::shipped();
        let document: DocumentMut = text.parse().unwrap();
        Ok(shipped.clone().with(overrides(document.as_table(), &shipped)?))
    }

    fn cost(prices: &Prices, model: &str, service_tier: ServiceTier, call: &Tokens) -> Option<String> {
        prices.price(model, service_tier)?.cost(call, 1).map(|cost| cost.to_string())
    }

    #[test]
    fn a_price_is_exactly_the_number_in_the_file() {
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
    fn an_invalid_file_is_explained_with_a_hint() {
        for (text, what) in [
            ("a = 3", "a is not a table of prices"),
            ("a = { input = 3 }", "a needs prices for input and output, or same_as"),
            ("a = { input = \"much\", output = 1 }", "a: input is not a price in dollars"),
            ("a = { input = -1, output = 1 }", "a: input is not a price in dollars"),
            ("a = { input = nan, output = 1 }", "a: input is not a price in dollars"),
            ("a = { input = 0x10, output = 1 }", "a: input is not a price in dollars"),
            ("a = { inputs = 1, output = 1 }", "a: unknown key inputs"),
            ("a = { input = 1, output = 1, fast = { same_as = \"b\" } }", "a: unknown key same_as"),
            ("a = { input = 1, output = 1, fast = 2 }", "a: fast is not a table of prices"),
            ("a = { input = 1, output = 1, over = 2 }", "a: over must be a table of sizes"),
            (
                "a = { input = 1, output = 1, over = { many = { input = 1 } } }",
                "a: over many must be a number of tokens with a table of prices",
            ),
            ("a = { same_as = \"nobody\" }", "a: same_as names nobody, which has no price"),
            ("a = { same_as = 3 }", "a: same_as must be the name of a model"),
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
