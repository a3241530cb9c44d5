//! Reads the published list: selects models and the prices of each. Prices are parsed from their decimal text and never become
//! floating point numbers.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use stenograph::ledger::{Money, PriceCounter, Rates, ServiceTier};

use crate::Failure;

/// The providers of the selected models, as the list spells them: vendors that agents use, and clouds that sell the vendors'
/// models.
const PROVIDERS: [&str; 24] = [
    "anthropic",
    "bedrock",
    "bedrock_converse",
    "codestral",
    "dashscope",
    "deepseek",
    "gemini",
    "github_copilot",
    "minimax",
    "mistral",
    "moonshot",
    "openai",
    "vertex_ai",
    "vertex_ai-anthropic_models",
    "vertex_ai-deepseek_models",
    "vertex_ai-language-models",
    "vertex_ai-minimax_models",
    "vertex_ai-mistral_models",
    "vertex_ai-moonshot_models",
    "vertex_ai-openai_models",
    "vertex_ai-qwen_models",
    "vertex_ai-zai_models",
    "xai",
    "zai",
];

/// Parts of the names of the vendors' models; clouds sell other models too.
const FAMILIES: [&str; 20] = [
    "chat-latest",
    "claude",
    "codestral",
    "codex",
    "deepseek",
    "devstral",
    "gemini",
    "glm",
    "gpt-",
    "grok",
    "kimi",
    "magistral",
    "minimax",
    "ministral",
    "mistral",
    "mixtral",
    "o1",
    "o3",
    "o4-",
    "qw",
];

/// Parts of the names of models that are not for conversations in text, although the list gives them that mode.
const NOT_TEXT_CHAT: [&str; 8] = ["audio", "embed", "ft:", "image", "live", "realtime", "search-preview", "tts"];

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// The rows of the selected models, by name.
pub fn rows(list: &str) -> Result<BTreeMap<String, String>, Failure> {
    let list: BTreeMap<String, Fields<'_>> = serde_json::from_str(list)?;
    let taken = list.iter().filter(|(name, fields)| is_taken(name, fields));
    Ok(taken.filter_map(|(name, fields)| Some((name.clone(), row(fields)?))).collect())
}

fn is_taken(name: &str, fields: &Fields<'_>) -> bool {
    let text = |key: &str| fields.get(key).map(|raw| raw.get().trim_matches('"')).unwrap_or_default();
    let lower = name.to_lowercase();
    // The list adds a region or a commitment to the names of some models, but agents do not use such names.
    let is_plain = lower.matches('/').count() <= 1 || lower.starts_with("vertex_ai/");
    PROVIDERS.contains(&text("litellm_provider"))
        && ["chat", "responses"].contains(&text("mode"))
        && FAMILIES.iter().any(|family| lower.contains(family))
        && !NOT_TEXT_CHAT.iter().any(|word| lower.contains(word))
        && is_plain
        && !name.contains([' ', ';', '='])
}

/// The prices of a model, by service tier and by the context size above which they apply.
type Blocks = BTreeMap<(ServiceTier, u64), Rates>;

/// The text after a model's name; `None` if the list has no price. The list also uses 0 for an unknown price.
fn row(fields: &Fields<'_>) -> Option<String> {
    let mut blocks = Blocks::new();
    for (key, raw) in fields {
        if let Some((counter, tier, over)) = meaning(key) {
            put(&mut blocks, tier, from_size(fields, over), counter, raw);
        }
    }
    // Some entries use an older key for the price of cache reads.
    if let Some(raw) = fields.get("input_cost_per_token_cache_hit")
        && !fields.contains_key("cache_read_input_token_cost")
    {
        put(&mut blocks, ServiceTier::Standard, 0, PriceCounter::CacheRead, raw);
    }
    let tiers = fields.get("tiered_pricing").and_then(|raw| serde_json::from_str::<Vec<Fields<'_>>>(raw.get()).ok());
    for tier in tiers.iter().flatten() {
        let range = tier.get("range").and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok())?;
        let over = range.first()?.get().trim_end_matches(".0").parse().ok()?;
        for (key, raw) in tier {
            if let Some((counter, ServiceTier::Standard, 0)) = meaning(key) {
                put(&mut blocks, ServiceTier::Standard, over, counter, raw);
            }
        }
    }
    if let Some(rate) = search(fields) {
        blocks.entry((ServiceTier::Standard, 0)).or_default().set(PriceCounter::Search, Some(rate));
    }
    add_fast(fields, &mut blocks);
    let usual = blocks.get(&(ServiceTier::Standard, 0))?;
    let is_priced = |counter| usual.of(counter).is_some_and(|rate: Money| !rate.is_zero());
    if usual.of(PriceCounter::Input).is_none() || !is_priced(PriceCounter::Output) {
        return None;
    }
    // A block without an input or an output price is a mistake in the list.
    blocks.retain(|_, rates| rates.of(PriceCounter::Input).is_some() && rates.of(PriceCounter::Output).is_some());
    Some(blocks.iter().map(|((tier, over), rates)| spell(*tier, *over, rates)).collect::<Vec<_>>().join("; "))
}

fn put(blocks: &mut Blocks, tier: ServiceTier, over: u64, counter: PriceCounter, raw: &RawValue) {
    if let Some(rate) = Money::parse(raw.get().trim_matches('"')) {
        blocks.entry((tier, over)).or_default().set(counter, Some(rate));
    }
}

/// The meaning of a key of the list: which counter it prices, at which service tier, and above which context size.
fn meaning(key: &str) -> Option<(PriceCounter, ServiceTier, u64)> {
    const STEMS: [(&str, PriceCounter); 6] = [
        ("cache_creation_input_token_cost_above_1hr", PriceCounter::CacheWriteHour),
        ("cache_creation_input_token_cost", PriceCounter::CacheWrite),
        ("cache_read_input_token_cost", PriceCounter::CacheRead),
        ("input_cost_per_token", PriceCounter::Input),
        ("output_cost_per_reasoning_token", PriceCounter::Reasoning),
        ("output_cost_per_token", PriceCounter::Output),
    ];
    let (rest, counter) = STEMS.iter().find_map(|(stem, counter)| Some((key.strip_prefix(stem)?, *counter)))?;
    let (over, rest) = match rest.strip_prefix("_above_").and_then(|rest| rest.split_once("k_tokens")) {
        Some((thousands, rest)) => (thousands.parse::<u64>().ok()? * 1000, rest),
        None => (0, rest),
    };
    let tier = match rest {
        "" => ServiceTier::Standard,
        "_batches" => ServiceTier::Batch,
        "_flex" => ServiceTier::Flex,
        "_priority" => ServiceTier::Priority,
        _ => return None,
    };
    Some((counter, tier, over))
}

/// The context size above which a price applies. One provider's higher prices apply from the stated size, all others' above it.
fn from_size(fields: &Fields<'_>, over: u64) -> u64 {
    let is_inclusive = fields.get("litellm_provider").is_some_and(|provider| provider.get() == "\"xai\"");
    if is_inclusive { over.saturating_sub(1) } else { over }
}

/// The price of a search, if it is the same for every size of the search context: sessions do not state that size.
fn search(fields: &Fields<'_>) -> Option<Money> {
    let by_size: Fields<'_> = serde_json::from_str(fields.get("search_context_cost_per_query")?.get()).ok()?;
    let mut rates = by_size.values().map(|raw| Money::parse(raw.get()));
    let first = rates.next()??;
    (!first.is_zero() && rates.all(|rate| rate == Some(first))).then_some(first)
}

/// Adds the fast tier, whose price is a multiple of the standard price.
fn add_fast(fields: &Fields<'_>, blocks: &mut Blocks) {
    let entry = fields.get("provider_specific_entry");
    let entry: Option<Fields<'_>> = entry.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let times = entry.as_ref().and_then(|entry| entry.get("fast")).map(|raw| raw.get().trim_end_matches(".0"));
    let Some(times) = times.and_then(|times| times.parse::<u64>().ok()) else { return };
    let usual: Vec<_> = blocks
        .iter()
        .filter(|((tier, _), _)| *tier == ServiceTier::Standard)
        .map(|(at, rates)| (at.1, *rates))
        .collect();
    for (over, rates) in usual {
        let mut fast = Rates::default();
        for counter in PriceCounter::ALL.into_iter().filter(|counter| *counter != PriceCounter::Search) {
            fast.set(counter, rates.of(counter).and_then(|rate| rate.times(times)));
        }
        blocks.insert((ServiceTier::Fast, over), fast);
    }
}

/// Formats a block for the table.
fn spell(tier: ServiceTier, over: u64, rates: &Rates) -> String {
    let mut label = Vec::new();
    if tier != ServiceTier::Standard {
        label.push(tier.name().to_owned());
    }
    if over > 0 {
        label.push(format!("over {over}"));
    }
    let label = if label.is_empty() { String::new() } else { format!("{}: ", label.join(" ")) };
    let stated = PriceCounter::ALL
        .into_iter()
        .filter_map(|counter| Some((counter, rates.of(counter)?.times(counter.price_unit())?)));
    let stated: Vec<String> = stated.map(|(counter, price)| format!("{} {price}", counter.name())).collect();
    format!("{label}{}", stated.join(", "))
}
