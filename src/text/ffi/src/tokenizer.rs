//! Hugging Face's tokenizer, with what belongs to training batches switched off.

use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{DecoderWrapper, Tokenizer as HfTokenizer};

use crate::Failure;

pub struct Tokenizer {
    inner: HfTokenizer,
    vocab_size: usize,
}

fn bad(error: tokenizers::Error) -> Failure {
    Failure::Bad(error.to_string())
}

impl Tokenizer {
    pub fn new(json: &str) -> Result<Self, Failure> {
        let mut inner: HfTokenizer = json.parse().map_err(bad)?;
        inner.with_truncation(None).map_err(bad)?;
        inner.with_padding(None);
        let ids = inner.get_vocab(true);
        let vocab_size = ids.values().max().map_or(0, |&id| id as usize + 1);
        Ok(Tokenizer { inner, vocab_size })
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
        Ok(())
    }

    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>, Failure> {
        let encoding = self.inner.encode_fast(text, add_special_tokens).map_err(bad)?;
        Ok(encoding.get_ids().to_vec())
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
