// The text of an output as it grows: decoded, cut at stop strings, handed on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/cancel.h"
#include "engine/stop_strings.h"
#include "godwit/engine.h"
#include "text/tokenizer.h"

namespace godwit {

class TextOutput {
 public:
  // `tokenizer` may be null: then there is no text. `prompt`: what the output continues; some
  // tokenizers begin a text, but not its continuation, by dropping a space. `options` and `cancel`
  // must outlive this.
  TextOutput(const Tokenizer* tokenizer, std::span<const int32_t> prompt,
             const GenerateOptions& options, const CancelToken* cancel);

  // Throws Error(kCancelled) where decoding takes long and is cancelled.
  void Push(int32_t token);

  // The end of the text; returns the whole of it.
  std::string Finish();

  bool stopped() const { return stops_.stopped(); }
  const std::string& stop() const { return stops_.stop(); }

 private:
  void Emit(const std::string& text);

  const GenerateOptions& options_;
  StopStrings stops_;
  std::unique_ptr<StreamDecoder> stream_;
  std::string text_;
};

}  // namespace godwit
