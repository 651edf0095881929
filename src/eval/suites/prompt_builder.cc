#include "eval/suites/prompt_builder.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace godwit::eval {
namespace {

constexpr std::string_view kLine = "\n", kWord = "a";

bool Meet(std::string_view before, std::string_view after) {
  if (before.empty() || after.empty()) return true;
  if (before.back() == '\n') return !IsSpace(after.front());
  return !IsSpace(before.back()) && after.front() == ' ' && after.size() > 1 && !IsSpace(after[1]);
}

}  // namespace

PieceMaker::PieceMaker(const StreamCoder& coder)
    : coder_(coder), line_(coder.encode(kLine)), word_(coder.encode(kWord)) {}

PromptEnds PieceMaker::Ends(const PromptWords& words) const {
  PromptEnds ends{.first = MakeFirst(words.before), .last = Make(words.question + words.answer)};
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
