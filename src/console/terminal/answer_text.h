// AnswerText: generated text on standard output as it comes. At a terminal lines are broken between
// words and the blanks that a model begins with are left out; a pipe gets every byte.
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
  void Finish();  // writes what was held back

 private:
  const bool terminal_;
  bool begun_ = false;
  WordWrap wrap_;
};

// Several answers, one behind the other under a title of its own, the first that is not finished as
// it comes.
class AnswerTexts {
 public:
  explicit AnswerTexts(int count) : answers_(static_cast<size_t>(count)) {}

  // More of one of them; done: there will be nothing else. Throws as WriteOutput does.
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
  std::optional<AnswerText> writer_;  // of the current one
  bool ends_line_ = true;
};

}  // namespace godwit::console
