#include "console/terminal/answer_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

void AnswerTexts::Begin() {
  WriteOutput(fmt::format("{}--- {} of {} ---\n", current_ == 0 ? "" : "\n", current_ + 1,
                          answers_.size()));
  writer_.emplace();
  ends_line_ = true;
}

void AnswerTexts::End() {
  writer_->Finish();
  writer_.reset();
  if (!ends_line_) WriteOutput("\n");
  ++current_;
}

void AnswerTexts::Take(int answer, std::string_view text, bool done) {
  Answer& taken = answers_[answer];
  taken.unwritten += text;
  taken.done = done;
  while (current_ < answers_.size()) {
    Answer& current = answers_[current_];
    if (!writer_) Begin();
    if (!current.unwritten.empty()) {
      ends_line_ = current.unwritten.ends_with('\n');
      writer_->Write(std::exchange(current.unwritten, {}));
    }
    if (!current.done) return;
    End();
  }
}

}  // namespace godwit::console
