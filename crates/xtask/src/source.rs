//! Rust text without what a rule must not look at: comments, literals, and code that exists only in tests.

/// The code of a file: comments and the contents of literals are blanked, and so is whatever stands under `#[cfg(test)]`.
/// Lines stay where they are.
pub(crate) fn production_code(text: &str) -> String {
    without_tests(&without_comments(text))
}

/// The modules of a file that exist only in tests and live in files of their own (`#[cfg(test)] mod name;`).
pub(crate) fn test_modules(text: &str) -> Vec<String> {
    let code = without_comments(text);
    let mut modules = Vec::new();
    for after in code.split("#[cfg(test)]").skip(1) {
        let item = after.split_inclusive([';', '{']).next().unwrap_or("");
        let mut words = item.split_whitespace().skip_while(|word| word.starts_with("pub"));
        if let (Some("mod"), Some(name)) = (words.next(), words.next())
            && let Some(name) = name.strip_suffix(';')
        {
            modules.push(name.to_owned());
        }
    }
    modules
}

/// Blanks comments, and strings and characters between their quotes.
pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (keep, skip) = next_token(rest, first, out.chars().next_back());
        out.push_str(&rest[..keep]);
        out.extend(rest[keep..keep + skip].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[keep + skip..];
    }
    out
}

/// How many bytes at the start of `rest` to keep, and how many to blank after them.
fn next_token(rest: &str, first: char, before: Option<char>) -> (usize, usize) {
    if rest.starts_with("//") {
        return (0, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (0, block_comment(rest));
    }
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !in_word && let Some(length) = raw_string(rest) {
        return (0, length);
    }
    match first {
        '"' => (0, quoted(rest, '"')),
        // A lifetime has no closing quote after one character.
        '\'' if rest[1..].starts_with('\\') => (0, quoted(rest, '\'')),
        '\'' => match rest[1..].chars().next().filter(|c| rest[1 + c.len_utf8()..].starts_with('\'')) {
            Some(c) => (0, 2 + c.len_utf8()),
            None => (1, 0),
        },
        _ => (first.len_utf8(), 0),
    }
}

/// The length of a block comment, nested ones included.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of a raw string with its quotes and hashes, if one starts here.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(prefix.len() + hashes + 1 + length)
}

/// The length of a literal between quotes with escapes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Blanks the item after each `#[cfg(test)]`, of code without comments and literals.
fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) =
        ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|attribute| rest.find(attribute)).min()
    {
        let length = item(&rest[at..]);
        out.push_str(&rest[..at]);
        out.extend(rest[at..at + length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[at + length..];
    }
    out + rest
}

/// The length of an item with its attributes: up to the `;`, or the end of its braces.
fn item(rest: &str) -> usize {
    let (mut brackets, mut braces) = (0i32, 0i32);
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 && brackets == 0 {
                    // `use a::{b, c};` ends behind its braces.
                    return at + 1 + usize::from(rest[at + 1..].starts_with(';'));
                }
            }
            ';' if brackets == 0 && braces == 0 => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "a // one\n/* two /* three\n */ four */ b \"fi\\\"ve\n\" c r#\"six \" \"# d 'x' '\\'' e<'f> br\"g\" har\"h\"";
        let code = without_comments(text);
        assert_eq!(code.lines().count(), text.lines().count());
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "b", "c", "d", "e<'f>", "har"]);
        assert_eq!(without_comments("fn ü() { \"ä\" } /* open").trim_end(), "fn ü() {     }");
    }

    #[test]
    fn tests_are_blanked_and_what_follows_is_not() {
        let code = production_code(
            "use a;\n#[cfg(test)]\nuse b::{c, d};\n#[cfg(test)]\n#[allow(e)]\nmod tests { fn f() { \"}\"; } }\nfn g() {}\n\
             #[cfg(test)]\nimpl<const N: usize> From<[h; 2]> for i { fn j() {} }\nk!();\n\
             #[cfg(all(test, not(l)))]\nmod m { n }\no",
        );
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["use", "a;", "fn", "g()", "{}", "k!();", "o"]);
        assert_eq!(code.lines().nth(6), Some("fn g() {}"));
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_named() {
        let text = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod oracle;\n#[cfg(test)] mod inline { }\nmod real;";
        assert_eq!(test_modules(text), ["tests", "oracle"]);
    }
}
