// AnswerText: generated text on standard output as it arrives. At a terminal, lines break between
// words and leading blanks are left out; a pipe gets every byte.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console/terminal/word_wrap.h"

namespace godwit::console {

class AnswerText {
 public:
  AnswerText();

  // Both throw as WriteOutput does.
  void Write(std::string_view text);
  void Finish();  // writes the text that was held back

 private:
  const bool terminal_;
  bool begun_ = false;
  WordWrap wrap_;
};

// AnswerTexts: several answers in order, each under a heading. The first unfinished one is written
// as it arrives.
class AnswerTexts {
 public:
  explicit AnswerTexts(int count) : answers_(count) {}

  // Takes more text of an answer; done: the answer is complete. Throws as WriteOutput does.
  void Take(int answer, std::string_view text, bool done);

 private:
  struct Answer {
    std::string unwritten;
    bool done = false;
  };

  void Begin();
  void End();

  std::vector<Answer> answers_;
  size_t current_ = 0;
  std::optional<AnswerText> writer_;  // writes the current answer
  bool ends_line_ = true;
};

}  // namespace godwit::console
