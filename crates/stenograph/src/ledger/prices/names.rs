//! How agents spell the names of models: with a host prefix, a region, a release date, a context size. Every spelling here
//! identifies the model beyond doubt; a similar name is another model.

/// Prefixes of model names whose prices are those of the vendor: the vendors themselves, and hosts that charge the same.
const HOSTS: [&str; 31] = [
    "alibaba",
    "amazon-bedrock",
    "anthropic",
    "bedrock",
    "codestral",
    "converse",
    "dashscope",
    "deepseek",
    "gemini",
    "google",
    "google-vertex",
    "google-vertex-anthropic",
    "litellm_proxy",
    "minimax",
    "mistral",
    "mistralai",
    "models",
    "moonshot",
    "moonshot-ai",
    "moonshotai",
    "openai",
    "openrouter",
    "qwen",
    "vertex",
    "vertex_ai",
    "x-ai",
    "xai",
    "z-ai",
    "zai",
    "zai-org",
    "zhipuai",
];

/// Vendors that are part of the names of their models in the table.
const LISTED_UNDER: [&str; 9] =
    ["codestral", "dashscope", "deepseek", "gemini", "minimax", "mistral", "moonshot", "xai", "zai"];

/// The longest name that is looked up: a name has many spellings, and no model has a longer one.
pub(super) const NAME_LEN_MAX: usize = 200;

/// The names under which a model may be listed, the most exact first, in lower case. The last one is fully stripped, and may
/// still lack a date that the table has.
pub(super) fn spellings(model: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut name = model.to_ascii_lowercase();
    push(&mut found, &name);
    if let Some(rest) = name.strip_suffix("[1m]") {
        name = rest.to_owned();
        push(&mut found, &name);
    }
    while let Some((host, rest)) = name.split_once('/')
        && HOSTS.contains(&host)
    {
        name = rest.to_owned();
        push(&mut found, &name);
    }
    if let Some(rest) = without_region(&name) {
        name = rest;
        push(&mut found, &name);
    }
    if let Some(rest) = without_vendor(&name) {
        name = rest;
        push(&mut found, &name);
    }
    if let Some((model, release)) = name.split_once('@') {
        name = if is_date(release) { format!("{model}-{release}") } else { model.to_owned() };
        push(&mut found, &name);
    }
    if name.starts_with("claude-") && name.contains('.') {
        // Some hosts write the version numbers of this vendor's models with dots, the vendor with hyphens.
        name = name.replace('.', "-");
        push(&mut found, &name);
    }
    if let Some(rest) = without_date(&name) {
        name = rest.to_owned();
        push(&mut found, &name);
    }
    found
}

/// Adds a name, and the same name under the vendors that are part of names in the table.
fn push(found: &mut Vec<String>, name: &str) {
    found.push(name.to_owned());
    if !name.contains('/') {
        found.extend(LISTED_UNDER.iter().map(|vendor| format!("{vendor}/{name}")));
    }
}

/// `us.anthropic.claude-x-v1:0` without `us.`.
fn without_region(name: &str) -> Option<String> {
    const REGIONS: [&str; 7] = ["apac", "au", "eu", "global", "jp", "us", "us-gov"];
    let (region, rest) = name.split_once('.')?;
    (REGIONS.contains(&region) && rest.contains('.')).then(|| rest.to_owned())
}

/// `anthropic.claude-x-20250101-v1:0` without the vendor and the version.
fn without_vendor(name: &str) -> Option<String> {
    const VENDORS: [&str; 9] =
        ["anthropic", "deepseek", "minimax", "mistral", "moonshot", "moonshotai", "openai", "qwen", "zai"];
    let (vendor, rest) = name.split_once('.')?;
    if !VENDORS.contains(&vendor) {
        return None;
    }
    let is_version = |text: &str| {
        let mut numbers = text.split(':');
        numbers.clone().count() <= 2
            && numbers.all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let model = match rest.rsplit_once("-v") {
        Some((model, version)) if is_version(version) => model,
        Some(_) | None => rest,
    };
    Some(model.to_owned())
}

/// A name without its release date: `-20250929` or `-2025-08-07`, but not `-0613`.
fn without_date(name: &str) -> Option<&str> {
    for len in ["-20250929".len(), "-2025-09-29".len()] {
        if let Some((model, date)) = name.split_at_checked(name.len().saturating_sub(len))
            && !model.is_empty()
            && date.strip_prefix('-').is_some_and(is_date)
        {
            return Some(model);
        }
    }
    None
}

/// Whether a text is a date of this century: `20250929` or `2025-09-29`.
pub(super) fn is_date(text: &str) -> bool {
    let digits: String = match text.len() {
        8 => text.to_owned(),
        10 if text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == (at == 4 || at == 7)) => {
            text.replace('-', "")
        }
        _ => return false,
    };
    let number = |range| digits.get(range).and_then(|digits: &str| digits.parse::<u32>().ok());
    digits.starts_with("20")
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number(4..6).is_some_and(|month| (1..=12).contains(&month))
        && number(6..8).is_some_and(|day| (1..=31).contains(&day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_leads_to_the_same_name() {
        for spelled in [
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4-5-20250929",
            "openrouter/anthropic/claude-sonnet-4.5",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-sonnet-4-5-v1",
            "vertex_ai/claude-sonnet-4-5@20250929",
            "claude-sonnet-4-5@default",
            "claude-sonnet-4-5[1m]",
            "Claude-Sonnet-4-5-20250929[1M]",
        ] {
            assert!(spellings(spelled).iter().any(|name| name == "claude-sonnet-4-5"), "{spelled}");
        }
    }

    #[test]
    fn other_parts_of_a_name_are_not_stripped() {
        for (spelled, never) in [
            ("ollama/claude-sonnet-4-5", "claude-sonnet-4-5"),
            ("gpt-4-0613", "gpt-4"),
            ("claude-sonnet-4-5-20259929", "claude-sonnet-4-5"),
            ("gpt-5-high", "gpt-5"),
            ("gpt.5", "gpt-5"),
            ("anthropic.claude-x-very", "claude-x"),
        ] {
            assert!(!spellings(spelled).iter().any(|name| name == never), "{spelled}");
        }
    }
}
