// ModelDrafts: draft tokens by another model, which is smaller and has the same tokens: speculative
// decoding with an independent draft model (arXiv 2211.17192). In TokenSwift (arXiv 2502.18890) it
// is the small model of TriForce.
//
// The draft model reads the text into a cache of its own, a chunk in each step while the prompt is
// read. A chain of draft tokens is written behind the text. When the text goes on otherwise, the
// cache goes back to where both are the same. The draft tokens are drawn as the text draws: at the
// same place in the text both draw the same random number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generate/chain_drafts.h"
#include "generate/draft_texts.h"

namespace godwit {

class ModelDrafts : public ChainDrafts {
 public:
  struct Parts {
    std::shared_ptr<const LanguageModel> model;
    std::function<std::unique_ptr<TextCache>()> new_text;
    std::shared_ptr<DraftTexts> kept;  // goes on from these, and leaves its own
    std::string key;                   // as DraftTexts has it
    int64_t chunk_tokens;              // the most tokens that are read in a step, 1 or more
  };
  // now_ms: as ChainDrafts takes it.
  ModelDrafts(Parts parts, NowMs now_ms);

  std::string_view name() const override { return "model"; }
  void Follow(std::span<const int32_t> text) override;
  double EndStep(const LanguageModel& model, const Exec& exec) override;
  bool ReleaseMemory() override;

 private:
  // So few unread tokens are read together with the next draft token's.
  static constexpr int64_t kFewTokens = 64;

  bool CanDraft(const Sequence& sequence) const override;
  void Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
             Add add) override;
  // After a failure there are no more draft tokens.
  void OnError(const Error& /*error*/) override { ReleaseMemory(); }

  int64_t cached() const { return cache_ == nullptr ? 0 : cache_->length(); }
  // The cached tokens that are the text's.
  int64_t cached_of_text() const { return std::min(cached(), text_tokens_); }
  void Begin();
  void GoBackTo(int64_t length);
  // Reads tokens_[cached(), end). hidden [end - cached(), hidden size].
  void Read(const Exec& exec, int64_t end, MatrixView<float> hidden);

  Parts parts_;
  NowMs clock_;
  bool released_ = false;
  bool kept_prompt_ = false;          // whether the prompt was left to others
  std::vector<int32_t> tokens_;       // the text, then draft tokens
  int64_t text_tokens_ = 0;           // tokens of the text
  std::unique_ptr<TextCache> cache_;  // of the first tokens; null: nothing was read
  std::optional<Sampler> sampler_;    // as the text has it
};

}  // namespace godwit
