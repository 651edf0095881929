#include "console/terminal/word_wrap.h"

#include <wchar.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace godwit::console {
namespace {

constexpr std::string_view kFence = "```";

struct Character {
  std::string_view bytes;
  int columns;
};

// The first character of `text` and its width by the C library: 0 for one that combines with the
// one before, 2 for wide ones.
Character FirstOf(std::string_view text) {
  wchar_t wide = 0;
  mbstate_t state{};
  const size_t length = mbrtowc(&wide, text.data(), text.size(), &state);
  if (length == 0 || length > text.size()) return {text.substr(0, 1), 1};  // no such locale
  return {text.substr(0, length), std::max(0, wcwidth(wide))};
}

}  // namespace

std::string WordWrap::Push(std::string_view text, int columns) {
  std::string out;
  while (!text.empty()) {
    const Character next = FirstOf(text);
    text.remove_prefix(next.bytes.size());
    const bool blank = next.bytes == " " || next.bytes == "\t";
    const bool alone = blank || next.bytes == "\n" || next.columns > 1;
    if (alone) EndWord(columns, out);
    if (next.bytes == "\n") {
      out += std::exchange(blanks_, "") + '\n';
      column_ = blank_columns_ = 0;
      line_begins_ = true;
    } else if (blank) {
      blanks_ += next.bytes;
      const int at = column_ + blank_columns_;
      blank_columns_ += next.bytes == " " ? 1 : 8 - at % 8;  // tab stops of every terminal
    } else {
      word_ += next.bytes;
      word_columns_ += next.columns;
      if (alone) EndWord(columns, out);
    }
  }
  // The word cannot stand on this line, whatever follows.
  const bool decided = word_begun_ || column_ + blank_columns_ + word_columns_ > columns;
  const bool fence_to_come = line_begins_ && kFence.starts_with(word_);
  if (decided && !word_.empty() && !fence_to_come) {
    WriteWord(columns, out);
    word_begun_ = true;
  }
  return out;
}

std::string WordWrap::Flush(int columns) {
  std::string out;
  EndWord(columns, out);
  out += std::exchange(blanks_, "");
  column_ += std::exchange(blank_columns_, 0);
  return out;
}

void WordWrap::EndWord(int columns, std::string& out) {
  if (!word_.empty()) WriteWord(columns, out);
  word_begun_ = false;
}

void WordWrap::WriteWord(int columns, std::string& out) {
  if (std::exchange(line_begins_, false) && word_.starts_with(kFence)) code_ = !code_;
  const bool fits = column_ + blank_columns_ + word_columns_ <= columns;
  if (fits || code_ || word_begun_ || column_ == 0) {
    out += blanks_;
    column_ += blank_columns_;
  } else {
    out += '\n';
    column_ = 0;
  }
  blanks_.clear();
  blank_columns_ = 0;
  out += std::exchange(word_, "");
  column_ += std::exchange(word_columns_, 0);
  // The terminal itself breaks a word longer than a line.
  if (column_ > columns) column_ = (column_ - 1) % columns + 1;
}

}  // namespace godwit::console
