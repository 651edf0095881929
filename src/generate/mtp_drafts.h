// MtpDrafts: draft tokens by the layer that comes with a model to predict more tokens
// (DecoderSpec::prediction; DeepSeek-V3, arXiv 2412.19437, section 2.2). An EAGLE-3 head
// (model/eagle3_head.h) may stand in its place. From the state out of which the last token was
// chosen, and that token, it predicts the next one. Each further one comes from its own output.
//
// The layer's keys lie with the text's (AttentionGeometry::predicting), so a text that was forked,
// shortened or saved has them, too.
#pragma once

#include "generate/chain_drafts.h"

namespace godwit {

class MtpDrafts : public ChainDrafts {
 public:
  // For texts of a model that predicts. now_ms: as ChainDrafts takes it. name: a literal.
  explicit MtpDrafts(NowMs now_ms, std::string_view name = "mtp")
      : ChainDrafts(now_ms, /*first_apart=*/false), name_(name) {}

  std::string_view name() const override { return name_; }

 private:
  void Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
             Add add) override;

  std::string_view name_;
};

}  // namespace godwit
