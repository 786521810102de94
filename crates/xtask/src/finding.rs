//! What a rule reports: one line, with the place and the way out.

use std::fmt;

/// One broken rule at one place. Ordered by file, line and rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) file: String,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    pub(crate) what_to_do: String,
    pub(crate) is_error: bool,
}

impl Finding {
    pub(crate) fn error(file: &str, line: usize, rule: &'static str, what_to_do: impl Into<String>) -> Self {
        Finding { file: file.into(), line, rule, what_to_do: what_to_do.into(), is_error: true }
    }

    pub(crate) fn warning(
        file: &str,
        line: usize,
        rule: &'static str,
        what_to_do: impl Into<String>,
    ) -> Self {
        Finding { is_error: false, ..Self::error(file, line, rule, what_to_do) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = if self.is_error { "" } else { "warning: " };
        write!(f, "{}:{}: {}: {level}{}", self.file, self.line, self.rule, self.what_to_do)
    }
}
