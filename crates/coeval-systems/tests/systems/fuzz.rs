//! Whatever a file holds, reading it ends with a config or one line, never with a panic.
use crate::DEMO;
use coeval_systems::SimConfig;
use coeval_systems::config::value_from_toml;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SEED: u64 = 0x5eed_c0f1;
const PIECES: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"",
    "'",
    "\n",
    "\r",
    "#",
    "type",
    "motion",
    "\"map\"",
    "value",
    "frame",
    "earth",
    "nan",
    "-inf",
    "1e999",
    "0x",
    "9223372036854775808",
    "-0",
    "[[",
    "\"\"\"",
    "\\u0000",
    "2028-04-25",
    "entities",
    "mu",
    "systems.x",
    "\u{feff}",
    "ü",
    "tags",
    "rate",
];

/// One line that names where, for any refusal.
fn check(source: &str) {
    match SimConfig::parse("f", source) {
        Ok(config) => {
            // What was accepted can be used.
            config.digest();
            config.initial();
        }
        Err(error) => {
            let lines = source.matches('\n').count() + 1;
            assert!((1..=lines).contains(&error.line), "line {} of {lines}", error.line);
            assert!(!error.message.is_empty());
            assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
        }
    }
}

/// The demo's config without most of its satellites, so that faults hit many kinds of lines.
fn short_demo() -> String {
    DEMO.lines().take(64).map(|line| format!("{line}\n")).collect()
}

#[test]
fn mutated_configs_and_garbage_never_panic() {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let (demo, example) = (short_demo(), include_str!("../../src/config/example.toml"));
    let mut accepted = 0;
    for i in 0..5_000 {
        let source = if i % 5 == 0 {
            garbage(&mut rng)
        } else {
            mutated(&mut rng, if i % 2 == 0 { &demo } else { example })
        };
        if std::panic::catch_unwind(|| check(&source)).is_err() {
            panic!("seed {SEED:#x}, input {i}: {source:?}");
        }
        accepted += usize::from(SimConfig::parse("f", &source).is_ok());
        let line = source.lines().nth(rng.random_range(0..8)).unwrap_or_default();
        if let Err(error) = value_from_toml(line, &|_| Err("nobody".into())) {
            assert!(!error.is_empty() && !error.chars().any(char::is_control), "{error:?}");
        }
    }
    assert!(accepted > 50, "only {accepted} inputs got past the TOML reader and every check");
}

fn garbage(rng: &mut ChaCha8Rng) -> String {
    let bytes: Vec<u8> = (0..rng.random_range(0..400)).map(|_| rng.random()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn mutated(rng: &mut ChaCha8Rng, source: &str) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..bytes.len());
        let end = rng.random_range(at..bytes.len().min(at + 30));
        match rng.random_range(0..5) {
            0 => bytes[at] = rng.random(),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copied = bytes[at..end].to_vec();
                let to = rng.random_range(0..bytes.len());
                bytes.splice(to..to, copied);
            }
            3 => bytes.truncate(at + 1),
            _ => {
                let piece = PIECES[rng.random_range(0..PIECES.len())];
                bytes.splice(at..end, piece.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
