// Reader: the way in which a measurement reads texts: a session, or windows that are read anew
// (recompute.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "godwit/engine.h"

namespace godwit::eval {

struct Reader {
  using OnRow = std::function<void(int64_t position, std::span<const float> logits)>;
  using OnProgress = std::function<void(const PromptProgress& progress)>;

  Reader() = default;
  // A session as a reader; it must outlive the reader.
  Reader(Session& session);  // NOLINT(google-explicit-constructor)

  // The functions of Session with these names.
  std::function<void(std::span<const int32_t> tokens, const OnRow& row, int64_t first,
                     const OnProgress& on_progress)>
      logits;
  std::function<GenerateResult(std::span<const int32_t> prompt, const GenerateOptions& options)>
      generate;
  std::function<KvReport()> kv;
  std::function<int64_t()> limit_tokens;
  int64_t learned_positions = 0;
};

}  // namespace godwit::eval
