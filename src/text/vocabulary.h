// Vocabulary: the content of a tokenizer, whatever file it came from, and the way from it to one
// that runs. Files that are not tokenizer.json (tokenizer.model, vocab.json with merges.txt, the
// metadata of GGUF) are read into it. TokenizerJson writes it as the tokenizer.json that
// transformers would have made. One library thus does all the work, under the limits of its
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace godwit {

enum class VocabularyKind {
  kUnigram,  // SentencePiece: the most probable pieces, by scores (GGUF: "t5")
  // SentencePiece: what may merge and when follows from scores (GGUF: "llama"), or is listed
  // ("gemma4").
  kSentencePieceBpe,
  kByteLevelBpe,  // GPT-2: bytes spelled as letters, merges in a list (GGUF: "gpt2")
};

// Numbered as SentencePiece's pieces and GGUF's tokenizer.ggml.token_type are.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // never in a text by itself: special, left out by Decode
  kUserDefined = 4,  // found in a text before all else, and kept by Decode
  kUnused = 5,
  kByte = 6,  // "<0x0A>": one byte of a character without a token
};

struct VocabularyToken {
  std::string text;  // UTF-8, as the vocabulary spells it: "▁the", "Ġthe"
  TokenKind kind = TokenKind::kNormal;
  float score = 0;  // of SentencePiece's kinds; the larger, the sooner it is formed
};

// A token that is found in a text before the text is cut into words, as tokenizer.json says it.
struct AddedToken {
  int32_t id = 0;
  std::string text;
  bool special = false;      // left out by Decode
  bool single_word = false;  // not within a word
  bool lstrip = false;       // takes in the blanks before it
  bool rstrip = false;       // and behind it
  bool normalized = false;   // is looked for in the normalized text
};

// Where SentencePiece puts a space in front, for a text to begin as a word does.
enum class SpacePrefix {
  kNone,
  kText,     // of the text ("legacy": false)
  kStretch,  // of whatever stands between special tokens
};

struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kByteLevelBpe;
  std::vector<VocabularyToken> tokens;  // by id; no two of the same text

  // The merges of kByteLevelBpe: "left right" in the order in which they are applied. Those of
  // kSentencePieceBpe; empty: they follow from scores.
  // pre_tokenizer: how a text is cut into words, by GGUF's name for it (tokenizer.ggml.pre), one of
  // PreTokenizerNames().
  std::vector<std::string> merges;
  std::string pre_tokenizer;

  // Where not said: kStretch for SentencePiece's kinds, kNone for byte-level BPE.
  std::optional<SpacePrefix> space_prefix;

  // SentencePiece's kinds.
  bool remove_extra_whitespaces = false;  // at the ends, and all but one in between
  std::string charsmap;                   // precompiled_charsmap, bytes; empty for no normalizer

  std::optional<int32_t> bos_id, eos_id, unk_id;
  // Whether Encode frames a text with them. Where not said, and there is an id: a BOS for
  // kSentencePieceBpe and for pre-tokenizers whose models want one (llama-bpe), an EOS for
  // kUnigram.
  std::optional<bool> add_bos, add_eos;

  // In place of what follows from the kind of a token, also another text for its id; and tokens
  // behind `tokens`, without a gap. In any order.
  std::vector<AddedToken> added;
};

// Known names of tokenizer.ggml.pre, in the order of messages.
std::vector<std::string> PreTokenizerNames();

// The most tokens, eight times the most known: more are refused, here and by readers of files.
inline constexpr size_t kMaxTokens = size_t{1} << 21;

// The content of a tokenizer.json. `what` names the vocabulary in messages. Throws Error(kFormat)
// for tokens that are not UTF-8 or given twice, ids without a token, and scores that are no
// numbers. It also throws for more text than any vocabulary has: 16 MiB in tokens, 256 MiB in all.
// Throws Error(kUnsupported) for an unknown pre-tokenizer, with those known. Errors in merges are
// found when the tokenizer is made, in its process. An empty token, as some files have where an id
// is not used, gets a name.
std::string TokenizerJson(const Vocabulary& vocabulary, std::string_view what);

// The tokenizer itself. Throws that, and as ParseTokenizer does.
std::unique_ptr<Tokenizer> MakeTokenizer(const Vocabulary& vocabulary, std::string_view what);

}  // namespace godwit
