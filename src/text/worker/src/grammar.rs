//! Which tokens may come next where a text has to be JSON of a schema, by llguidance.

use std::collections::HashSet;
use std::sync::Arc;

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie,
};
use llguidance::{Matcher, ParserFactory};
use serde_json::{json, Value};

use crate::stream::bytes_inside;
use crate::tokenizer::Tokenizer;
use crate::Failure;

/// Of one tokenizer.
pub struct Grammars {
    factory: ParserFactory,
    of_bytes: bool,
}

/// A space, or a line and an indentation of ten levels: a model that may put in as many blanks as it
/// likes may never come to an end.
const WHITESPACE: &str = r"\x20|\x0A(\x20{0,20}|\x09{0,10})";

/// What large schemas of real APIs need, and a few times that; steps take 20 ms at most, states
/// 100 MB.
fn limits() -> ParserLimits {
    ParserLimits {
        max_grammar_size: 200_000,
        max_lexer_states: 50_000,
        precompute_large_lexemes: false, // or a schema takes longer the larger the vocabulary is
        verbose_errors: false,           // which would tell the text
        ..ParserLimits::default()
    }
}

/// The bytes of every token, as they come in the middle of a text. Of tokens that stand for the
/// same bytes the vocabulary's own is taken, not the byte that is there for want of one.
fn words(tokenizer: &Arc<Tokenizer>, size: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let special: HashSet<u32> = tokenizer.special_ids().into_iter().collect();
    let mut inside = bytes_inside(tokenizer);
    let mut words = vec![Vec::new(); size];
    let mut taken = HashSet::new();
    let mut bytes_alone = Vec::new();
    for id in 0..size as u32 {
        let Some(token) = tokenizer.token_for_decoder(id, false) else { continue };
        if special.contains(&id) {
            words[id as usize] = [&[TokTrie::SPECIAL_TOKEN_MARKER], token.as_bytes()].concat();
            continue;
        }
        let Some((bytes, is_fallback)) = inside(&token)? else {
            return Err(Failure::Bad(
                "decoder: tokens of this kind cannot be held to a schema".into(),
            ));
        };
        match is_fallback {
            true => bytes_alone.push((id, bytes)),
            false if taken.insert(bytes.clone()) => words[id as usize] = bytes,
            false => {}
        }
    }
    for (id, bytes) in bytes_alone {
        if taken.insert(bytes.clone()) {
            words[id as usize] = bytes;
        }
    }
    Ok(words)
}

/// Whether a part joins what several schemas say of one object. What one of them leaves open another
/// may name.
fn joins_objects(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let says = |name: &&str| fields.contains_key(*name);
            let parts =
                ["allOf", "anyOf", "oneOf", "$ref"].iter().filter(|name| says(name)).count();
            let is_object =
                ["properties", "required", "additionalProperties"].iter().any(|n| says(n));
            let all = fields.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
            parts + all.saturating_sub(1) + usize::from(is_object && parts > 0) > 1
                || fields.values().any(joins_objects)
        }
        Value::Array(parts) => parts.iter().any(joins_objects),
        _ => false,
    }
}

/// Objects have the keys that are named, where nothing is said of others: a model that may invent
/// keys does.
fn close_objects(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let names = fields.get("properties").and_then(Value::as_object);
            let needed = fields.get("required").and_then(Value::as_array);
            let is_named = |key: &Value| {
                key.as_str().is_some_and(|key| names.is_some_and(|names| names.contains_key(key)))
            };
            if names.is_some() && needed.is_none_or(|keys| keys.iter().all(is_named)) {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            for (name, part) in fields.iter_mut() {
                // Values that stand for themselves, and names that somebody has given.
                match name.as_str() {
                    "const" | "enum" | "default" | "examples" => {}
                    "properties" | "patternProperties" | "$defs" | "definitions" => {
                        let parts = part.as_object_mut().into_iter();
                        parts.flat_map(|parts| parts.values_mut()).for_each(close_objects);
                    }
                    _ => close_objects(part),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(close_objects),
        _ => {}
    }
}

/// In one line: those between the first and the last show a place in a regular expression.
fn refused(error: impl std::fmt::Display) -> Failure {
    let message = error.to_string();
    let mut lines = message.lines().filter(|line| !line.trim().is_empty());
    let mut line = lines.next().unwrap_or_default().to_string();
    if let (true, Some(last)) = (line.ends_with(':'), lines.last()) {
        line = format!("{line} {}", last.trim().trim_start_matches("error: "));
    }
    let most = line.char_indices().nth(300).map_or(line.len(), |(end, _)| end);
    line.truncate(most);
    Failure::Raised(line)
}

impl Grammars {
    /// Of single bytes, to see what a schema takes.
    pub fn of_bytes() -> Result<Self, Failure> {
        Ok(Grammars { of_bytes: true, ..Self::of(ApproximateTokEnv::single_byte_env())? })
    }

    /// `eos`: the tokens that end a text.
    pub fn new(tokenizer: &Arc<Tokenizer>, eos: &[u32]) -> Result<Self, Failure> {
        let last = eos.iter().max().ok_or_else(|| Failure::Bad("no token ends a text".into()))?;
        let size = tokenizer.vocab_size().max(*last as usize + 1);
        let info = TokRxInfo::new(size as u32, eos[0]);
        let trie = TokTrie::from(&info, &words(tokenizer, size)?).with_eos_tokens(eos);
        Self::of(Arc::new(ApproximateTokEnv::new(trie)))
    }

    fn of(tokens: TokEnv) -> Result<Self, Failure> {
        let mut factory = ParserFactory::new(
            &tokens,
            InferenceCapabilities::default(),
            &SlicedBiasComputer::json_slices(),
        )
        .map_err(|error| Failure::Bad(error.to_string()))?;
        factory.quiet();
        *factory.limits_mut() = limits();
        Ok(Grammars { factory, of_bytes: false })
    }

    pub fn matcher(&self, schema: &str) -> Result<Matcher, Failure> {
        let mut schema: Value = serde_json::from_str(schema).map_err(refused)?;
        if !joins_objects(&schema) {
            close_objects(&mut schema);
        }
        if let Value::Object(fields) = &mut schema {
            // How it is written down is not the schema's business.
            let how = json!({ "whitespace_pattern": WHITESPACE, "coerce_one_of": true });
            fields.insert("x-guidance".into(), how);
        }
        let parser = self.factory.create_parser(TopLevelGrammar::from_json_schema(schema));
        let mut matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Err(refused(error));
        }
        // Known before anything is written, and of bytes it costs next to nothing.
        let next = if self.of_bytes { next_tokens(&mut matcher).err() } else { None };
        if matches!(next, Some(Failure::Bad(reason)) if reason == NOTHING) {
            let why = "nothing can be JSON of it, as it refers to itself without end, \
                       or asks for what excludes itself";
            return Err(Failure::Raised(why.into()));
        }
        Ok(matcher)
    }
}

const NOTHING: &str = "nothing may follow";

fn next_tokens(matcher: &mut Matcher) -> Result<SimpleVob, Failure> {
    match matcher.compute_mask_or_eos() {
        Ok(mask) if !mask.is_zero() => Ok(mask),
        Err(error) if !error.to_string().contains("NoExtensionBias") => Err(first_line(error)),
        _ => Err(Failure::Bad(NOTHING.into())),
    }
}

/// What follows in other lines is of its insides.
fn first_line(error: impl std::fmt::Display) -> Failure {
    Failure::Bad(error.to_string().lines().next().unwrap_or_default().into())
}

/// A bit for every token, whether it may follow, once `ids` have come: those that end a text where
/// it is whole.
pub fn mask(matcher: &mut Matcher, ids: &[u32]) -> Result<Vec<u8>, Failure> {
    matcher.consume_tokens(ids).map_err(first_line)?;
    Ok(next_tokens(matcher)?.as_slice().iter().flat_map(|word| word.to_le_bytes()).collect())
}
