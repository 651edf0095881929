#include "quant/calibration_text.h"

#include <algorithm>

#include "base/error.h"
#include "text/leading_tokens.h"

namespace godwit::quant {

CalibrationText CutTokens(std::span<const int32_t> text, std::span<const int32_t> frame,
                          const CalibrationOptions& options) {
  const int64_t total = std::ssize(text);
  if (total < kFewestTokens) {
    Throw(ErrorKind::kInput,
          "the calibration text has {} tokens, expected at least {}: give a longer text", total,
          kFewestTokens);
  }
  const int64_t length = options.seq_len - std::ssize(frame);
  if (length < 1) {
    Throw(ErrorKind::kInput,
          "pieces of {} tokens: expected more than the {} leading tokens of a text",
          options.seq_len, frame.size());
  }
  CalibrationText result;
  const int64_t all = (total + length - 1) / length;  // the last may be shorter
  result.short_text = total < options.samples * length;
  const int64_t count = std::min(all, options.samples);
  for (int64_t i = 0; i < count; ++i) {
    // A text that is long enough has a gap behind each piece.
    const int64_t begin = result.short_text ? i * length : i * (total / count);
    const int64_t end = std::min(total, begin + length);
    std::vector<int32_t> piece(frame.begin(), frame.end());
    piece.insert(piece.end(), text.begin() + begin, text.begin() + end);
    result.tokens += std::ssize(piece);
    result.pieces.push_back(std::move(piece));
  }
  return result;
}

CalibrationText CutCalibrationText(const DecoderSpec& spec, const Tokenizer& tokenizer,
                                   std::string_view text, const CalibrationOptions& options) {
  if (options.seq_len > spec.max_context) {
    Throw(ErrorKind::kInput, "pieces of {} tokens are too long: the model was made for up to {}",
          options.seq_len, spec.max_context);
  }
  auto frame = LeadingTokens([&](std::string_view part, bool add_special_tokens) {
    return tokenizer.Encode(part, add_special_tokens);
  });
  if (spec.sink_token && (frame.empty() || frame.front() != *spec.sink_token)) {
    frame.insert(frame.begin(), *spec.sink_token);
  }
  // A single piece is the text's beginning; several spread over the whole text.
  const int64_t needed =
      options.samples == 1 ? std::max(kFewestTokens, options.seq_len) : INT64_MAX;
  return CutTokens(tokenizer.Encode(text, /*add_special_tokens=*/false, needed), frame, options);
}

}  // namespace godwit::quant
