#include "engine/text_output.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit {

TextOutput::TextOutput(const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                       std::vector<std::string> stop, const CancelToken* cancel)
    : stops_(std::move(stop)) {
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

std::string TextOutput::Push(int32_t token) {
  return stream_ == nullptr ? "" : stops_.Push(stream_->Push(token));
}

std::string TextOutput::Finish() {
  if (stream_ == nullptr) return "";
  std::string text;
  try {
    text = stops_.Push(stream_->Flush());
  } catch (const Error& error) {
    // A decoder that hangs has nothing more to say to who has given up.
    if (error.kind() != ErrorKind::kCancelled) throw;
  }
  return text + stops_.Flush();
}

}  // namespace godwit
