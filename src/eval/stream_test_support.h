// For the tests of streams: an engine around a scripted model, whose tokens are bytes.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/engine_impl.h"
#include "eval/stream.h"
#include "tests/answering_model.h"
#include "tests/session_of.h"

namespace godwit::eval {

inline std::unique_ptr<const Engine::Impl> EngineThatAnswers(
    std::unique_ptr<const LanguageModel> model, int64_t max_context = 1 << 20) {
  DecoderSpec spec = FakeModel::Spec(FakeTokenizer::kEos + 1, max_context);
  SpecialTokens special;
  special.eos_ids = {FakeTokenizer::kEos};
  return std::make_unique<const Engine::Impl>(std::move(model), spec,
                                              std::make_unique<FakeTokenizer>(), special,
                                              LoadOptions{.threads = 1});
}

inline Session NewSession(const Engine::Impl& engine, const SessionOptions& options) {
  return SessionOf(engine, options);
}

inline StreamCoder ByteCoder() {
  return {.frame = {FakeTokenizer::kBos},
          .encode =
              [](std::string_view text) {
                return FakeTokenizer().Encode(text, /*add_special_tokens=*/false);
              },
          .decode =
              [](std::span<const int32_t> tokens) {
                return FakeTokenizer().Decode(tokens, /*skip_special_tokens=*/true);
              }};
}

// The number of times that each position was read, and the text that was read last.
struct Reads {
  std::vector<int64_t> times;
  std::string text;
};

inline Reads ReadsOf(const Engine::Impl& engine) {
  Reads reads;
  for (const FakeModel::Read& read : static_cast<const FakeModel&>(*engine.model).reads()) {
    const auto end = static_cast<size_t>(read.position) + read.tokens.size();
    if (reads.times.size() < end) reads.times.resize(end);
    if (reads.text.size() < end) reads.text.resize(end);
    for (size_t i = 0; i < read.tokens.size(); ++i) {
      const size_t at = static_cast<size_t>(read.position) + i;
      ++reads.times[at];
      reads.text[at] = read.tokens[i] < 256 ? static_cast<char>(read.tokens[i]) : '\x01';
    }
  }
  return reads;
}

}  // namespace godwit::eval
