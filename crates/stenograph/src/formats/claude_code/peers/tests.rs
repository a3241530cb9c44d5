//! One line or two for each rule.
