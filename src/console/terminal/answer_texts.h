// AnswerTexts: several answers on standard output, one behind the other under a title of its own,
// the first that is not finished as it comes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console/terminal/answer_text.h"

namespace godwit::console {

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
