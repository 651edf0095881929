//! Where a text may be cut so that the ids of its pieces are the ids of the whole.
//!
//! That is decided at an edge, two neighbouring characters, from what the tokenizer is made of: no
//! added token reaches over the edge, the normalizer does to each side what it does to the whole,
//! and the pre-tokenizer ends a word there; or nothing makes words of the text, and no token of the
//! BPE vocabulary has the two side by side, so that no merge can join them. A component that is not
//! known to allow this is never cut at: its text stays whole.

use std::sync::OnceLock;

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::{Replace, Sequence as NormalizerSequence};
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::tokenizer::{Model, SplitDelimiterBehavior};
use tokenizers::{
    ModelWrapper, NormalizedString, Normalizer, NormalizerWrapper, PreTokenizer,
    PreTokenizerWrapper, Tokenizer as HfTokenizer,
};

#[derive(Clone, Copy)]
struct Edge {
    before: char,
    after: char,
}

/// In an Edge: some character that is not white space; which one is not known.
const UNKNOWN: char = '\u{FFFF}';

fn may_be(seen: char, c: char) -> bool {
    seen == c || (seen == UNKNOWN && !c.is_whitespace())
}

/// What added tokens do to the text around them.
#[derive(Default)]
struct Added {
    inside: Vec<Edge>,
    ends: Vec<char>,
    /// First characters of those that look at what stands before them.
    single_word_starts: Vec<char>,
    strips: bool,
}

impl Added {
    fn add(&mut self, content: &str, token: &tokenizers::AddedToken) {
        let chars = content.chars();
        let edges = chars.clone().zip(chars.clone().skip(1));
        self.inside.extend(edges.map(|(before, after)| Edge { before, after }));
        self.ends.extend(chars.clone().last());
        if token.single_word {
            self.single_word_starts.extend(chars.clone().next());
        }
        self.strips |= token.lstrip || token.rstrip;
    }

    /// Hundreds of reserved tokens differ in a number.
    fn without_repeats(mut self) -> Self {
        self.inside.sort_unstable_by_key(|edge| (edge.before, edge.after));
        self.inside.dedup_by_key(|edge| (edge.before, edge.after));
        self.ends.sort_unstable();
        self.ends.dedup();
        self
    }

    /// Behind a token that ends at an edge the text begins anew, which a piece does not.
    fn reach(&self, at: Edge) -> bool {
        self.inside.iter().any(|e| may_be(at.before, e.before) && may_be(at.after, e.after))
            || self.ends.iter().any(|&end| may_be(at.before, end))
            || self.single_word_starts.iter().any(|&start| may_be(at.after, start))
            || (self.strips && at.before.is_whitespace())
    }
}

/// The edge as the normalizer leaves it, if it works on each side alone.
fn through_normalizer(normalizer: &NormalizerWrapper, at: Edge) -> Option<Edge> {
    match normalizer {
        NormalizerWrapper::Sequence(all) => {
            all.as_ref().iter().try_fold(at, |at, step| through_normalizer(step, at))
        }
        NormalizerWrapper::Prepend(_) => Some(at),
        NormalizerWrapper::NFC(_) | NormalizerWrapper::NFD(_) => composed(at),
        NormalizerWrapper::NFKC(_) | NormalizerWrapper::NFKD(_) if at.after.is_ascii() => {
            composed(at)
        }
        NormalizerWrapper::Lowercase(_) => Some(Edge {
            before: at.before.to_lowercase().last()?,
            after: at.after.to_lowercase().next()?,
        }),
        NormalizerWrapper::Replace(replace) => replaced(replace, at),
        _ => None,
    }
}

/// No character composes with an ASCII character before it, or with a newline behind it.
fn composed(at: Edge) -> Option<Edge> {
    if !at.after.is_ascii() && at.before != '\n' {
        return None;
    }
    let kept = |c: char, stays: bool| match stays {
        true => Some(c),
        false => (!c.is_whitespace()).then_some(UNKNOWN),
    };
    // An accent may follow the letter behind the edge.
    Some(Edge {
        before: kept(at.before, at.before.is_ascii())?,
        after: kept(at.after, at.after.is_ascii_whitespace())?,
    })
}

/// One character for one: " " for "▁".
fn replaced(replace: &Replace, at: Edge) -> Option<Edge> {
    let only = |text: &str| text.chars().next().filter(|c| c.len_utf8() == text.len());
    let json = serde_json::to_value(replace).ok()?;
    let from = only(json["pattern"]["String"].as_str()?)?;
    let to = only(&replace.content)?;
    let map = |c| match c {
        _ if c == from => Some(to),
        UNKNOWN if !from.is_whitespace() => None,
        _ => Some(c),
    };
    Some(Edge { before: map(at.before)?, after: map(at.after)? })
}

enum Words {
    /// A word ends here, and neither side looks at the other.
    End,
    /// Whatever is done here, a cut changes nothing about it. The edge as it is left.
    Same(Edge),
    NotKnown,
}

impl Words {
    fn end_if(end: bool) -> Self {
        if end {
            Words::End
        } else {
            Words::NotKnown
        }
    }
}

fn space_ends_word(at: Edge) -> bool {
    !at.before.is_whitespace() && at.after.is_whitespace()
}

/// Newlines behind punctuation belong to it, so that a word ends only where they do.
fn space_or_newline_ends_word(at: Edge) -> bool {
    match at.after {
        ' ' => !at.before.is_whitespace(),
        '/' => false, // GPT-4o's takes it with the newlines
        _ => at.before == '\n' && !at.after.is_whitespace(),
    }
}

/// What does not belong to words joins the first space behind it.
fn space_ends_alphanumeric(at: Edge) -> bool {
    at.before.is_alphanumeric() && at.after == ' '
}

/// The patterns of published models, with the edges that none of their matches reaches over, and
/// whose sides no match looks across. Patterns in the wild are few, and copied.
const PATTERNS: [(&str, fn(Edge) -> bool); 6] = [
    (
        // GPT-2
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        space_ends_word,
    ),
    (
        // Llama 3, GLM-4, SmolLM3
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        space_or_newline_ends_word,
    ),
    (
        // Qwen 1.5 to 3
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        space_or_newline_ends_word,
    ),
    (
        // GPT-4o
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        space_or_newline_ends_word,
    ),
    (
        // Mistral Nemo
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|",
            r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        space_or_newline_ends_word,
    ),
    (r" ?[^(\s|[.,!?…。，、।۔،])]+", space_ends_alphanumeric), // BLOOM
];

fn through_pre_tokenizer(pre_tokenizer: &PreTokenizerWrapper, at: Edge) -> Words {
    use PreTokenizerWrapper::*;
    use SplitDelimiterBehavior::{Contiguous, Isolated};
    match pre_tokenizer {
        Sequence(all) => all.as_ref().iter().fold(Words::Same(at), |words, step| match words {
            Words::Same(at) => through_pre_tokenizer(step, at),
            known => known,
        }),
        // A piece would get a space put in front where it has none.
        ByteLevel(bytes) if bytes.add_prefix_space && at.after != ' ' => Words::NotKnown,
        ByteLevel(bytes) => Words::end_if(bytes.use_regex && space_ends_word(at)),
        Split(split) if split.behavior == Isolated && !split.invert => {
            let SplitPattern::Regex(regex) = &split.pattern else { return Words::NotKnown };
            let known = PATTERNS.iter().find(|(pattern, _)| pattern == regex);
            Words::end_if(known.is_some_and(|(_, ends_word)| ends_word(at)))
        }
        Metaspace(space) => {
            let mark = space.get_replacement();
            let map = |c| if c == ' ' { mark } else { c };
            let at = Edge { before: map(at.before), after: map(at.after) };
            match (space.get_split(), space.get_prepend_scheme()) {
                (_, PrependScheme::Always) if at.after != mark => Words::NotKnown,
                (true, _) => Words::end_if(at.after == mark && at.before != mark),
                (false, _) => Words::Same(at),
            }
        }
        Whitespace(_) | WhitespaceSplit(_) | BertPreTokenizer(_) => {
            Words::end_if(space_ends_word(at))
        }
        Punctuation(marks) if !matches!(marks.behavior, Isolated | Contiguous) => Words::NotKnown,
        // No white space is of the kind that these look for.
        Punctuation(_) | Digits(_) if at.after.is_whitespace() => Words::Same(at),
        _ => Words::NotKnown,
    }
}

/// Which characters BPE may join where nothing makes words of the text.
struct Merges {
    /// Neighbours inside a token.
    joined: std::collections::HashSet<(char, char)>,
    /// Every character has a token, or tokens for its bytes.
    complete: bool,
}

impl Merges {
    fn of(bpe: &BPE) -> Option<Self> {
        let empty = |affix: &Option<String>| affix.as_deref().unwrap_or_default().is_empty();
        let whole_words = bpe.ignore_merges // a piece might be in the vocabulary
            || !empty(&bpe.continuing_subword_prefix)
            || !empty(&bpe.end_of_word_suffix);
        let vocab = bpe.get_vocab();
        let joins_bytes = vocab.keys().any(|token| token.len() > 6 && token.contains("<0x"));
        if whole_words || joins_bytes {
            return None;
        }
        let neighbours = |token: &String| {
            token.chars().zip(token.chars().skip(1)).collect::<Vec<(char, char)>>()
        };
        Some(Merges {
            joined: vocab.keys().flat_map(neighbours).collect(),
            complete: bpe.byte_fallback
                && (0..=255).all(|byte| vocab.contains_key(&format!("<0x{byte:02X}>"))),
        })
    }

    /// An unknown token could take in its unknown neighbours.
    fn part(&self, bpe: &BPE, at: Edge) -> bool {
        at.before != UNKNOWN
            && at.after != UNKNOWN
            && !self.joined.contains(&(at.before, at.after))
            && (self.complete || bpe.token_to_id(at.before.encode_utf8(&mut [0; 4])).is_some())
    }
}

/// Normalizes the beginning of a piece as the middle of a text: nothing is put in front.
struct Continuing<'a> {
    whole: Option<&'a NormalizerWrapper>,
    middle: Option<&'a NormalizerWrapper>,
}

impl Normalizer for Continuing<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        let begins = text.offsets_original().0 == 0;
        let normalizer = if begins { self.middle } else { self.whole };
        normalizer.map_or(Ok(()), |normalizer| normalizer.normalize(text))
    }
}

fn without_prepend(normalizer: &NormalizerWrapper) -> Option<NormalizerWrapper> {
    match normalizer {
        NormalizerWrapper::Prepend(_) => None,
        NormalizerWrapper::Sequence(all) => {
            let rest = all.as_ref().iter().filter_map(without_prepend).collect();
            Some(NormalizerWrapper::Sequence(NormalizerSequence::new(rest)))
        }
        other => Some(other.clone()),
    }
}

/// Metaspace's "first" is the beginning of the text.
fn without_first(pre_tokenizer: &mut PreTokenizerWrapper) {
    match pre_tokenizer {
        PreTokenizerWrapper::Metaspace(space)
            if space.get_prepend_scheme() == PrependScheme::First =>
        {
            space.set_prepend_scheme(PrependScheme::Never)
        }
        PreTokenizerWrapper::Sequence(all) => all.as_mut().iter_mut().for_each(without_first),
        _ => {}
    }
}

/// What the pieces of one tokenizer's texts need besides it.
pub struct Pieces {
    added: Added,
    added_normalized: Added,
    middle_normalizer: Option<NormalizerWrapper>,
    middle_pre_tokenizer: Option<PreTokenizerWrapper>,
    merges: OnceLock<Option<Merges>>,
}

impl Pieces {
    pub fn new(tokenizer: &HfTokenizer) -> Self {
        let (mut added, mut added_normalized) = (Added::default(), Added::default());
        let tokens = tokenizer.get_added_vocabulary();
        for (&id, token) in tokens.get_added_tokens_decoder() {
            if token.normalized {
                let content = tokens.simple_id_to_token(id).unwrap_or_default();
                added_normalized.add(&content, token);
            } else {
                added.add(&token.content, token);
            }
        }
        let mut middle_pre_tokenizer = tokenizer.get_pre_tokenizer().cloned();
        middle_pre_tokenizer.iter_mut().for_each(without_first);
        Pieces {
            added: added.without_repeats(),
            added_normalized: added_normalized.without_repeats(),
            middle_normalizer: tokenizer.get_normalizer().and_then(without_prepend),
            middle_pre_tokenizer,
            merges: OnceLock::new(),
        }
    }

    /// The last place in `text`, a byte offset above 0, where it may be cut, whatever follows it.
    pub fn last_cut(&self, tokenizer: &HfTokenizer, text: &str) -> Option<usize> {
        let mut after = None;
        for (at, before) in text.char_indices().rev() {
            if after.is_some_and(|after| self.may_cut(tokenizer, Edge { before, after })) {
                return Some(at + before.len_utf8());
            }
            after = Some(before);
        }
        None
    }

    fn may_cut(&self, tokenizer: &HfTokenizer, at: Edge) -> bool {
        let normalized = match tokenizer.get_normalizer() {
            None => Some(at),
            Some(normalizer) => through_normalizer(normalizer, at),
        };
        let Some(normalized) = normalized else { return false };
        let words = match tokenizer.get_pre_tokenizer() {
            None => Words::Same(normalized),
            Some(pre_tokenizer) => through_pre_tokenizer(pre_tokenizer, normalized),
        };
        let parts = match words {
            Words::End => true,
            Words::NotKnown => false,
            Words::Same(at) => self.bpe_parts(tokenizer.get_model(), at),
        };
        parts && !self.added.reach(at) && !self.added_normalized.reach(normalized)
    }

    fn bpe_parts(&self, model: &ModelWrapper, at: Edge) -> bool {
        let ModelWrapper::BPE(bpe) = model else { return false };
        let merges = self.merges.get_or_init(|| Merges::of(bpe));
        merges.as_ref().is_some_and(|merges| merges.part(bpe, at))
    }

    /// The ids of a piece, without what frames a text. `first`: the text begins with it.
    pub fn encode(
        &self,
        tokenizer: &HfTokenizer,
        piece: &str,
        first: bool,
    ) -> tokenizers::Result<Vec<u32>> {
        let whole = tokenizer.get_normalizer();
        let middle = if first { whole } else { self.middle_normalizer.as_ref() };
        let normalizer = Continuing { whole, middle };
        let mut words =
            tokenizer.get_added_vocabulary().extract_and_normalize(Some(&normalizer), piece);
        let pre_tokenizer =
            if first { tokenizer.get_pre_tokenizer() } else { self.middle_pre_tokenizer.as_ref() };
        if let Some(pre_tokenizer) = pre_tokenizer {
            pre_tokenizer.pre_tokenize(&mut words)?;
        }
        words.tokenize(|word| tokenizer.get_model().tokenize(word.get()))?;
        let splits =
            words.get_splits(tokenizers::OffsetReferential::Original, tokenizers::OffsetType::None);
        Ok(splits.iter().flat_map(|(_, _, ids)| ids.iter().flatten().map(|t| t.id)).collect())
    }
}
