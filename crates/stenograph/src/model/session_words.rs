//! Where the records of an agent state properties of a session: its instructions, its tools, the limits of its account. These
//! are tables only; only [`crate::evidence`] reads records with them.

/// Where records state properties of a session. A field is a path in the extra fields of a record.
#[derive(Clone, Copy, Debug)]
pub struct SessionWords {
    /// Windows of a rate limit.
    pub rate_limits: &'static [LimitPaths],
    /// Lists of the tools that the model may call: names, or objects with a schema. The field that is nearest to what was sent
    /// comes first.
    pub tools: &'static [&'static str],
    /// Texts that instruct the model and are not separate messages. The field that is nearest to what was sent comes first.
    pub instructions: &'static [&'static str],
    /// Texts that the agent adds to the next request by itself.
    pub added: &'static [&'static str],
    /// The name of the format of the session that this one was moved from, if its header states that session.
    pub moved_from: &'static [&'static str],
}

impl SessionWords {
    /// No words.
    pub const NONE: SessionWords =
        SessionWords { rate_limits: &[], tools: &[], instructions: &[], added: &[], moved_from: &[] };
}

/// The fields of one window of a rate limit.
#[derive(Clone, Copy, Debug)]
pub struct LimitPaths {
    /// The object with the other fields.
    pub object: &'static str,
    /// The field with the name of the window. If it is `None`, the last key of `object` is the name.
    pub name: Option<&'static str>,
    /// The field with the used share, and the number that means all of it.
    pub used: (&'static str, f64),
    /// The field with the length of the window in minutes.
    pub minutes: Option<&'static str>,
    /// The field with the time when the window ends, in seconds since 1970.
    pub resets: &'static str,
}
