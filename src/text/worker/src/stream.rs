//! decode() one token at a time.
//!
//! Hugging Face's decoders take the whole list of tokens. Each of them has an incremental twin here
//! that emits what no later token can change, so a stream costs the same per token however long it
//! grows, and the pieces add up to exactly what decode() gives. Decoding a window of the last
//! tokens again (DecodeStream of the crate) is not exact: byte runs and spaces depend on more.

use std::collections::HashMap;
use std::str::from_utf8;
use std::sync::{Arc, LazyLock};

use tokenizers::decoders::strip::Strip;
use tokenizers::{Decoder, DecoderWrapper};

use crate::tokenizer::Tokenizer;
use crate::Failure;

pub struct Stream {
    tokenizer: Arc<Tokenizer>,
    skip_special_tokens: bool,
    stages: Vec<Stage>,
    text: String,
}

/// One decoder of the chain. It receives tokens or, behind a stage that joins everything into one
/// token, the pieces of that one token as they become known.
enum Stage {
    /// A decoder that looks at one token at a time.
    Each(DecoderWrapper),
    /// A decoder that only treats the first token in a special way.
    AfterFirst { decoder: DecoderWrapper, first: bool },
    /// No decoder at all: tokens are joined by spaces.
    Spaces { first: bool },
    /// GPT-2's byte alphabet; holds at most one incomplete character.
    ByteLevel { pending: Vec<u8> },
    /// Tokens like <0x0A>; a run is judged as a whole, so it is held until it ends.
    ByteFallback { run: Vec<u8> },
    /// Joins all tokens into one.
    Fuse,
    /// Strips the start of the one joined token; `left` more characters may go.
    StripStart { content: char, left: usize },
    /// A decoder whose result may depend on everything: decoded at the end.
    Hold { decoder: DecoderWrapper, tokens: Vec<String>, fused: bool },
}

static BYTE_OF_CHAR: LazyLock<HashMap<char, u8>> = LazyLock::new(|| {
    let mut next = 256;
    let mut map = HashMap::new();
    for byte in 0..=255u8 {
        let itself = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let code = if itself { u32::from(byte) } else { next };
        next += u32::from(!itself);
        map.extend(char::from_u32(code).map(|c| (c, byte)));
    }
    map
});

fn push_byte_level(token: &str, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    for c in token.chars() {
        match BYTE_OF_CHAR.get(&c) {
            Some(&byte) => bytes.push(byte),
            None => {
                // An added token outside the alphabet stands for itself, all of it.
                bytes.truncate(start);
                bytes.extend_from_slice(token.as_bytes());
                return;
            }
        }
    }
}

/// Moves the characters out of `bytes` that no further byte can change.
fn take_complete(bytes: &mut Vec<u8>) -> String {
    let mut out = String::new();
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        at += chunk.valid().len();
        let rest = chunk.invalid();
        let is_last = at + rest.len() == bytes.len();
        // No error length: so far it is the start of a character.
        if rest.is_empty() || is_last && from_utf8(rest).is_err_and(|e| e.error_len().is_none()) {
            break;
        }
        out.push('\u{FFFD}');
        at += rest.len();
    }
    bytes.drain(..at);
    out
}

fn byte_of(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if token.len() != 6 {
        return None;
    }
    u8::from_str_radix(hex, 16).ok()
}

fn take_run(run: &mut Vec<u8>) -> String {
    let run = std::mem::take(run);
    let count = run.len();
    String::from_utf8(run).unwrap_or_else(|_| "\u{FFFD}".repeat(count))
}

fn decode(decoder: &DecoderWrapper, tokens: Vec<String>) -> Result<Vec<String>, Failure> {
    decoder.decode_chain(tokens).map_err(|e| Failure::Bad(e.to_string()))
}

fn add_stages(decoder: &DecoderWrapper, fused: &mut bool, stages: &mut Vec<Stage>) {
    let own = decoder.clone();
    match decoder {
        DecoderWrapper::Sequence(sequence) => {
            for decoder in sequence.get_decoders() {
                add_stages(decoder, fused, stages);
            }
        }
        DecoderWrapper::Fuse(_) => {
            stages.push(Stage::Fuse);
            *fused = true;
        }
        DecoderWrapper::Strip(Strip { content, start, stop: 0, .. }) if *fused => {
            stages.push(Stage::StripStart { content: *content, left: *start });
        }
        DecoderWrapper::ByteLevel(_) if !*fused => {
            stages.push(Stage::ByteLevel { pending: Vec::new() });
            *fused = true;
        }
        DecoderWrapper::ByteFallback(_) if !*fused => {
            stages.push(Stage::ByteFallback { run: Vec::new() });
        }
        DecoderWrapper::Replace(_) | DecoderWrapper::Strip(_) if !*fused => {
            stages.push(Stage::Each(own));
        }
        DecoderWrapper::Metaspace(_) | DecoderWrapper::WordPiece(_) if !*fused => {
            stages.push(Stage::AfterFirst { decoder: own, first: true });
        }
        _ => {
            stages.push(Stage::Hold { decoder: own, tokens: Vec::new(), fused: *fused });
            *fused = true;
        }
    }
}

impl Stage {
    fn push(&mut self, tokens: Vec<String>) -> Result<Vec<String>, Failure> {
        match self {
            Stage::Fuse => Ok(tokens),
            Stage::Each(decoder) => decode(decoder, tokens),
            Stage::AfterFirst { decoder, first } => {
                if tokens.is_empty() || *first {
                    *first = *first && tokens.is_empty();
                    return decode(decoder, tokens);
                }
                let mut padded = vec![String::new()];
                padded.extend(tokens);
                let mut decoded = decode(decoder, padded)?;
                decoded.remove(0);
                Ok(decoded)
            }
            Stage::Spaces { first } => Ok(tokens
                .into_iter()
                .map(|token| if std::mem::take(first) { token } else { format!(" {token}") })
                .collect()),
            Stage::ByteLevel { pending } => {
                tokens.iter().for_each(|token| push_byte_level(token, pending));
                Ok(vec![take_complete(pending)])
            }
            Stage::ByteFallback { run } => {
                let mut out = Vec::new();
                for token in tokens {
                    match byte_of(&token) {
                        Some(byte) => run.push(byte),
                        None => {
                            if !run.is_empty() {
                                out.push(take_run(run));
                            }
                            out.push(token);
                        }
                    }
                }
                Ok(out)
            }
            Stage::StripStart { content, left } => Ok(tokens
                .into_iter()
                .map(|piece| {
                    let mut rest = piece.as_str();
                    while *left > 0 && !rest.is_empty() {
                        match rest.strip_prefix(*content) {
                            Some(shorter) => (rest, *left) = (shorter, *left - 1),
                            None => *left = 0,
                        }
                    }
                    rest.to_string()
                })
                .collect()),
            Stage::Hold { tokens: held, .. } => {
                held.extend(tokens);
                Ok(Vec::new())
            }
        }
    }

    fn finish(&mut self) -> Result<Vec<String>, Failure> {
        match self {
            Stage::ByteLevel { pending } => {
                Ok(vec![String::from_utf8_lossy(&std::mem::take(pending)).into_owned()])
            }
            Stage::ByteFallback { run } if !run.is_empty() => Ok(vec![take_run(run)]),
            Stage::Hold { decoder, tokens, fused } => {
                let mut held = std::mem::take(tokens);
                if *fused {
                    held = vec![held.concat()];
                }
                if held.is_empty() {
                    return Ok(held);
                }
                decode(decoder, held)
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// The bytes that a token adds to a text in its middle, and whether it is one of ByteFallback.
/// Nothing: that depends on more.
pub fn bytes_inside(
    tokenizer: &Tokenizer,
) -> impl FnMut(&str) -> Result<Option<(Vec<u8>, bool)>, Failure> {
    let mut stages = make_stages(tokenizer.decoder());
    for stage in &mut stages {
        if let Stage::AfterFirst { first, .. } | Stage::Spaces { first } = stage {
            *first = false;
        }
    }
    move |token| {
        let mut tokens = vec![token.to_string()];
        for stage in &mut stages {
            match stage {
                Stage::ByteLevel { .. } => {
                    let mut bytes = Vec::new();
                    tokens.iter().for_each(|token| push_byte_level(token, &mut bytes));
                    return Ok(Some((bytes, false)));
                }
                Stage::ByteFallback { .. } => {
                    if let Some(byte) = tokens.first().and_then(|token| byte_of(token)) {
                        return Ok(Some((vec![byte], true)));
                    }
                }
                Stage::Fuse | Stage::StripStart { .. } => {}
                Stage::Hold { .. } => return Ok(None),
                Stage::Each(_) | Stage::AfterFirst { .. } | Stage::Spaces { .. } => {
                    tokens = stage.push(tokens)?;
                }
            }
        }
        Ok(Some((tokens.concat().into_bytes(), false)))
    }
}

fn make_stages(decoder: Option<&DecoderWrapper>) -> Vec<Stage> {
    let mut stages = Vec::new();
    match decoder {
        Some(decoder) => add_stages(decoder, &mut false, &mut stages),
        None => stages.push(Stage::Spaces { first: true }),
    }
    stages
}

impl Stream {
    pub fn new(tokenizer: Arc<Tokenizer>, skip_special_tokens: bool) -> Self {
        let stages = make_stages(tokenizer.decoder());
        Stream { tokenizer, skip_special_tokens, stages, text: String::new() }
    }

    pub fn push(&mut self, id: u32) -> Result<&str, Failure> {
        self.text.clear();
        if let Some(token) = self.tokenizer.token_for_decoder(id, self.skip_special_tokens) {
            let mut tokens = vec![token];
            for stage in &mut self.stages {
                tokens = stage.push(tokens)?;
            }
            self.text.extend(tokens);
        }
        Ok(&self.text)
    }

    pub fn flush(&mut self) -> Result<&str, Failure> {
        let mut tokens = Vec::new();
        for stage in &mut self.stages {
            tokens = stage.push(tokens)?;
            tokens.extend(stage.finish()?);
        }
        self.text.clear();
        self.text.extend(tokens);
        self.stages = make_stages(self.tokenizer.decoder());
        Ok(&self.text)
    }
}
