#include "chat/conversation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "chat/thought_fields.h"

namespace godwit::chat {

Conversation::Conversation(ChatCodec codec, std::optional<std::string> system)
    : codec_(std::move(codec)), system_(std::move(system)) {}

bool Conversation::Ask(std::string question, int64_t limit_tokens) {
  messages_.push_back({.role = "user", .content = std::move(question)});
  before_question_.push_back(End());
  before_answer_.emplace_back();
  const auto take_back = [this] {
    messages_.pop_back();
    before_question_.pop_back();
    before_answer_.pop_back();
  };
  try {
    if (!Extend(Render(), limit_tokens)) {
      take_back();
      return false;
    }
  } catch (...) {  // the template refuses the conversation
    take_back();
    throw;
  }
  before_answer_.back() = End();
  return true;
}

AnswerForm Conversation::form() const {
  return FormOf(
      text_, [this](std::string_view part) { return codec_.encode(part, kAny).size() == 1; },
      codec_.chat_template);
}

int64_t Conversation::question_tokens() const {
  const size_t before = before_question_.empty() ? 0 : before_question_.back().tokens;
  return static_cast<int64_t>(tokens_.size() - before);
}

int64_t Conversation::MessageEnd(int64_t tokens) const {
  const std::vector<Message> messages = AllMessages();
  int64_t end = 0;
  for (size_t n = 1; n <= messages.size() && end < tokens; ++n) {
    std::vector<int32_t> prefix;
    try {
      prefix = codec_.encode(codec_.render(std::span(messages).first(n), /*open=*/false), kAny);
    } catch (const Error&) {
      continue;  // templates may refuse a conversation that ends here
    }
    // A message does not end here either if the template writes more behind it once others follow.
    if (prefix.size() <= tokens_.size() &&
        std::equal(prefix.begin(), prefix.end(), tokens_.begin())) {
      end = std::ssize(prefix);
    }
  }
  return end;
}

void Conversation::Answer(std::string text, std::span<const int32_t> tokens,
                          const std::string& thought) {
  last_answer_ = text_.size();
  text_ += TextOf(tokens);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  messages_.push_back(
      {.role = "assistant", .content = std::move(text), .fields = ThoughtFields(thought)});
}

bool Conversation::Retry() {
  if (messages_.empty() || messages_.back().role != "assistant") return false;
  messages_.pop_back();
  CutTo(before_answer_.back());
  Extend(Render());
  before_answer_.back() = End();
  return true;
}

bool Conversation::Undo() {
  if (messages_.empty()) return false;
  if (messages_.back().role == "assistant") messages_.pop_back();
  messages_.pop_back();
  CutTo(before_question_.back());
  before_question_.pop_back();
  before_answer_.pop_back();
  // A transcript that was encoded anew has lost its earlier length.
  if (tokens_.empty()) SetTranscript(RenderClosed());
  return true;
}

void Conversation::Clear() {
  messages_.clear();
  before_question_.clear();
  before_answer_.clear();
  CutTo({});
}

void Conversation::Load(std::optional<std::string> system, std::vector<Message> messages) {
  std::swap(system_, system);
  std::swap(messages_, messages);
  try {
    SetTranscript(RenderClosed());
  } catch (...) {
    std::swap(system_, system);
    std::swap(messages_, messages);
    throw;
  }
  before_question_.assign(messages_.size() / 2, {});
  before_answer_ = before_question_;
}

std::string Conversation::RenderClosed() const {
  return messages_.empty() ? "" : codec_.render(AllMessages(), /*open=*/false);
}

bool Conversation::SetTranscript(std::string rendered, int64_t limit_tokens) {
  std::vector<int32_t> tokens = codec_.encode(rendered, limit_tokens);
  if (std::ssize(tokens) > limit_tokens) return false;
  tokens_ = std::move(tokens);
  text_ = std::move(rendered);
  last_answer_ = text_.size();
  return true;
}

void Conversation::SetSystem(std::optional<std::string> text) {
  std::swap(system_, text);
  try {
    if (!messages_.empty()) (void)Render();
  } catch (...) {
    std::swap(system_, text);
    throw;
  }
}

void Conversation::CutTo(const Mark& mark) {
  tokens_.resize(mark.tokens);
  text_.resize(mark.text);
  last_answer_ = text_.size();
}

std::vector<Message> Conversation::AllMessages() const {
  std::vector<Message> messages;
  if (system_) messages.push_back({.role = "system", .content = *system_});
  messages.insert(messages.end(), messages_.begin(), messages_.end());
  return messages;
}

std::string Conversation::Render() const { return codec_.render(AllMessages(), /*open=*/true); }

bool Conversation::Extend(const std::string& rendered, int64_t limit_tokens) {
  // A replacement character may be half of a character, cut off where the output ended. Then the
  // text would agree although its tokens do not stand for it.
  const bool exact = text_.find("\uFFFD", last_answer_) == std::string::npos;
  if (!text_.empty() && exact && rendered.starts_with(text_)) {
    const int64_t room = std::max<int64_t>(0, limit_tokens - std::ssize(tokens_));
    if (const auto rest = EncodeRest(std::string_view(rendered).substr(text_.size()), room)) {
      if (std::ssize(*rest) > room) return false;
      tokens_.insert(tokens_.end(), rest->begin(), rest->end());
      text_ = rendered;
      last_answer_ = text_.size();
      return true;
    }
  }
  if (!SetTranscript(rendered, limit_tokens)) return false;
  std::fill(before_question_.begin(), before_question_.end(), Mark{});
  std::fill(before_answer_.begin(), before_answer_.end(), Mark{});
  return true;
}

// Encodes the rest of the text. Tokenizers may treat the beginning of a text differently, such as
// by a space in front. If the text ends in a special token, as finished answers do, the rest is
// encoded behind that token, which does not affect its neighbours.
std::optional<std::vector<int32_t>> Conversation::EncodeRest(std::string_view rest,
                                                             int64_t limit_tokens) const {
  const auto last = std::span(tokens_).last(1);
  if (!codec_.decode(last, /*skip_special=*/true).empty()) return codec_.encode(rest, limit_tokens);
  auto encoded = codec_.encode(codec_.decode(last, /*skip_special=*/false) + std::string(rest),
                               limit_tokens == kAny ? kAny : limit_tokens + 1);
  if (encoded.empty() || encoded.front() != last.front()) return std::nullopt;
  encoded.erase(encoded.begin());
  return encoded;
}

// The output's text, decoded behind the token before it: at the beginning of a text SentencePiece's
// decoders drop a space.
std::string Conversation::TextOf(std::span<const int32_t> output) const {
  if (tokens_.empty()) return codec_.decode(output, /*skip_special=*/false);
  std::vector<int32_t> tokens{tokens_.back()};
  const std::string before = codec_.decode(tokens, /*skip_special=*/false);
  tokens.insert(tokens.end(), output.begin(), output.end());
  const std::string both = codec_.decode(tokens, /*skip_special=*/false);
  return both.starts_with(before) ? both.substr(before.size())
                                  : codec_.decode(output, /*skip_special=*/false);
}

}  // namespace godwit::chat
