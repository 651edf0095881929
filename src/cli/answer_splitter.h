// AnswerSplitter: an answer as it arrives, apart from the thought before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "chat/answer_reader.h"
#include "chat/completion_request.h"
#include "console/options/command_line.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/word_wrap.h"
#include "godwit/engine.h"

namespace godwit::cli {

class AnswerSplitter {
 public:
  struct Listener {
    std::function<void(std::string_view text)> on_text;  // text of the answer
    std::function<void(std::string_view text)> on_thought;
    std::function<void(int64_t tokens)> on_thought_end;
  };
  AnswerSplitter(const chat::AnswerForm& form, Listener listener);
  AnswerSplitter(const AnswerSplitter&) = delete;  // reader_ refers to this object
  AnswerSplitter& operator=(const AnswerSplitter&) = delete;

  // Takes more of the answer. Throws as the listener does.
  void Take(const Event& event);
  // Ends the answer and reports its rest.
  void Finish();

  const std::string& text() const { return text_; }
  const std::string& thought() const { return thought_; }

 private:
  void Deliver(const chat::AnswerPieces& pieces);
  void EndThought();

  Listener listener_;
  chat::CompletionRequest request_;  // a request without tools
  chat::AnswerReader reader_;
  std::string text_, thought_;
  int64_t thought_tokens_ = 0;
  bool thinks_ = false;
};

// The flag --thoughts. Without it thoughts are shown if standard error is a terminal.
struct ThoughtsFlag {
  std::optional<bool> shows;
};
void AddThoughtsFlag(console::CommandLine& line, ThoughtsFlag& flag);

// ThoughtText: a thought on standard error, dim on a terminal. A hidden thought shows only its
// length.
class ThoughtText {
 public:
  explicit ThoughtText(const ThoughtsFlag& flag);

  void Write(std::string_view text);
  void End(int64_t tokens);

 private:
  void Put(const std::string& text) const;

  const bool shows_, terminal_;
  console::WordWrap wrap_;
  std::optional<console::ProgressLine> progress_;  // instead of a hidden thought
};

}  // namespace godwit::cli
