#include "engine/text_output.h"

#include <utility>

namespace godwit {

TextOutput::TextOutput(const Tokenizer* tokenizer, const GenerateOptions& options)
    : options_(options), stops_(options.stop) {
  if (tokenizer != nullptr) stream_ = tokenizer->NewStream(/*skip_special_tokens=*/true);
}

void TextOutput::Push(int32_t token) {
  if (stream_ != nullptr) Emit(stops_.Push(stream_->Push(token)));
}

std::string TextOutput::Finish() {
  if (stream_ != nullptr) {
    Emit(stops_.Push(stream_->Flush()));
    Emit(stops_.Flush());
  }
  return std::move(text_);
}

void TextOutput::Emit(const std::string& text) {
  if (text.empty()) return;
  text_ += text;
  if (options_.on_text) options_.on_text(text);
}

}  // namespace godwit
