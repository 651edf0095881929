#include "eval/suites/haystack.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.h"

namespace godwit::eval {
namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsUpper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// "said he." and "go!" do, "Mr." and "J." do not.
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
  constexpr size_t kMostBytes = 600;
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
    if (EndsSentence(sentence) || sentence.size() >= kMostBytes) end();
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

int64_t RoomIn(int64_t length_tokens, int64_t taken_tokens) {
  if (taken_tokens <= length_tokens) return length_tokens - taken_tokens;
  Throw(ErrorKind::kInput,
        "a sample of {} tokens has no room for its question, its needles and its answer, which "
        "take {}",
        length_tokens, taken_tokens);
}

void Bury(const PieceMaker& pieces, Haystack& hay, const HaystackSample& parts,
          int64_t length_tokens, Sample& sample) {
  const Piece before = pieces.MakeFirst(parts.before);
  const Piece after = pieces.Make(parts.after);
  std::vector<Piece> needles;
  int64_t taken =
      std::ssize(pieces.coder().frame) + before.size() + after.size() + parts.max_new_tokens;
  for (const std::string& needle : parts.needles) {
    needles.push_back(hay.Inside(needle));
    taken += needles.back().size();
  }

  // Joining the last piece with what follows may take a token more than both by themselves.
  for (int64_t room = RoomIn(length_tokens, taken);;) {
    int64_t count = 0, hay_tokens = 0;
    while (true) {
      const Piece* const piece = hay.At(count);
      if (piece == nullptr) {
        Throw(ErrorKind::kInput,
              "a sample of {} tokens needs {} of text to hide its needles in, and there are {}: "
              "expected a longer text",
              length_tokens, room, hay_tokens);
      }
      if (hay_tokens + piece->size() > room) break;
      hay_tokens += piece->size();
      ++count;
    }

    PromptBuilder builder(pieces);
    builder.Append(before);
    sample.needles.clear();
    bool begins = true;
    const auto append = [&](const Piece& piece) {
      const int64_t begin = builder.Append(std::exchange(begins, false) ? hay.First(piece) : piece);
      return TokenSpan{begin, builder.size()};
    };
    size_t next = 0;
    int64_t passed = 0;
    for (int64_t i = 0; i <= count; ++i) {
      const int64_t size = i < count ? hay.At(i)->size() : 0;
      const auto reached = [&](double depth) {
        return i == count ||
               static_cast<double>(passed + size) > depth / 100 * static_cast<double>(hay_tokens);
      };
      while (next < needles.size() && reached(parts.depths[next])) {
        sample.needles.push_back(append(needles[next++]));
      }
      if (i < count) append(*hay.At(i));
      passed += size;
    }
    builder.Append(after);
    const int64_t excess = builder.size() + parts.max_new_tokens - length_tokens;
    if (excess <= 0) {
      sample.prompt = builder.Take();
      return;
    }
    room = RoomIn(length_tokens, length_tokens - room + excess);
  }
}

}  // namespace godwit::eval
