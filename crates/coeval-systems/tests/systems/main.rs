//! Sim configs and systems, as programs meet them.
mod agreement;
mod fuzz;
mod refusals;
mod running;
mod values;

/// The head of a small config, five lines; what a test is about begins on line 6.
pub(crate) const HEAD: &str = "[config]\nid = \"8d0c5a52-6a3e-4a52-9a53-3c5e0d6e7b10\"\nname = \"n\"\n[genesis]\nstart = \"2028-04-25T05:30:00 TAI\"\n";

/// The config of `coeval demo`.
pub(crate) const DEMO: &str = include_str!("../../../../examples/demo/demo.toml");
