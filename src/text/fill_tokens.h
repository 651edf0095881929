// Filling in the middle: the tokens by which models are told of a text with a hole, and the prompt
// that is made of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "godwit/fill_in.h"
#include "text/tokenizer.h"

namespace godwit {

struct FillTokens {
  int32_t prefix;  // before the text in front of the hole,
  int32_t suffix;  // before the one behind it,
  int32_t middle;  // and before what fills it
  // Before all files, and before each; where there are none, files are told as text.
  std::optional<int32_t> repository;
  std::optional<int32_t> file;
  // These end what is filled in, beside those that end any text.
  std::vector<std::string> ends;
};

// The tokens are those that a model names ("prefix", "suffix", "middle", "pad", "repository",
// "file": ids that are in the vocabulary), else those of the names that models have for them. None
// where one of the first three is missing. vocab_size: of the model.
std::optional<FillTokens> FindFillTokens(const std::map<std::string, int32_t>& said,
                                         const Tokenizer& tokenizer,
                                         std::span<const int32_t> eos_ids, int64_t vocab_size);

// The frame of every text first, then the files, the texts before and behind the hole, and the one
// that stands in it. Texts are text: a token that is spelled out in them becomes none, but for
// those that the vocabulary has as ordinary words. More than max_ids may end early, as
// Tokenizer::Encode has it.
std::vector<int32_t> EncodeFillIn(const FillIn& fill, const FillTokens& tokens,
                                  const Tokenizer& tokenizer, int64_t max_ids);

}  // namespace godwit
