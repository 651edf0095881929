#include "console/terminal/answer_text.h"

#include <algorithm>

#include "console/terminal/output.h"

namespace godwit::console {

AnswerText::AnswerText() : terminal_(OutputIsTerminal()) {
  if (terminal_) UseUtf8Locale();  // for the width of characters
}

void AnswerText::Write(std::string_view text) {
  if (!terminal_) return WriteOutput(text);
  if (!begun_) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    begun_ = !text.empty();
  }
  WriteOutput(wrap_.Push(text, OutputColumns()));
}

void AnswerText::Finish() {
  if (terminal_) WriteOutput(wrap_.Flush(OutputColumns()));
}

}  // namespace godwit::console
