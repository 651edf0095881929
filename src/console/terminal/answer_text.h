// AnswerText: generated text on standard output as it comes. At a terminal lines are broken between
// words and the blanks that a model begins with are left out; a pipe gets every byte.
#pragma once

#include <string_view>

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

}  // namespace godwit::console
