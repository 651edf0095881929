// An output of which the answer is JSON of a schema, while its thought is free.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/thought_watch.h"
#include "godwit/engine.h"
#include "text/json_grammar.h"
#include "text/tokenizer.h"

namespace godwit {

class SchemaConstraint {
 public:
  // eos: ids that end a text, as none may before the answer.
  SchemaConstraint(std::unique_ptr<JsonMatcher> matcher, const ThoughtMarks& thought,
                   const Tokenizer& tokenizer, std::span<const int32_t> eos);

  // Takes out of the choice what may not follow `output`, which begins as at the last call.
  void Restrict(std::span<const int32_t> output, std::span<float> logits);

 private:
  std::unique_ptr<JsonMatcher> matcher_;
  std::vector<int32_t> eos_;
  std::optional<ThoughtWatch> watch_;  // until the answer begins
  // The token that begins a thought, where the model is free to have one or not.
  std::optional<int32_t> choice_;
  size_t seen_ = 0;  // of the output, by watch_
  size_t answer_from_ = 0;
};

}  // namespace godwit
