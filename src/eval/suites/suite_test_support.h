// For the tests of suites: samples whose tokens are bytes, so that prompts are readable.
#pragma once

#include <string>
#include <string_view>

#include "eval/stream_test_support.h"
#include "eval/suites/all_suites.h"

namespace godwit::eval {

// A suite with the byte tokenizer.
class ByteSuite {
 public:
  explicit ByteSuite(const Suite& suite, SuiteInputs inputs = {}, ChatRender chat = {})
      : coder_(ByteCoder()), pieces_(coder_, std::move(chat)) {
    if (inputs.max_new_tokens == 0) inputs.max_new_tokens = suite.max_new_tokens;
    inputs.task = suite.name;
    make_ = suite.open(inputs, pieces_);
  }

  Sample Make(const SamplePlace& place) { return make_(place); }

 private:
  const StreamCoder coder_;
  const PieceMaker pieces_;
  SampleMaker make_;
};

// The text without the frame: the token i is the byte i - 1.
inline std::string TextOf(std::span<const int32_t> tokens) { return ByteCoder().decode(tokens); }

inline std::string NeedleOf(const Sample& sample, size_t which = 0) {
  const auto [begin, end] = sample.needles.at(which);
  return TextOf(std::span(sample.prompt).subspan(begin, end - begin));
}

}  // namespace godwit::eval
