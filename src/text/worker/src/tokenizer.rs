//! Hugging Face's tokenizer, with what belongs to training switched off.

use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{DecoderWrapper, Encoding, ModelWrapper, Token, Tokenizer as HfTokenizer};

use crate::pieces::Pieces;
use crate::Failure;

pub struct Tokenizer {
    inner: HfTokenizer,
    vocab_size: usize,
    pieces: Pieces,
    frame: Frame,
}

/// What the post-processor puts around a text.
struct Frame {
    before: Vec<u32>,
    behind: Vec<u32>,
}

impl Frame {
    fn of(tokenizer: &HfTokenizer) -> Result<Self, Failure> {
        const TEXT: u32 = u32::MAX;
        let text = Encoding::from_tokens(vec![Token::new(TEXT, String::new(), (0, 0))], 0);
        let framed = tokenizer.post_process(text, None, true).map_err(bad)?;
        let mut parts = framed.get_ids().split(|&id| id == TEXT);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(before), Some(behind), None) => {
                Ok(Frame { before: before.to_vec(), behind: behind.to_vec() })
            }
            _ => Err(Failure::Bad("post_processor: expected to find the text in it once".into())),
        }
    }
}

/// Where a piece stands in its text.
pub struct Place {
    pub first: bool,
    pub last: bool,
}

fn bad(error: tokenizers::Error) -> Failure {
    Failure::Bad(error.to_string())
}

impl Tokenizer {
    pub fn new(json: &str) -> Result<Self, Failure> {
        let mut inner: HfTokenizer = json.parse().map_err(bad)?;
        inner.with_truncation(None).map_err(bad)?;
        inner.with_padding(None);
        // Other ids in every run.
        if let ModelWrapper::BPE(bpe) = inner.get_model() {
            if bpe.dropout.is_some() {
                let mut bpe = bpe.clone();
                bpe.dropout = None;
                inner.with_model(bpe);
            }
        }
        let ids = inner.get_vocab(true);
        let vocab_size = ids.values().max().map_or(0, |&id| id as usize + 1);
        let (pieces, frame) = (Pieces::new(&inner), Frame::of(&inner)?);
        Ok(Tokenizer { inner, vocab_size, pieces, frame })
    }

    pub fn set_bos_eos(&mut self, bos: &str, eos: &str) -> Result<(), Failure> {
        let mut pieces = Vec::new();
        let mut special = Vec::new();
        for (token, first) in [(bos, true), (eos, false)] {
            if first {
                pieces.push("$A:0".to_string());
            }
            if token.is_empty() {
                continue;
            }
            let id = self.inner.token_to_id(token).ok_or_else(|| {
                Failure::Bad(format!("the special token {token:?} is not in the vocabulary"))
            })?;
            let at = if first { 0 } else { pieces.len() };
            pieces.insert(at, format!("{token}:0"));
            if !special.contains(&(token.to_string(), id)) {
                special.push((token.to_string(), id));
            }
        }
        let template = TemplateProcessing::builder()
            .try_single(pieces)
            .map_err(|e| Failure::Bad(e.to_string()))?
            .special_tokens(special)
            .build()
            .map_err(|e| Failure::Bad(e.to_string()))?;
        self.inner.with_post_processor(Some(template));
        self.frame = Frame::of(&self.inner)?;
        Ok(())
    }

    /// A post-processor names ids of its own beside the tokens.
    pub fn check_frame(&self) -> Result<(), Failure> {
        let mut ids = self.frame.before.iter().chain(&self.frame.behind);
        match ids.find(|&&id| self.inner.id_to_token(id).is_none()) {
            None => Ok(()),
            Some(id) => Err(Failure::Bad(format!(
                "post_processor: it puts token id {id} around every text, which is not in the \
                 vocabulary"
            ))),
        }
    }

    /// The ids of the beginning of `rest`, a stretch of text, and how many bytes these stand for:
    /// all of them where nothing follows; 0 where the text cannot be cut within the stretch.
    /// The ids of a text's pieces are those of the text.
    pub fn encode_piece(
        &self,
        rest: &str,
        place: Place,
        add_special_tokens: bool,
    ) -> Result<(Vec<u32>, usize), Failure> {
        let end = match place.last {
            true => Some(rest.len()),
            false => self.pieces.last_cut(&self.inner, rest),
        };
        let Some(end) = end else { return Ok((Vec::new(), 0)) };
        let mut ids = self.pieces.encode(&self.inner, &rest[..end], place.first).map_err(bad)?;
        if add_special_tokens && place.first {
            ids.splice(0..0, self.frame.before.iter().copied());
        }
        if add_special_tokens && place.last {
            ids.extend(&self.frame.behind);
        }
        Ok((ids, end))
    }

    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String, Failure> {
        self.inner.decode(ids, skip_special_tokens).map_err(bad)
    }

    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// What decode() drops when it skips special tokens, in ascending order.
    pub fn special_ids(&self) -> Vec<u32> {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        let special = added.iter().filter(|(_, token)| token.special).map(|(&id, _)| id);
        let mut ids = special.collect::<Vec<_>>();
        ids.sort_unstable();
        ids
    }

    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    pub fn decoder(&self) -> Option<&DecoderWrapper> {
        self.inner.get_decoder()
    }

    /// The token as decode() would hand it to the decoder, or none where decode() drops it.
    pub fn token_for_decoder(&self, id: u32, skip_special_tokens: bool) -> Option<String> {
        let added = self.inner.get_added_vocabulary();
        let token = added.simple_id_to_token(id).or_else(|| self.inner.id_to_token(id))?;
        (!skip_special_tokens || !added.is_special_token(&token)).then_some(token)
    }
}
