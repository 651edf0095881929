// ModelDrafts: draft tokens by another model, which is smaller and has the same tokens: speculative
// decoding with an independent draft model (arXiv 2211.17192). A chain of draft tokens is written
// behind the text as that model has read it (model_text.h).
#pragma once

#include <cstdint>
#include <utility>

#include "generate/chain_drafts.h"
#include "generate/model_text.h"

namespace godwit {

class ModelDrafts : public ChainDrafts {
 public:
  using Parts = ModelText::Parts;
  // now_ms: as ChainDrafts takes it.
  ModelDrafts(Parts parts, NowMs now_ms)
      : ChainDrafts(now_ms, /*first_apart=*/false), read_(std::move(parts)) {}

  std::string_view name() const override { return "model"; }
  void Follow(std::span<const int32_t> text) override { read_.Follow(text); }
  double EndStep(const LanguageModel& model, const Exec& exec) override;
  bool ReleaseMemory() override { return read_.Release(); }

 private:
  bool CanDraft(const Sequence& sequence) const override {
    return read_.CanDraw(std::ssize(sequence.tokens));
  }
  void Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
             Add add) override;
  // After a failure there are no more draft tokens.
  void OnError(const Error& /*error*/) override { ReleaseMemory(); }

  ModelText read_;
};

}  // namespace godwit
