//! Finds the tokenizer for `--tokenizer`. The vocabularies are OpenAI's and come from a crate; for other vendors' models the
//! count is an estimate, and reports say so.

use stenograph::edit::tokens::Tokenizer;
use tiktoken_rs::CoreBPE;
use tiktoken_rs::tokenizer::{Tokenizer as Vocabulary, get_tokenizer};

use crate::error::CommandError;

/// A tokenizer and the name that selected it.
pub struct TokenCounter {
    pub tokenizer: Tokenizer<'static>,
    vocabulary: Option<Vocabulary>,
    named: SelectedBy,
}

/// What kind of name selected a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectedBy {
    /// The model whose tokens to count.
    Model,
    /// The tokenizer's own name, which does not identify a model.
    Name,
}

/// Finds a counter: `bytes`, a vocabulary, or a model that uses a vocabulary.
pub fn named(name: &str) -> Result<TokenCounter, CommandError> {
    let (vocabulary, named) = match name {
        "bytes" => {
            return Ok(TokenCounter { tokenizer: Tokenizer::default(), vocabulary: None, named: SelectedBy::Name });
        }
        "o200k" | "o200k_base" => (Some(Vocabulary::O200kBase), SelectedBy::Name),
        "cl100k" | "cl100k_base" => (Some(Vocabulary::Cl100kBase), SelectedBy::Name),
        model => (get_tokenizer(model), SelectedBy::Model),
    };
    let (name, table): (_, &'static CoreBPE) = match vocabulary {
        // Both use the same table; they differ only in special tokens, which texts do not contain.
        Some(Vocabulary::O200kBase | Vocabulary::O200kHarmony) => ("o200k", tiktoken_rs::o200k_base_singleton()),
        Some(Vocabulary::Cl100kBase) => ("cl100k", tiktoken_rs::cl100k_base_singleton()),
        _ => {
            return Err(CommandError::new(format!("unknown tokenizer: {name}"))
                .hint("use bytes, o200k, cl100k, or the name of an OpenAI model, such as gpt-4o"));
        }
    };
    Ok(TokenCounter { tokenizer: Tokenizer::new(name, |text| table.count_ordinary(text) as u64), vocabulary, named })
}

impl TokenCounter {
    /// Whether the count is exact for a transcript of that model. If the transcript states no model, it is exact for the model
    /// that `--tokenizer` names.
    pub fn is_exact(&self, model: Option<&str>) -> bool {
        let Some(model) = model else { return self.named == SelectedBy::Model };
        let base_vocabulary = |a: Vocabulary| match a {
            Vocabulary::O200kHarmony => Vocabulary::O200kBase,
            other => other,
        };
        let of_model = get_tokenizer(model).map(base_vocabulary);
        of_model.is_some() && of_model == self.vocabulary.map(base_vocabulary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_counts_as_its_own_models_do() {
        let counter = named("gpt-4o").unwrap_or_else(|_| unreachable!());
        assert_eq!(counter.tokenizer.text("hello world"), 2);
        assert!(counter.is_exact(Some("gpt-4o-mini")) && !counter.is_exact(Some("gpt-4")));
        assert!(!counter.is_exact(Some("claude-sonnet-4-5")));
        assert!(named("nobody").is_err());
    }

    #[test]
    fn a_model_name_makes_the_count_exact() {
        let exact = |name: &str| named(name).is_ok_and(|counter| counter.is_exact(None));
        assert!(exact("gpt-4o") && exact("gpt-4"));
        assert!(!exact("o200k") && !exact("cl100k_base") && !exact("bytes"));
    }
}
