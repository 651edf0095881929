// Tokenizer: the seam between text and token ids.
//
// Immutable after construction: any number of threads may share one. A StreamDecoder belongs to one
// thread at a time and does not refer to its tokenizer, which may go first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"

namespace godwit {

// StreamDecoder: Decode, one token at a time. The texts returned by Push and Flush add up to the
// text of Decode for all ids pushed. Each is valid UTF-8, possibly empty, and is never taken back.
// The cost per token does not grow with the length of the output.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;

  // The text that `id` made certain. Throws Error(kInput) for a negative id.
  virtual std::string Push(int32_t id) = 0;

  // Returns the text that was held back at the end. The decoder is then as new.
  virtual std::string Flush() = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Encodes a text. Special tokens spelled out in `text` become their ids. `add_special_tokens`
  // frames the text as the model expects a prompt to be framed (a BOS in front, for most). Text out
  // of a chat template is framed already and takes false. Bytes that are not UTF-8 are first
  // replaced by U+FFFD, one for each maximal malformed part.
  //
  // A text of more than `max_ids` ids may end early. The result then has more than max_ids, the
  // first of the text's, and reading on was spared.
  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens,
                              int64_t max_ids = INT64_MAX) const {
    return EncodeUpTo(text, add_special_tokens, max_ids);
  }

  // Valid UTF-8. Ids without a token (the padding of an embedding matrix) decode to nothing.
  // Throws Error(kInput) for a negative id.
  virtual std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const = 0;

  // A cancelled Push or Flush throws Error(kCancelled). `cancel` may be null, or outlives the
  // decoder.
  virtual std::unique_ptr<StreamDecoder> NewStream(bool skip_special_tokens,
                                                   const CancelToken* cancel = nullptr) const = 0;

  // One more than the highest id that Encode can produce.
  virtual int32_t VocabSize() const = 0;

  // Whether Decode drops `id` when it skips special tokens.
  virtual bool IsSpecial(int32_t id) const = 0;

  // The token as the vocabulary spells it, which is not how it decodes: "Ġworld", "<0x0A>".
  virtual std::optional<std::string> IdToToken(int32_t id) const = 0;
  virtual std::optional<int32_t> TokenToId(std::string_view token) const = 0;

 private:
  virtual std::vector<int32_t> EncodeUpTo(std::string_view text, bool add_special_tokens,
                                          int64_t max_ids) const = 0;
};

}  // namespace godwit
