#include "engine/text_output.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit {

TextOutput::TextOutput(const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                       const GenerateOptions& options, const CancelToken* cancel)
    : options_(options), stops_(options.stop) {
  if (tokenizer == nullptr) return;
  stream_ = tokenizer->NewStream(/*skip_special_tokens=*/true, cancel);
  const bool continues = std::any_of(prompt.rbegin(), prompt.rend(),
                                     [&](int32_t token) { return !tokenizer->IsSpecial(token); });
  // Any text will do. The prompt's own last token might be held back and come out with the output.
  if (continues) {
    for (const int32_t token : tokenizer->Encode("a", /*add_special_tokens=*/false)) {
      stream_->Push(token);
    }
  }
}

void TextOutput::Push(int32_t token) {
  if (stream_ != nullptr) Emit(stops_.Push(stream_->Push(token)));
}

std::string TextOutput::Finish() {
  if (stream_ != nullptr) {
    try {
      Emit(stops_.Push(stream_->Flush()));
    } catch (const Error& error) {
      // A decoder that hangs has nothing more to say to who has given up.
      if (error.kind() != ErrorKind::kCancelled) throw;
    }
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
