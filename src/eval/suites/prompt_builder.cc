#include "eval/suites/prompt_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"

namespace godwit::eval {
namespace {

constexpr std::string_view kLine = "\n", kWord = "a";
// Stands for the text of a sample in a template.
constexpr std::string_view kText = "{the text of the sample}";

bool Meet(std::string_view before, std::string_view after) {
  if (before.empty() || after.empty()) return true;
  if (before.back() == '\n') return !IsSpace(after.front());
  return !IsSpace(before.back()) && after.front() == ' ' && after.size() > 1 && !IsSpace(after[1]);
}

}  // namespace

PieceMaker::PieceMaker(const StreamCoder& coder, ChatRender chat)
    : coder_(coder),
      chat_(std::move(chat)),
      line_(coder.encode(kLine)),
      word_(coder.encode(kWord)) {}

PromptEnds PieceMaker::Ends(const PromptWords& words) const {
  std::string first = words.before, last = words.question + words.answer;
  if (chat_) {
    // Rendered in one, since a template may strip a message. An answer begins without line ends.
    const std::string text = chat_(fmt::format("{}{}{}", words.before, kText, words.question));
    const size_t at = text.find(kText);
    if (at == std::string::npos) {
      Throw(ErrorKind::kUnsupported,
            "the model's chat template does not show a message as it stands");
    }
    first = text.substr(0, at);
    last = text.substr(at + kText.size()) +
           words.answer.substr(std::min(words.answer.find_first_not_of('\n'), words.answer.size()));
  }
  PromptEnds ends{.first = MakeFirst(std::move(first)), .last = Make(std::move(last))};
  ends.tokens = std::ssize(coder_.frame) + ends.first.size() + ends.last.size();
  return ends;
}

Piece PieceMaker::Make(std::string text) const {
  const bool blank = !text.empty() && IsSpace(text.front());
  const auto& head = blank ? word_ : line_;
  std::vector<int32_t> both = coder_.encode(std::string(blank ? kWord : kLine) + text);
  if (both.size() < head.size() || !std::equal(head.begin(), head.end(), both.begin())) {
    both = coder_.encode(text);
  } else {
    both.erase(both.begin(), both.begin() + std::ssize(head));
  }
  return {.text = std::move(text), .tokens = std::move(both)};
}

std::vector<Piece> PieceMaker::Make(const std::vector<std::string>& texts) const {
  std::vector<Piece> pieces;
  for (const std::string& text : texts) pieces.push_back(Make(text));
  return pieces;
}

Piece PieceMaker::MakeFirst(std::string text) const {
  auto tokens = coder_.encode(text);
  return {.text = std::move(text), .tokens = std::move(tokens)};
}

PromptBuilder::PromptBuilder(const PieceMaker& maker)
    : maker_(maker), tokens_(maker.coder().frame) {}

int64_t PromptBuilder::Append(const Piece& piece) {
  if (Meet(last_, piece.text)) {
    last_begin_ = size();
    last_ = piece.text;
    tokens_.insert(tokens_.end(), piece.tokens.begin(), piece.tokens.end());
    return last_begin_;
  }
  last_ += piece.text;
  const bool first = last_begin_ == std::ssize(maker_.coder().frame);
  const Piece joined = first ? maker_.MakeFirst(last_) : maker_.Make(last_);
  tokens_.resize(static_cast<size_t>(last_begin_));
  tokens_.insert(tokens_.end(), joined.tokens.begin(), joined.tokens.end());
  return last_begin_;
}

}  // namespace godwit::eval
