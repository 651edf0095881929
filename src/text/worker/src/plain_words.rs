//! What the libraries say, in words that need no knowledge of their insides.

const SENTENCES: [(&str, &str); 12] = [
    ("called `Result::unwrap()` on an `Err` value: ", ""),
    ("called `Option::unwrap()` on a `None` value", "something that it needs is missing"),
    ("Merges text file invalid at line", "a merge is no pair of tokens: number"),
    ("Unable to load vocab UnkIdNotInVocabulary", "the vocabulary has no token with the unk_id"),
    ("Model missing.", "there is no model"),
    ("Oniguruma error: ", "regular expression: "),
    ("EOF while parsing", "the text ends within"),
    ("engine ran out of fuel", "it takes too many steps"),
    ("expected u32 at line", "expected a whole number from 0 to 4294967295 at line"),
    ("expected usize at line", "expected a whole number at line"),
    (" to usize", " to a whole number"),
    (" to i32", " to a whole number"),
];

/// Types of the tokenizers crate, by how their names begin.
const PARTS: [(&str, &str); 6] = [
    ("Model", "the model is of no known type"),
    ("Merge", "a merge is no pair of tokens"),
    ("Normalizer", "the normalizer is of no known type"),
    ("PreTokenizer", "the pre-tokenizer is of no known type"),
    ("PostProcessor", "the post-processor is of no known type"),
    ("Decoder", "the decoder is of no known type"),
];

/// Puts `words(name)` in the place of `before` and the name of a type behind it.
fn replace_named(message: String, before: &str, words: impl Fn(&str) -> String) -> String {
    let Some((front, rest)) = message.split_once(before) else { return message };
    let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    format!("{front}{}{rest}", words(name))
}

pub fn plain(message: &str) -> String {
    let mut message = message.to_string();
    for (theirs, ours) in SENTENCES {
        message = message.replace(theirs, ours);
    }
    message = replace_named(message, "data did not match any variant of untagged enum ", |name| {
        let part = PARTS.iter().find(|(prefix, _)| name.starts_with(prefix));
        part.map_or("a part is of no known type", |(_, ours)| ours).to_string()
    });
    replace_named(message, "expected struct ", |_| "expected an object".to_string())
}
