// The text of an output as it grows: decoded and cut at stop strings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "engine/stop_strings.h"
#include "text/tokenizer.h"

namespace godwit {

class TextOutput {
 public:
  // tokenizer: null: there is no text. prompt: the tokens before the output; some tokenizers begin
  // a text, but not its continuation, by dropping a space. spelled_out: special tokens that are
  // text here. cancel: must outlive this.
  TextOutput(const Tokenizer* tokenizer, std::span<const int32_t> prompt,
             std::vector<std::string> stop, std::span<const std::string> spelled_out,
             const CancelToken* cancel);

  // Returns the text that the token made certain. Throws Error(kCancelled) where decoding takes
  // long and is cancelled.
  std::string Push(int32_t token);
  // Returns the text that was held back, at the end.
  std::string Finish();

  bool stopped() const { return stops_.stopped(); }
  const std::string& stop() const { return stops_.stop(); }

 private:
  std::string Decode(int32_t token);
  // Pushes the prompt's end, so that the next token is not at the beginning of a text.
  void PushBeginning();

  StopStrings stops_;
  std::unique_ptr<StreamDecoder> stream_;
  std::vector<int32_t> beginning_;
  std::map<int32_t, std::string> spelled_out_;
};

}  // namespace godwit
