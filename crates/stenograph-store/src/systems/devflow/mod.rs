//! Administration of devflow's runs: archiving, restoring and removing them. Recording runs is in `layouts/devflow/`.

pub mod archive;
mod compare;
pub mod retention;
mod tree;
