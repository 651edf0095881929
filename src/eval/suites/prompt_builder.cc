#include "eval/suites/prompt_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"

namespace godwit::eval {
namespace {

constexpr std::string_view kLine = "\n", kWord = "a";
// The placeholder for a sample's text in a template.
constexpr std::string_view kText = "{the text of the sample}";

bool SplitsCleanly(std::string_view before, std::string_view after) {
  if (before.empty() || after.empty()) return true;
  if (before.back() == '\n') return !IsSpace(after.front());
  return !IsSpace(before.back()) && after.front() == ' ' && after.size() > 1 && !IsSpace(after[1]);
}

}  // namespace

PieceMaker::PieceMaker(const StreamCoder& coder, ChatRender chat)
    : coder_(coder),
      chat_(std::move(chat)),
      line_(coder.encode(kLine)),
      word_(coder.encode(kWord)),
      line_word_(coder.encode(fmt::format("{}{}", kLine, kWord))) {}

PromptEnds PieceMaker::Ends(const PromptWords& words) const {
  std::string first = words.before, last = words.question + words.answer;
  if (chat_) {
    // The template renders one message, which it may strip. An answer begins without newlines.
    const std::string text = chat_(fmt::format("{}{}{}", words.before, kText, words.question));
    const size_t at = text.find(kText);
    if (at == std::string::npos) {
      Throw(ErrorKind::kUnsupported,
            "the model's chat template changes messages, so the suite cannot measure their length");
    }
    first = text.substr(0, at);
    last = text.substr(at + kText.size()) +
           words.answer.substr(std::min(words.answer.find_first_not_of('\n'), words.answer.size()));
  }
  PromptEnds ends{.first = MakeFirst(std::move(first)), .last = MakeLast(std::move(last))};
  ends.tokens = std::ssize(coder_.frame) + ends.first.size() + ends.last.size();
  return ends;
}

// Encodes blanks at the end as before a word: there GPT-2's rules make the last of several blanks a
// token of its own. At the end of a text they would be one token.
std::vector<int32_t> PieceMaker::Encode(const std::string& text, bool is_last) const {
  const auto blanks = text.size() - std::min(text.find_last_not_of(" \n") + 1, text.size());
  if (is_last || blanks < 2 || text.back() != '\n') return coder_.encode(text);
  std::vector<int32_t> tokens = coder_.encode(fmt::format("{}{}", text, kWord));
  const std::span word = std::span(line_word_).subspan(std::min(line_.size(), line_word_.size()));
  if (tokens.size() < word.size() ||
      !std::ranges::equal(std::span(tokens).last(word.size()), word)) {
    return coder_.encode(text);
  }
  tokens.resize(tokens.size() - word.size());
  return tokens;
}

Piece PieceMaker::Make(std::string text) const { return MakeInside(std::move(text), false); }
Piece PieceMaker::MakeLast(std::string text) const { return MakeInside(std::move(text), true); }

Piece PieceMaker::MakeInside(std::string text, bool is_last) const {
  const bool blank = !text.empty() && IsSpace(text.front());
  const auto& head = blank ? word_ : line_;
  std::vector<int32_t> both = Encode(std::string(blank ? kWord : kLine) + text, is_last);
  if (both.size() < head.size() || !std::equal(head.begin(), head.end(), both.begin())) {
    both = Encode(text, is_last);
  } else {
    both.erase(both.begin(), both.begin() + std::ssize(head));
  }
  return {.text = std::move(text), .tokens = std::move(both), .is_last = is_last};
}

std::vector<Piece> PieceMaker::Make(const std::vector<std::string>& texts) const {
  std::vector<Piece> pieces;
  for (const std::string& text : texts) pieces.push_back(Make(text));
  return pieces;
}

Piece PieceMaker::MakeFirst(std::string text) const {
  auto tokens = Encode(text, /*is_last=*/false);
  return {.text = std::move(text), .tokens = std::move(tokens), .is_first = true};
}

PromptBuilder::PromptBuilder(const PieceMaker& maker)
    : maker_(maker), tokens_(maker.coder().frame) {}

int64_t PromptBuilder::Append(const Piece& piece) {
  const auto frame = std::ssize(maker_.coder().frame);
  if (size() == frame && !piece.is_first && !piece.text.empty()) {
    return Append(maker_.MakeFirst(piece.text));
  }
  if (SplitsCleanly(last_, piece.text)) {
    last_begin_ = size();
    last_ = piece.text;
    tokens_.insert(tokens_.end(), piece.tokens.begin(), piece.tokens.end());
    return last_begin_;
  }
  last_ += piece.text;
  const Piece joined = last_begin_ == frame ? maker_.MakeFirst(last_)
                       : piece.is_last      ? maker_.MakeLast(last_)
                                            : maker_.Make(last_);
  tokens_.resize(last_begin_);
  tokens_.insert(tokens_.end(), joined.tokens.begin(), joined.tokens.end());
  return last_begin_;
}

int64_t PromptBuilder::AppendQuestion(const Piece& piece) {
  const int64_t from = last_begin_;
  const std::vector<int32_t> before(tokens_.begin() + from, tokens_.end());
  Append(piece);
  return from +
         (std::mismatch(before.begin(), before.end(), tokens_.begin() + from, tokens_.end()).first -
          before.begin());
}

}  // namespace godwit::eval
