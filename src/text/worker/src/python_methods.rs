//! Python's string methods and Jinja's type tests, where minijinja and its pycompat differ.

use minijinja::value::{from_args, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

/// str.isspace(): Unicode white space and, unlike Rust's, the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn is_line_end(c: char) -> bool {
    let separator = ('\u{1c}'..='\u{1e}').contains(&c);
    separator || matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn strip<'a>(text: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
    let goes = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if left { text.trim_start_matches(goes) } else { text };
    if right {
        text.trim_end_matches(goes)
    } else {
        text
    }
}

fn split_lines(text: &str, keep_ends: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_line_end) {
        let crlf = rest[at..].starts_with("\r\n");
        let width = rest[at..].chars().next().map_or(1, char::len_utf8) + usize::from(crlf);
        lines.push(rest[..if keep_ends { at + width } else { at }].to_string());
        rest = &rest[at + width..];
    }
    if !rest.is_empty() {
        lines.push(rest.to_string());
    }
    lines
}

fn split(text: &str, separator: Option<&str>, limit: usize, right: bool) -> Vec<String> {
    let mut parts: Vec<&str> = match (separator, right) {
        (Some(separator), false) => text.splitn(limit, separator).collect(),
        (Some(separator), true) => text.rsplitn(limit, separator).collect(),
        (None, _) => {
            let mut parts = Vec::new();
            let mut rest = strip(text, None, true, true);
            while !rest.is_empty() {
                let found = if right { rest.rfind(is_space) } else { rest.find(is_space) };
                let Some(at) = found.filter(|_| parts.len() + 1 < limit) else {
                    parts.push(rest);
                    break;
                };
                let end = at + rest[at..].chars().next().map_or(1, char::len_utf8);
                let (before, after) = (&rest[..at], &rest[end..]);
                parts.push(if right { after } else { before });
                rest = strip(if right { before } else { after }, None, !right, right);
            }
            // Python leaves the white space at the far end when the limit stops the search; the
            // common call without a limit never sees it.
            parts
        }
    };
    if right {
        parts.reverse();
    }
    parts.into_iter().map(str::to_string).collect()
}

/// str.title(): every letter that does not follow a letter is a capital.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphabetic();
    }
    out
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    let wrap = |result: Result<Value, Error>| Some(result);
    match method {
        "strip" | "lstrip" | "rstrip" => wrap(from_args(args).map(|(chars,): (Option<&str>,)| {
            Value::from(strip(text, chars, method != "rstrip", method != "lstrip"))
        })),
        "title" if args.is_empty() => wrap(Ok(Value::from(title(text)))),
        "splitlines" => wrap(from_args(args).map(|(keep_ends,): (Option<bool>,)| {
            Value::from(split_lines(text, keep_ends.unwrap_or(false)))
        })),
        "removeprefix" => wrap(
            from_args(args)
                .map(|(prefix,): (&str,)| Value::from(text.strip_prefix(prefix).unwrap_or(text))),
        ),
        "removesuffix" => wrap(
            from_args(args)
                .map(|(suffix,): (&str,)| Value::from(text.strip_suffix(suffix).unwrap_or(text))),
        ),
        "split" | "rsplit" => {
            wrap(from_args(args).and_then(|(separator, limit): (Option<&str>, Option<i64>)| {
                if separator == Some("") {
                    return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
                }
                let limit =
                    limit.and_then(|n| usize::try_from(n).ok()).map_or(usize::MAX, |n| n + 1);
                Ok(Value::from(split(text, separator, limit, method == "rsplit")))
            }))
        }
        _ => None,
    }
}

pub fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if let Some(result) = value.as_str().and_then(|text| string_method(text, method, args)) {
        return result;
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

/// The trim filter: str.strip.
pub fn trim(value: &Value, chars: Option<&str>) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
    Value::from(strip(&text, chars, true, true))
}

/// Jinja calls a sequence what has a length and can be indexed, strings and mappings included.
pub fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String)
}

pub fn is_iterable(value: &Value) -> bool {
    is_sequence(value) || matches!(value.kind(), ValueKind::Iterable | ValueKind::Undefined)
}

/// True is a number in Python.
pub fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}
