// The pieces of a text on which a model is calibrated.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/spec.h"
#include "text/tokenizer.h"

namespace godwit::quant {

inline constexpr int64_t kFewestTokens = 1000;

struct CalibrationOptions {
  int64_t samples = 512;
  int64_t seq_len = 512;  // tokens of a piece, its frame included
};

struct CalibrationText {
  std::vector<std::vector<int32_t>> pieces;
  int64_t tokens = 0;       // of all pieces
  bool short_text = false;  // less text than asked for: all of it is here
};

// Cuts up to `samples` pieces that do not overlap, spread evenly over the text. Each is framed as
// the model expects a text: with the tokenizer's BOS, or the model's sink token. Throws
// Error(kInput) for fewer than kFewestTokens tokens of text and for pieces longer than the model's
// context.
CalibrationText CutCalibrationText(const DecoderSpec& spec, const Tokenizer& tokenizer,
                                   std::string_view text, const CalibrationOptions& options);

// The testable half of CutCalibrationText, for a text without its frame. A piece takes seq_len -
// frame tokens of the text.
CalibrationText CutTokens(std::span<const int32_t> text, std::span<const int32_t> frame,
                          const CalibrationOptions& options);

}  // namespace godwit::quant
