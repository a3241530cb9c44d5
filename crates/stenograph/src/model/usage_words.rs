//! Where the records of an agent state the usage of model calls, beyond the usage of their events. These are tables only; only
//! [`crate::evidence`] reads records with them.

/// Where records state the usage of model calls. A field is a path in the extra fields of a record.
#[derive(Clone, Copy, Debug)]
pub struct UsageWords {
    /// Objects with counters, each with the names of its counters. A reader takes every valid counter of an event's own usage.
    pub counters: &'static [(&'static str, &'static [&'static str])],
    /// Whether two responses may have the same id; their times then distinguish them.
    pub do_groups_repeat: bool,
    /// Whether a fork copies calls under new ids; their times and tokens then identify them.
    pub do_forks_rename: bool,
    /// The running total of the session.
    pub total: Option<TotalPaths>,
    /// Facts that state the model of the calls which follow.
    pub model_facts: &'static [&'static str],
    /// The field with the model of an answer, and its value if the agent made up the answer itself.
    pub synthetic_model: Option<(&'static str, &'static str)>,
    /// Fields that state of how many calls the usage or the running total is the sum: a number, or a list with an item per call.
    pub calls: &'static [&'static str],
    /// Fields that sum up calls which other records state one by one.
    pub sums: &'static [&'static str],
    /// Hosted tools that search the web, each with the status of a completed search.
    pub searches: &'static [(&'static str, &'static str)],
    /// Fields of a header with the session whose history the source repeats first.
    pub repeated_sessions: &'static [&'static str],
    /// Where a header states that this history is in another source.
    pub history: Option<HistoryPaths>,
}

impl UsageWords {
    /// No words.
    pub const NONE: UsageWords = UsageWords {
        counters: &[],
        do_groups_repeat: false,
        do_forks_rename: false,
        total: None,
        model_facts: &[],
        synthetic_model: None,
        calls: &[],
        sums: &[],
        searches: &[],
        repeated_sessions: &[],
        history: None,
    };
}

/// The fields of a header that names the source with the records before its own.
#[derive(Clone, Copy, Debug)]
pub struct HistoryPaths {
    /// The object.
    pub object: &'static str,
    /// The field of the object with the session of the other source.
    pub session: &'static str,
    /// The field of the object with the length of the other source in bytes.
    pub length: &'static str,
    /// The field of a record with its number in the conversation.
    pub number: &'static str,
}

/// The fields of a fact with the running total of a session. An empty name means that the fact has no such field.
#[derive(Clone, Copy, Debug)]
pub struct TotalPaths {
    /// The facts.
    pub facts: &'static [&'static str],
    /// The object with the counters.
    pub object: &'static str,
    /// Tokens read, including tokens read from or written to a cache.
    pub input: &'static str,
    /// Tokens written.
    pub output: &'static str,
    /// Tokens read from a cache.
    pub cache_read: &'static str,
    /// Tokens written to a cache.
    pub cache_write: &'static str,
    /// Tokens of thinking.
    pub reasoning: &'static str,
    /// The cost in US dollars.
    pub cost: &'static str,
}
