#include "console/terminal/answer_texts.h"

#include <fmt/format.h>

#include <utility>

#include "console/terminal/output.h"

namespace godwit::console {

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
  Answer& taken = answers_[static_cast<size_t>(answer)];
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
