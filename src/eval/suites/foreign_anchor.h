// ForeignAnchor: tokens in front of a prompt, which the blocks of a star see in place of its first
// block (Star Attention, table 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "eval/stream.h"
#include "eval/suites/sample.h"

namespace godwit::eval {

class ForeignAnchor {
 public:
  // kind: "first" is the prompt's own first tokens, and "shuffled" has them in random order.
  // "random" is any tokens of the vocabulary. "constant:TEXT" is the last token of TEXT again and
  // again. Throws Error(kInput) for another one.
  explicit ForeignAnchor(std::string_view kind);

  // Puts `tokens` tokens in front of the sample's prompt, the coder's frame first. A shorter prompt
  // is repeated. They count as context. vocab: ids are below it.
  void PutBefore(Sample& sample, int64_t tokens, const StreamCoder& coder, int64_t vocab,
                 uint64_t seed, int64_t index) const;

 private:
  enum class Kind { kFirst, kShuffled, kRandom, kConstant };
  Kind kind_;
  std::string text_;  // of kConstant
};

}  // namespace godwit::eval
