#include "eval/suites/haystack.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"
#include "eval/suites/budget.h"

namespace godwit::eval {
namespace {

// "said he." and "go!" end a sentence, "Mr." and "J." do not.
bool EndsSentence(std::string_view text) {
  const size_t mark = text.find_last_not_of("\"')]\xe2\x80\x99\x9d");  // and the bytes of ’ and ”
  if (mark == std::string_view::npos) return false;
  if (text[mark] == '!' || text[mark] == '?') return true;
  if (text[mark] != '.') return false;
  const size_t word = text.find_last_of(" .", mark == 0 ? 0 : mark - 1) + 1;
  constexpr size_t kLongestTitle = 3;
  return word < mark && !(IsUpper(text[word]) && mark - word <= kLongestTitle);
}

}  // namespace

std::vector<std::string> SentencesOf(std::string_view text) {
  constexpr size_t kMaxBytes = 600;
  std::vector<std::string> sentences;
  std::string sentence;
  const auto end = [&] {
    if (!sentence.empty()) sentences.push_back(std::exchange(sentence, {}));
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = static_cast<size_t>(
        std::find_if_not(text.begin() + static_cast<ptrdiff_t>(at), text.end(), IsSpace) -
        text.begin());
    at = static_cast<size_t>(
        std::find_if(text.begin() + static_cast<ptrdiff_t>(begin), text.end(), IsSpace) -
        text.begin());
    if (begin == at) break;
    if (!sentence.empty()) sentence += ' ';
    sentence += text.substr(begin, at - begin);
    if (EndsSentence(sentence) || sentence.size() >= kMaxBytes) end();
  }
  end();
  return sentences;
}

Haystack Haystack::Lines(const PieceMaker& pieces, const std::string& line) {
  Haystack hay(pieces);
  hay.is_lines_ = true;
  hay.made_.push_back(pieces.Make(line + "\n"));
  return hay;
}

Haystack Haystack::Lines(const PieceMaker& pieces, std::function<std::string()> line) {
  Haystack hay(pieces);
  hay.is_lines_ = true;
  hay.line_ = std::move(line);
  return hay;
}

Haystack Haystack::Sentences(const PieceMaker& pieces, const std::vector<std::string>& texts) {
  Haystack hay(pieces);
  for (const std::string& text : texts) {
    for (std::string& sentence : SentencesOf(text)) hay.sentences_.push_back(std::move(sentence));
  }
  hay.made_.resize(hay.sentences_.size());
  return hay;
}

const Piece* Haystack::At(int64_t i) {
  if (is_lines_) {
    while (line_ && std::ssize(made_) <= i) made_.push_back(pieces_->Make(line_() + "\n"));
    return &made_[line_ ? static_cast<size_t>(i) : 0];
  }
  if (i >= count()) return nullptr;
  const auto which = static_cast<size_t>((begin_ + i) % count());
  Piece& piece = made_[which];
  if (piece.text.empty()) piece = pieces_->Make(" " + sentences_[which]);
  return &piece;
}

Piece Haystack::Inside(const std::string& text) const {
  return pieces_->Make(is_lines_ ? text + "\n" : " " + text);
}

Piece Haystack::First(const Piece& piece) const {
  return piece.text.starts_with(' ') ? pieces_->Make(piece.text.substr(1)) : piece;
}

namespace {

// The parts of a sample that do not depend on the amount of hay.
struct HiddenNeedles {
  PromptEnds ends;
  std::vector<Piece> needles;
  const std::vector<double>& depths;  // [needles]
};

struct Fit {
  int64_t pieces = 0, tokens = 0;
};

// The largest number of pieces that takes at most `free_tokens`.
Fit PiecesThatFit(Haystack& hay, int64_t length_tokens, int64_t free_tokens) {
  Fit fit;
  while (true) {
    const Piece* const piece = hay.At(fit.pieces);
    if (piece == nullptr) {
      Throw(ErrorKind::kInput,
            "a sample of {} tokens needs {} tokens of text to hide its needles in, and the text "
            "has {}: give a longer text",
            length_tokens, free_tokens, fit.tokens);
    }
    if (fit.tokens + piece->size() > free_tokens) return fit;
    fit.tokens += piece->size();
    ++fit.pieces;
  }
}

// Builds the prompt, and sets where its needles are and where its context ends.
std::vector<int32_t> Build(const PieceMaker& pieces, Haystack& hay, const HiddenNeedles& hidden,
                           const Fit& fit, Sample& sample) {
  std::vector<TokenSpan>& spans = sample.needles;
  PromptBuilder builder(pieces);
  builder.Append(hidden.ends.first);
  bool begins = true;
  const auto append = [&](const Piece& piece) {
    const int64_t begin = builder.Append(std::exchange(begins, false) ? hay.First(piece) : piece);
    return TokenSpan{begin, builder.size()};
  };
  spans.clear();
  const auto append_needle = [&] { spans.push_back(append(hidden.needles[spans.size()])); };
  int64_t passed = 0;
  for (int64_t i = 0; i < fit.pieces; ++i) {
    const Piece& piece = *hay.At(i);
    passed += piece.size();
    const auto share = 100 * static_cast<double>(passed) / static_cast<double>(fit.tokens);
    while (spans.size() < hidden.needles.size() && share > hidden.depths[spans.size()]) {
      append_needle();
    }
    append(piece);
  }
  while (spans.size() < hidden.needles.size()) append_needle();
  sample.context_tokens = builder.AppendQuestion(hidden.ends.last);
  return builder.Take();
}

}  // namespace

void HideIn(const PieceMaker& pieces, Haystack& hay, const HaystackSample& parts,
            int64_t length_tokens, Sample& sample) {
  HiddenNeedles hidden{.ends = pieces.Ends(parts.words), .needles = {}, .depths = parts.depths};
  int64_t taken = hidden.ends.tokens + parts.max_new_tokens;
  for (const std::string& needle : parts.needles) {
    hidden.needles.push_back(hay.Inside(needle));
    taken += hidden.needles.back().size();
  }
  sample.prompt = BuildToFit(length_tokens, taken, parts.max_new_tokens, [&](int64_t free_tokens) {
    const Fit fit = PiecesThatFit(hay, length_tokens, free_tokens);
    return Build(pieces, hay, hidden, fit, sample);
  });
}

}  // namespace godwit::eval
