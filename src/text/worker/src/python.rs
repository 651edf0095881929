//! Values as Python writes them: json.dumps for the tojson filter, repr() and str() for output.

use std::fmt::Write;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// Deeper values are refused: writing them recurses.
const MAX_DEPTH: usize = 128;

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

fn float(value: f64, infinity: &str, nan: &str) -> String {
    if value.is_nan() {
        return nan.to_string();
    }
    if value.is_infinite() {
        return format!("{}{infinity}", if value < 0.0 { "-" } else { "" });
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return format!("{value:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn number(value: &Value, infinity: &str, nan: &str) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), |x| float(x, infinity, nan))
}

/// The options of json.dumps.
struct Dumps {
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
}

impl Dumps {
    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}").ok();
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent.as_str(), depth));
        }
    }

    fn key(&self, key: &Value, out: &mut String) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.string(key.as_str().unwrap_or_default(), out),
            ValueKind::Number | ValueKind::Bool | ValueKind::None => {
                let mut text = String::new();
                self.value(key, 0, &mut text)?;
                self.string(&text, out);
            }
            kind => return Err(invalid(format!("a JSON key must be a string, not {kind}"))),
        }
        out.push_str(&self.key_separator);
        Ok(())
    }

    fn value(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid("the value is nested too deeply for JSON"));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value, "Infinity", "NaN")),
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), out),
            ValueKind::Map => {
                let mut keys = value.try_iter()?.collect::<Vec<_>>();
                if self.sort_keys {
                    keys.sort();
                }
                let entries = keys.into_iter().map(|key| Ok((value.get_item(&key)?, Some(key))));
                self.items('{', entries, '}', depth, out)?;
            }
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?.map(|item| Ok((item, None)));
                self.items('[', items, ']', depth, out)?;
            }
            kind => return Err(invalid(format!("{kind} cannot be written as JSON"))),
        }
        Ok(())
    }

    fn items(
        &self,
        open: char,
        items: impl Iterator<Item = Result<(Value, Option<Value>), Error>>,
        close: char,
        depth: usize,
        out: &mut String,
    ) -> Result<(), Error> {
        out.push(open);
        let mut empty = true;
        for item in items {
            let (item, key) = item?;
            if !std::mem::take(&mut empty) {
                out.push_str(&self.item_separator);
            }
            self.line(depth + 1, out);
            if let Some(key) = key {
                self.key(&key, out)?;
            }
            self.value(&item, depth + 1, out)?;
        }
        if !empty {
            self.line(depth, out);
        }
        out.push(close);
        Ok(())
    }
}

/// The tojson filter as Hugging Face defines it: json.dumps with ensure_ascii off, no HTML escapes.
pub fn tojson(value: &Value, ensure_ascii: Option<bool>, options: Kwargs) -> Result<String, Error> {
    let ensure_ascii = match ensure_ascii {
        Some(given) => given,
        None => options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
    };
    let indent = match options.get::<Option<Value>>("indent")? {
        None => None,
        Some(indent) if indent.is_none() => None,
        Some(indent) => Some(match indent.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(usize::try_from(indent)?.min(64)),
        }),
    };
    let mut dumps = Dumps {
        ensure_ascii,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        item_separator: if indent.is_some() { "," } else { ", " }.to_string(),
        key_separator: ": ".to_string(),
        indent,
    };
    if let Some(separators) = options.get::<Option<Value>>("separators")? {
        if !separators.is_none() {
            let pair = separators.try_iter()?.map(|s| s.to_string()).collect::<Vec<_>>();
            let [item, key] = <[String; 2]>::try_from(pair)
                .map_err(|_| invalid("tojson: separators must be a pair of strings"))?;
            (dumps.item_separator, dumps.key_separator) = (item, key);
        }
    }
    options.assert_all_used()?;
    let mut out = String::new();
    dumps.value(value, 0, &mut out)?;
    Ok(out)
}

fn repr_string(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == '\\' || c == quote => out.extend(['\\', c]),
            c if c.is_control() => write!(out, "\\x{:02x}", c as u32).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push(quote);
}

fn repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(invalid("the value is nested too deeply to be printed"));
    }
    match value.kind() {
        ValueKind::String => repr_string(value.as_str().unwrap_or_default(), out),
        ValueKind::Number => out.push_str(&number(value, "inf", "nan")),
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                repr(&key, depth + 1, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        ValueKind::Seq => {
            let tuple = value.is_tuple();
            out.push(if tuple { '(' } else { '[' });
            let mut count = 0;
            for item in value.try_iter()? {
                out.push_str(if count > 0 { ", " } else { "" });
                repr(&item, depth + 1, out)?;
                count += 1;
            }
            out.push_str(if tuple && count == 1 { "," } else { "" });
            out.push(if tuple { ')' } else { ']' });
        }
        ValueKind::Undefined => out.push_str("Undefined"),
        _ => write!(out, "{value}").unwrap_or_default(),
    }
    Ok(())
}

/// str(value).
pub fn str_of(value: &Value) -> Result<String, Error> {
    if matches!(value.kind(), ValueKind::Number | ValueKind::Map | ValueKind::Seq) {
        let mut out = String::new();
        repr(value, 0, &mut out)?;
        return Ok(out);
    }
    Ok(value.to_string())
}

/// datetime.now().strftime(format).
pub fn strftime(format: &str, unix_s: i64) -> Result<String, Error> {
    let format = std::ffi::CString::new(format)
        .map_err(|_| invalid("strftime_now: the format holds a zero byte"))?;
    let mut buffer = vec![0u8; 1024];
    // SAFETY: `local` is filled by localtime_r before use; strftime writes at most buffer.len().
    let size = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&unix_s, &mut local).is_null() {
            return Err(invalid("strftime_now: the time is out of range"));
        }
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), &local)
    };
    if size == 0 && !format.is_empty() {
        return Err(invalid("strftime_now: the result is empty or longer than 1023 bytes"));
    }
    buffer.truncate(size);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}
