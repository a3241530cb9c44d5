//! One rollout for each rule.
