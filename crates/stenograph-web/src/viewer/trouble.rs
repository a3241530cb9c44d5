//! What can go wrong while a request is answered, and the status it has.

use axum::http::StatusCode;
use stenograph_store::{Error, Problem};

/// Why a request has no answer.
#[derive(Debug)]
pub struct AnswerProblem {
    pub status: StatusCode,
    /// One sentence for people.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl AnswerProblem {
    pub fn not_found(message: impl Into<String>) -> AnswerProblem {
        AnswerProblem { status: StatusCode::NOT_FOUND, message: message.into(), hint: None }
    }

    pub fn bad(message: impl Into<String>) -> AnswerProblem {
        AnswerProblem { status: StatusCode::BAD_REQUEST, message: message.into(), hint: None }
    }

    pub fn hint(self, hint: impl Into<String>) -> AnswerProblem {
        AnswerProblem { hint: Some(hint.into()), ..self }
    }
}

impl From<Error> for AnswerProblem {
    fn from(error: Error) -> AnswerProblem {
        let status = match error.problem {
            Problem::Missing | Problem::IndexMissing | Problem::NotKept | Problem::NoNote { .. } => {
                StatusCode::NOT_FOUND
            }
            // Mistakes of the one who asks for a change of marks.
            Problem::EmptyMark
            | Problem::BadTag
            | Problem::LongTitle { .. }
            | Problem::LongNote { .. }
            | Problem::TooManyTags { .. }
            | Problem::TooManyNotes { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let hint = match error.problem {
            Problem::Missing => Some("the file is gone and was never archived"),
            _ => error.hint(),
        };
        AnswerProblem { status, message: error.to_string(), hint: hint.map(str::to_owned) }
    }
}
