//! Which tokenizer `--tokenizer` means. The vocabularies are OpenAI's and stand in a crate; for the models of others their count is
//! an estimate, and is called one.

use stenograph::edit::tokens::Tokenizer;
use tiktoken_rs::CoreBPE;
use tiktoken_rs::tokenizer::{Tokenizer as Vocabulary, get_tokenizer};

use crate::error::CommandError;

/// Somebody who counts.
pub struct Counter {
    /// Counts.
    pub tokenizer: Tokenizer<'static>,
    vocabulary: Option<Vocabulary>,
    named: By,
}

/// What a counter was named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The model whose tokens are to be counted.
    Model,
    /// Its own name, which says nothing of a model.
    Itself,
}

/// The counter of that name: `bytes`, a vocabulary, or a model that has one of them.
pub fn named(name: &str) -> Result<Counter, CommandError> {
    let (vocabulary, named) = match name {
        "bytes" => return Ok(Counter { tokenizer: Tokenizer::default(), vocabulary: None, named: By::Itself }),
        "o200k" | "o200k_base" => (Some(Vocabulary::O200kBase), By::Itself),
        "cl100k" | "cl100k_base" => (Some(Vocabulary::Cl100kBase), By::Itself),
        model => (get_tokenizer(model), By::Model),
    };
    let (name, table): (_, &'static CoreBPE) = match vocabulary {
        // The tables of both are the same; only marks differ that no text holds.
        Some(Vocabulary::O200kBase | Vocabulary::O200kHarmony) => ("o200k", tiktoken_rs::o200k_base_singleton()),
        Some(Vocabulary::Cl100kBase) => ("cl100k", tiktoken_rs::cl100k_base_singleton()),
        _ => {
            return Err(CommandError::new(format!("no tokenizer is called {name}"))
                .hint("there are bytes, o200k and cl100k; a model of OpenAI's, such as gpt-4o, stands for its own"));
        }
    };
    Ok(Counter { tokenizer: Tokenizer::new(name, |text| table.count_ordinary(text) as u64), vocabulary, named })
}

impl Counter {
    /// Whether its count is exact for a transcript that states that model, or none: then it is the model that was named.
    pub fn is_exact(&self, model: Option<&str>) -> bool {
        let Some(model) = model else { return self.named == By::Model };
        let same = |a: Vocabulary| match a {
            Vocabulary::O200kHarmony => Vocabulary::O200kBase,
            other => other,
        };
        let of_model = get_tokenizer(model).map(same);
        of_model.is_some() && of_model == self.vocabulary.map(same)
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
    fn who_names_a_model_says_which_one_it_was() {
        let exact = |name: &str| named(name).is_ok_and(|counter| counter.is_exact(None));
        assert!(exact("gpt-4o") && exact("gpt-4"));
        assert!(!exact("o200k") && !exact("cl100k_base") && !exact("bytes"));
    }
}
