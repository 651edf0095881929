#include "engine/text_output.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit {

TextOutput::TextOutput(const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                       std::vector<std::string> stop, std::span<const std::string> spelled_out,
                       const CancelToken* cancel)
    : stops_(std::move(stop)) {
  if (tokenizer == nullptr) return;
  for (const std::string& text : spelled_out) {
    const auto id = tokenizer->TokenToId(text);
    if (id && tokenizer->IsSpecial(*id)) spelled_out_.emplace(*id, text);
  }
  stream_ = tokenizer->NewStream(/*skip_special_tokens=*/true, cancel);
  const bool continues = std::any_of(prompt.rbegin(), prompt.rend(),
                                     [&](int32_t token) { return !tokenizer->IsSpecial(token); });
  // Any text works. The prompt's own last token might be held back and come out with the output.
  if (continues || !spelled_out_.empty()) {
    beginning_ = tokenizer->Encode("a", /*add_special_tokens=*/false);
  }
  if (continues) PushBeginning();
}

void TextOutput::PushBeginning() {
  for (const int32_t token : beginning_) stream_->Push(token);
}

std::string TextOutput::Decode(int32_t token) {
  const auto found = spelled_out_.find(token);
  if (found == spelled_out_.end()) return stream_->Push(token);
  std::string text = stream_->Flush() + found->second;
  PushBeginning();
  return text;
}

std::string TextOutput::Push(int32_t token) {
  return stream_ == nullptr ? "" : stops_.Push(Decode(token));
}

std::string TextOutput::Finish() {
  if (stream_ == nullptr) return "";
  std::string text;
  try {
    text = stops_.Push(stream_->Flush());
  } catch (const Error& error) {
    // After a cancellation, a hanging decoder has nothing more to say.
    if (error.kind() != ErrorKind::kCancelled) throw;
  }
  return text + stops_.Flush();
}

}  // namespace godwit
