#include "eval/suites/suite_reader.h"

#include <algorithm>
#include <span>

namespace godwit::eval {

GenerateResult SuiteReader::Ask(const Sample& sample, const OnProgress& on_progress) {
  GenerateOptions options;
  options.max_tokens = sample.max_new_tokens;
  options.query_tokens = query_tokens_;
  options.sampler.temperature = 0;
  options.stop = sample.stop;
  options.on_progress = on_progress;
  const auto shared = std::span(sample.prompt).first(sample.shared_tokens);
  if (shared.empty()) {
    shared_.reset();
    return new_session_().Generate(sample.prompt, options);
  }
  if (!shared_ || !std::ranges::equal(shared_->tokens(), shared)) {
    shared_.reset();  // frees its memory
    shared_ = new_session_();
    const auto no_row = [](int64_t, std::span<const float>) {};
    shared_->Logits(shared, no_row, std::ssize(shared) - 1, on_progress);
  }
  return shared_->Fork().Generate(sample.prompt, options);
}

}  // namespace godwit::eval
