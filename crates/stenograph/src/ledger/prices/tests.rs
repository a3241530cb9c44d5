//! Costs of calls, computed by hand.

use super::*;
use crate::ledger::{Money, Tokens};

const SOME: &str = "\
# date: 2026-01-31
# source: list 1.2.3
alpha-1 = input 3, output 15, cache_read 0.3, cache_write 3.75, cache_write_hour 6, search 0.01; \
over 200000: input 6, output 22.5, cache_read 0.6, cache_write 7.5; fast: input 6, output 30, cache_read 0.6, cache_write 7.5, \
cache_write_hour 12; batch: input 1.5, output 7.5
beta-20250101 = input 1, output 2
beta-20250202 = input 1, output 2; last 1.0.0
delta = input 0.4, output 1.2, reasoning 4; over 256000: input 1.2, output 3.6, reasoning 12; priority: input 0.8, output 2.4
gamma-20250101 = input 1, output 2
gamma-20250202 = input 2, output 2
gemini/epsilon = input 1, output 2
";

fn cost(model: &str, service_tier: ServiceTier, call: &Tokens) -> Option<String> {
    Prices::read(SOME).price(model, service_tier)?.cost(call, 1).map(|cost| cost.to_string())
}

#[test]
fn a_table_states_its_date_and_source() {
    let prices = Prices::read(SOME);
    assert_eq!((prices.date(), prices.source()), ("2026-01-31", "list 1.2.3"));
    assert_eq!(prices.digest().len(), 16);
}

#[test]
fn each_counter_has_its_price() {
    let call = Tokens {
        input: 1_000,
        output: 2_000,
        cache_read: 100_000,
        cache_write: 5_000,
        cache_write_hour: 1_000,
        reasoning: 500,
        searches: 2,
        fetches: 3,
    };
    // 0.003 + 0.03 + 0.03 + 4,000 * 0.00000375 + 1,000 * 0.000006 + 2 * 0.01
    assert_eq!(cost("alpha-1", ServiceTier::Standard, &call).as_deref(), Some("0.104"));
    let price = Prices::read(SOME).price("alpha-1", ServiceTier::Standard).unwrap();
    let counters: Vec<_> = price.lines(&call, 1).iter().map(|line| (line.counter.name(), line.count)).collect();
    let expected = [
        ("input", 1_000),
        ("output", 2_000),
        ("cache_read", 100_000),
        ("cache_write", 4_000),
        ("cache_write_hour", 1_000),
        ("search", 2),
    ];
    assert_eq!(counters, expected);
}

#[test]
fn the_average_decides_the_price_tier_of_a_sum_over_several_calls() {
    let price = Prices::read(SOME).price("alpha-1", ServiceTier::Standard).unwrap();
    let sum = Tokens { input: 300_000, output: 10, ..Tokens::default() };
    // 300,000 * 0.000003 + 10 * 0.000015, and twice the price of input for one call of that size
    assert_eq!(price.cost(&sum, 2), Money::parse("0.90015"));
    assert_eq!(price.cost(&sum, 1), Money::parse("1.800225"));
}

#[test]
fn all_tokens_read_decide_the_price_tier_of_a_call() {
    let below = Tokens { input: 100_000, cache_read: 60_000, cache_write: 40_000, output: 10, ..Tokens::default() };
    // 0.3 + 0.018 + 0.15 + 0.00015
    assert_eq!(cost("alpha-1", ServiceTier::Standard, &below).as_deref(), Some("0.46815"));
    let above = Tokens { input: 100_001, ..below };
    // 0.600006 + 0.036 + 0.3 + 0.000225
    assert_eq!(cost("alpha-1", ServiceTier::Standard, &above).as_deref(), Some("0.936231"));
}

#[test]
fn thinking_is_output_unless_it_has_its_own_price() {
    let call = Tokens { input: 0, output: 1_000, reasoning: 400, ..Tokens::default() };
    // 600 * 0.0000012 + 400 * 0.000004
    assert_eq!(cost("delta", ServiceTier::Standard, &call).as_deref(), Some("0.00232"));
    assert_eq!(cost("alpha-1", ServiceTier::Standard, &call).as_deref(), Some("0.015"));
}

#[test]
fn a_fast_call_has_the_price_of_the_tier_that_the_vendor_sells() {
    let call =
        Tokens { input: 1_000_000 / 10, output: 100, cache_write: 10, cache_write_hour: 10, ..Tokens::default() };
    assert_eq!(cost("alpha-1", ServiceTier::Fast, &call).as_deref(), Some("0.60312"));
    let price = Prices::read(SOME).price("delta", ServiceTier::Fast).unwrap();
    assert_eq!(price.service_tier, ServiceTier::Priority);
    assert_eq!(price.cost(&Tokens { input: 10, output: 10, ..Tokens::default() }, 1), Money::parse("32e-6"));
}

#[test]
fn unknown_models_and_tiers_have_no_price() {
    let call = Tokens { input: 1, ..Tokens::default() };
    assert_eq!(cost("omega", ServiceTier::Standard, &call), None);
    assert_eq!(cost("alpha", ServiceTier::Standard, &call), None);
    assert_eq!(cost("alpha-1", ServiceTier::Flex, &call), None);
    assert_eq!(cost(&"a".repeat(1_000_000), ServiceTier::Standard, &call), None);
    assert!(Prices::read(SOME).knows("alpha-1"));
}

#[test]
fn counters_without_a_price_are_listed() {
    let prices = Prices::read(SOME);
    let batch = prices.price("alpha-1", ServiceTier::Batch).unwrap();
    let call = Tokens { input: 1, cache_read: 5, cache_write: 7, cache_write_hour: 7, ..Tokens::default() };
    assert_eq!(
        (batch.cost(&call, 1), batch.missing(&call, 1)),
        (None, vec![PriceCounter::CacheRead, PriceCounter::CacheWriteHour])
    );
    // The standard price rises above this size, so the batch price is unknown there.
    let large = Tokens { input: 200_001, ..Tokens::default() };
    assert_eq!((batch.cost(&large, 1), batch.missing(&large, 1)), (None, vec![PriceCounter::Input]));
    let search = Tokens { searches: 1, ..Tokens::default() };
    assert_eq!(prices.price("delta", ServiceTier::Standard).unwrap().missing(&search, 1), [PriceCounter::Search]);
}

#[test]
fn a_cache_without_prices_is_billed_as_input() {
    let call = Tokens { cache_read: 1_000, cache_write: 1_000, cache_write_hour: 500, ..Tokens::default() };
    assert_eq!(cost("delta", ServiceTier::Standard, &call).as_deref(), Some("0.0008"));
}

#[test]
fn an_overflowing_cost_is_none() {
    let call = Tokens { output: u64::MAX, input: u64::MAX, cache_read: u64::MAX, ..Tokens::default() };
    assert_eq!(cost("alpha-1", ServiceTier::Standard, &call), None);
    assert_eq!(Prices::read(SOME).price("alpha-1", ServiceTier::Standard).unwrap().missing(&call, 1), []);
}

#[test]
fn a_name_without_a_date_is_found_if_all_dated_rows_agree() {
    let prices = Prices::read(SOME);
    assert_eq!(prices.price("beta", ServiceTier::Standard).unwrap().found_as, "beta-20250101");
    assert_eq!(prices.price("beta-20250909", ServiceTier::Standard).unwrap().found_as, "beta-20250101");
    assert_eq!(prices.price("gamma", ServiceTier::Standard), None);
    assert_eq!(
        prices.price("beta-20250202", ServiceTier::Standard).unwrap().origin,
        PriceSource::Retired("1.0.0".to_owned())
    );
}

#[test]
fn a_name_is_found_under_its_vendor() {
    let prices = Prices::read(SOME);
    for spelled in ["epsilon", "Epsilon", "gemini/epsilon", "openrouter/google/epsilon", "models/epsilon"] {
        assert_eq!(prices.price(spelled, ServiceTier::Standard).unwrap().found_as, "gemini/epsilon", "{spelled}");
    }
    assert_eq!(prices.price("elsewhere/epsilon", ServiceTier::Standard), None);
}

#[test]
fn every_shipped_row_is_valid() {
    let rows: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows.len() > 500);
    assert!(rows.is_sorted_by_key(|line| row::split(line).unwrap().0));
    let prices = Prices::shipped();
    assert!(prices.date().starts_with("20") && !prices.source().is_empty());
    assert_eq!(prices.rows.len(), rows.len(), "two names differ only in their case");
    for line in rows {
        let (name, rest) = row::split(line).unwrap();
        assert!(Row::parse(rest).is_some(), "{line}");
        let price = prices.price(name, ServiceTier::Standard).unwrap();
        assert_eq!(price.found_as, name);
        let some = Tokens { input: 1, output: 1, cache_read: 1, ..Tokens::default() };
        assert!(price.cost(&some, 1).is_some_and(|cost| !cost.is_zero() && !cost.is_negative()), "{line}");
    }
}

#[test]
fn the_names_that_agents_write_are_found() {
    let prices = Prices::shipped();
    for (spelled, found_as) in [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4", "claude-sonnet-4-20250514"),
        ("litellm_proxy/claude-sonnet-4-20250514", "claude-sonnet-4-20250514"),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "us.anthropic.claude-opus-4-1-20250805-v1:0"),
        ("vertex_ai/claude-opus-4-5@20251101", "vertex_ai/claude-opus-4-5@20251101"),
        ("claude-3-sonnet", "claude-3-sonnet-20240229"),
        ("openai/gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-5.1-2025-11-13", "gpt-5.1-2025-11-13"),
        ("kimi-k2.5", "moonshot/kimi-k2.5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("grok-4", "xai/grok-4"),
        ("deepseek-chat", "deepseek-chat"),
    ] {
        let price = prices.price(spelled, ServiceTier::Standard).unwrap_or_else(|| panic!("{spelled} has a price"));
        assert_eq!(price.found_as, found_as, "{spelled}");
    }
    for unknown in
        ["", "<synthetic>", "sonnet", "claude", "gpt-5-turbo-max", "ollama/llama3.1", "mockllm/model", "default"]
    {
        assert_eq!(prices.price(unknown, ServiceTier::Standard), None, "{unknown}");
    }
}

fn override_for(model: &str, same_as: Option<&str>, prices: &[(ServiceTier, u64, PriceCounter, &str)]) -> Override {
    let tier = |over, counter: PriceCounter, price: &str| {
        let mut rates = Rates::default();
        rates.set(counter, Money::parse(price).unwrap().shared_by(counter.price_unit()));
        Tier { over, rates }
    };
    let prices = prices
        .iter()
        .map(|(service_tier, over, counter, price)| (*service_tier, tier(*over, *counter, price)))
        .collect();
    Override { model: model.to_owned(), same_as: same_as.map(str::to_owned), prices }
}

#[test]
fn overrides_take_precedence_over_the_table() {
    let plain = Prices::read(SOME);
    let prices = plain.clone().with(vec![
        override_for("corp/*", Some("alpha-1"), &[]),
        override_for(
            "corp/special",
            None,
            &[
                (ServiceTier::Standard, 0, PriceCounter::Input, "7"),
                (ServiceTier::Standard, 0, PriceCounter::Output, "8"),
            ],
        ),
        override_for("delta", Some("delta"), &[(ServiceTier::Standard, 0, PriceCounter::Search, "0.02")]),
    ]);
    assert_ne!(plain.digest(), prices.digest());
    let call = Tokens { input: 1_000_000 / 10, output: 100_000, ..Tokens::default() };
    let cost = |model: &str, call: &Tokens| {
        prices.price(model, ServiceTier::Standard)?.cost(call, 1).map(|cost| cost.to_string())
    };
    // 100,000 of each at 3 and 15, and at 7 and 8.
    assert_eq!(cost("corp/anything", &call).as_deref(), Some("1.8"));
    assert_eq!(cost("CORP/Special", &call).as_deref(), Some("1.5"));
    // The rest of the row stays: its tiers, and the separate price of thinking.
    let call = Tokens { output: 10, reasoning: 10, searches: 1, ..Tokens::default() };
    assert_eq!(cost("openrouter/delta", &call).as_deref(), Some("0.02004"));
    let price = prices.price("delta", ServiceTier::Standard).unwrap();
    assert_eq!(
        (price.origin.clone(), price.found_as.as_str(), price.tiers().len()),
        (PriceSource::Override, "delta", 2)
    );
    assert_eq!(
        prices.price("beta-20250101", ServiceTier::Standard),
        plain.price("beta-20250101", ServiceTier::Standard)
    );
}

#[test]
fn an_override_may_lack_a_price_too() {
    let prices = Prices::read(SOME).with(vec![override_for(
        "mine",
        None,
        &[(ServiceTier::Standard, 0, PriceCounter::Input, "1")],
    )]);
    let call = Tokens { input: 1, output: 1, ..Tokens::default() };
    assert_eq!(prices.price("mine", ServiceTier::Standard).unwrap().missing(&call, 1), [PriceCounter::Output]);
    assert_eq!(prices.price("mine", ServiceTier::Batch), None);
}
