//! Makes a failing scenario small, by delta debugging (Zeller and Hildebrandt 2002): chunks of its actions, then whole
//! sites, are left out for as long as the same check fails.
use crate::check::Check;
use crate::run::perform;
use crate::scenario::{Keep, Scenario};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Makes a scenario small that breaks `check`, in at most `tries` runs; what is left of it.
pub fn shrink(scenario: &Scenario, check: Check, mut tries: usize) -> Keep {
    let mut fails = |keep: &Keep| {
        tries = tries.saturating_sub(1);
        tries > 0 && {
            let outcome = perform(&scenario.clone().only(keep), None);
            outcome.violations.iter().any(|violation| violation.check == check)
        }
    };
    let mut actions: Vec<usize> = scenario.actions.iter().map(|(number, ..)| *number).collect();
    let mut best = Keep::default();
    // Sites first and again at the end: without a site, much else is not needed.
    drop_sites(scenario, &mut best, &mut fails);
    let mut chunk = actions.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < actions.len() {
            let rest = actions.iter().enumerate().filter(|(n, _)| !(at..at + chunk).contains(n));
            let rest: Vec<usize> = rest.map(|(_, action)| *action).collect();
            let keep = Keep { actions: Some(rest.iter().copied().collect()), ..best.clone() };
            if fails(&keep) {
                (actions, best) = (rest, keep);
            } else {
                at += chunk;
            }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    drop_sites(scenario, &mut best, &mut fails);
    best
}

fn drop_sites(scenario: &Scenario, best: &mut Keep, fails: &mut impl FnMut(&Keep) -> bool) {
    for site in scenario.plan.sites().into_iter().rev() {
        let mut fewer = best.clone();
        if fewer.without.insert(site) && fewer.without.len() + 1 < scenario.plan.skews.len() && fails(&fewer)
        {
            *best = fewer;
        }
    }
}

/// Numbers as people write them: `3-17,22`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Numbers(pub BTreeSet<usize>);

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for &number in &self.0 {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => runs.push((number, number)),
            }
        }
        let text = |(first, last): (usize, usize)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        f.write_str(&runs.into_iter().map(text).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("`{text}` is not a number"));
        let mut all = BTreeSet::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if last < first || last - first > 1_000_000 {
                return Err(format!("`{part}` is not a range from a lesser number to a greater"));
            }
            all.extend(first..=last);
        }
        Ok(Self(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for text in ["", "7", "3-17,22", "0-1,5,9-12"] {
            assert_eq!(text.parse::<Numbers>().map(|numbers| numbers.to_string()).as_deref(), Ok(text));
        }
        for text in ["a", "3-", "9-2", "0-99999999999"] {
            assert!(text.parse::<Numbers>().is_err(), "{text}");
        }
    }
}
