// The place in tokens where a context ends and its continuation begins.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace godwit::eval {

// Turns text into tokens, framed as the model expects a prompt (a BOS, for most models).
using Encoder = std::function<std::vector<int32_t>(std::string_view text)>;

struct EncodedPair {
  std::vector<int32_t> tokens;  // of context and continuation
  int64_t context_tokens = 0;   // from 1 to tokens.size() - 1

  // The tokens that the model reads: nothing follows the last one.
  int64_t read_tokens() const { return static_cast<int64_t>(tokens.size()) - 1; }
};

// Encodes both as one text, as the harness does. The context has as many tokens as it has when
// encoded alone. Blanks at its end are the continuation's, since most tokenizers keep a blank
// together with the word behind it. Throws Error(kUnsupported) if nothing is left of either: a
// tokenizer that joins them leaves nothing to score.
EncodedPair EncodePair(const Encoder& encode, std::string_view context,
                       std::string_view continuation);

}  // namespace godwit::eval
