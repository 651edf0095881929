// One token after the other: the definition that every faster strategy must reproduce.
#pragma once

#include "generate/strategy.h"
#include "model/language_model.h"

namespace godwit {

class Autoregressive : public Strategy {
 public:
  // The model is borrowed. chunk_tokens: the most that one step reads.
  Autoregressive(const LanguageModel& model, int64_t chunk_tokens);

  std::span<const int32_t> Step(Sequence& sequence, const Exec& exec) override;

 private:
  const LanguageModel& model_;
  int64_t chunk_tokens_;
};

}  // namespace godwit
