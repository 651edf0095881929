//! Chat templates: minijinja set up as transformers sets up Jinja2, within limits.

use std::fmt;
use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{context, AutoEscape, Environment, Error, ErrorKind, State, Value};

use crate::{python, python_methods, Failure};

/// Instructions per rendering: a thousand times what a long conversation takes, a second of work.
const FUEL: u64 = 20_000_000;
/// Ten times the largest known.
const MAX_SOURCE_BYTES: usize = 1 << 19;
const MAX_OUTPUT_BYTES: usize = 1 << 28;
const NAME: &str = "chat template";

pub struct ChatTemplate {
    environment: Environment<'static>,
}

/// Marks an error as raised by the template itself.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// Refuses to grow beyond the limit.
struct Output(Vec<u8>);

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_OUTPUT_BYTES - self.0.len() {
            return Err(io::Error::other(format!("the output exceeds {MAX_OUTPUT_BYTES} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failure(error: Error) -> Failure {
    let line = error.line().map_or_else(String::new, |line| format!("line {line}: "));
    let mut reason = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        if let Some(raised) = cause.downcast_ref::<Raised>() {
            return Failure::Raised(format!("{line}{raised}"));
        }
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    Failure::Bad(format!("{line}{reason}"))
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

/// Jinja reads any line end as \n. A {% generation %} block marks what training counts as the
/// assistant's; for rendering it is a scope, which is what {% with %} is, trim marks included.
fn prepare(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find("{%") {
        let tag = rest[at + 2..].trim_start_matches(['-', '+']).trim_start();
        out.push_str(&rest[..rest.len() - tag.len()]);
        rest = tag;
        for (word, scope) in [("generation", "with"), ("endgeneration", "endwith")] {
            let Some(after) = tag.strip_prefix(word) else { continue };
            if after.trim_start().trim_start_matches(['-', '+']).starts_with("%}") {
                out.push_str(scope);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn format_value(
    out: &mut minijinja::Output,
    state: &mut State,
    value: &Value,
) -> Result<(), Error> {
    if matches!(value.kind(), ValueKind::Number | ValueKind::Map | ValueKind::Seq) {
        out.write_str(&python::str_of(value)?)?;
        return Ok(());
    }
    minijinja::escape_formatter(out, state, value)
}

impl ChatTemplate {
    pub fn new(source: &str) -> Result<Self, Failure> {
        if source.len() > MAX_SOURCE_BYTES {
            let size = source.len();
            return Err(Failure::Bad(format!("{size} bytes exceed {MAX_SOURCE_BYTES}")));
        }
        let mut environment = Environment::new();
        minijinja_contrib::add_to_environment(&mut environment);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(failure)?);
        environment.set_debug(true);
        environment.set_fuel(Some(FUEL));
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_formatter(format_value);
        environment.set_unknown_method_callback(python_methods::call);
        environment.add_filter("tojson", python::tojson);
        environment.add_filter("string", |value: &Value| python::str_of(value));
        environment.add_filter("trim", python_methods::trim);
        environment.add_test("sequence", python_methods::is_sequence);
        environment.add_test("iterable", python_methods::is_iterable);
        environment.add_test("number", python_methods::is_number);
        environment.add_function("raise_exception", raise_exception);
        environment.add_template_owned(NAME, prepare(source)).map_err(failure)?;
        Ok(ChatTemplate { environment })
    }

    pub fn render(&self, variables: &str, now_unix_s: i64) -> Result<String, Failure> {
        let variables: serde_json::Value = serde_json::from_str(variables)
            .map_err(|e| Failure::Bad(format!("the template's variables: {e}")))?;
        let variables = Value::from(Serde(&variables));
        let template = self.environment.get_template(NAME).map_err(failure)?;
        let now = Value::from_function(move |format: &str| python::strftime(format, now_unix_s));
        let globals = context! { strftime_now => now, ..variables };
        let mut output = Output(Vec::new());
        template.render_captured_to(globals, &mut output).map_err(failure)?;
        String::from_utf8(output.0).map_err(|e| Failure::Bad(e.to_string()))
    }
}
