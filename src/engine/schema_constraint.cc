#include "engine/schema_constraint.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampling/allow_only.h"

namespace godwit {

SchemaConstraint::SchemaConstraint(std::unique_ptr<JsonMatcher> matcher,
                                   const ThoughtMarks& thought, const Tokenizer& tokenizer,
                                   std::span<const int32_t> eos)
    : matcher_(std::move(matcher)), eos_(eos.begin(), eos.end()) {
  if (thought.end.empty()) return;
  const bool must_begin = thought.open || !thought.before_answer.empty();
  // The model was not trained with this mark if the mark has several tokens.
  if (!must_begin) choice_ = tokenizer.TokenToId(thought.begin);
  if (must_begin || choice_) watch_.emplace(thought, tokenizer, nullptr);
}

void SchemaConstraint::Restrict(std::span<const int32_t> output, std::span<float> logits) {
  if (watch_ && choice_ && !output.empty() && output.front() != *choice_) watch_.reset();
  while (watch_ && seen_ < output.size()) {
    watch_->Push(output[seen_++]);
    if (!watch_->in_answer()) continue;
    answer_from_ = seen_;
    watch_.reset();
  }
  if (!watch_) {
    AllowOnly(matcher_->Allowed(output.subspan(answer_from_)), logits);
  } else if (choice_ && output.empty()) {
    const auto begin = static_cast<size_t>(*choice_);
    constexpr size_t kBits = 32;
    std::vector<uint32_t> allowed = matcher_->Allowed(output);
    allowed.resize(std::max(allowed.size(), begin / kBits + 1));
    allowed[begin / kBits] |= uint32_t{1} << begin % kBits;
    AllowOnly(allowed, logits);
  } else {
    for (const int32_t id : eos_) {
      if (std::cmp_less(id, logits.size())) logits[id] = -INFINITY;
    }
  }
}

}  // namespace godwit
