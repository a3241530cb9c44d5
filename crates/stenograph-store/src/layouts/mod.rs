//! Layouts: how live systems spread their files in a folder. A layout knows one system; what the bytes mean is the formats' part.

pub mod devflow;
