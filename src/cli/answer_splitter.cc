#include "cli/answer_splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"

namespace godwit::cli {

AnswerSplitter::AnswerSplitter(const chat::AnswerForm& form, Listener listener)
    : listener_(std::move(listener)), reader_(request_, form) {}

void AnswerSplitter::Take(const Event& event) {
  thought_tokens_ = std::max(thought_tokens_, event.thought_tokens);
  if (!event.text.empty()) Deliver(reader_.Push(event.text));
}

void AnswerSplitter::Finish() {
  Deliver(reader_.Finish());
  EndThought();
}

void AnswerSplitter::Deliver(const chat::AnswerPieces& pieces) {
  for (const auto& [kind, text] : pieces) {
    if (kind == chat::AnswerPiece::Kind::kThought) {
      thinks_ = true;
      thought_ += text;
      if (listener_.on_thought) listener_.on_thought(text);
    } else {  // without tools there are no calls
      EndThought();
      text_ += text;
      if (listener_.on_text) listener_.on_text(text);
    }
  }
}

void AnswerSplitter::EndThought() {
  if (std::exchange(thinks_, false) && listener_.on_thought_end) {
    listener_.on_thought_end(thought_tokens_);
  }
}

void AddThoughtsFlag(console::CommandLine& line, ThoughtsFlag& flag) {
  line.Add({.names = "--thoughts",
            .value = "HOW",
            .help = "show or hide the reasoning that a model writes before its answer. It goes to "
                    "standard error, never to standard output; hide prints its length only",
            .fallback = "show on a terminal, else print nothing of it",
            .choices = {"show", "hide"}},
           [&flag](const std::string& value) {
             if (value != "show" && value != "hide") {
               Throw(ErrorKind::kInput, "expected show or hide, found {}", Quote(value));
             }
             flag.shows = value == "show";
           });
}

ThoughtText::ThoughtText(const ThoughtsFlag& flag)
    : shows_(flag.shows.value_or(console::NoticesGoToTerminal())),
      terminal_(console::StatusIsTerminal()) {
  if (terminal_) console::UseUtf8Locale();
}

void ThoughtText::Put(const std::string& text) const {
  const bool dim = terminal_ && std::getenv("NO_COLOR") == nullptr;
  if (text.empty()) return;
  if (dim) console::WriteControl("\033[2m");
  console::WriteStatus(text);
  if (dim) console::WriteControl("\033[0m");
}

void ThoughtText::Write(std::string_view text) {
  if (shows_) {
    Put(terminal_ ? wrap_.Push(text, console::StatusColumns()) : std::string(text));
  } else if (!progress_) {
    progress_.emplace("thinking", console::ProgressUnit::kTokens);
  }
}

void ThoughtText::End(int64_t tokens) {
  progress_.reset();
  if (shows_ && terminal_) Put(wrap_.Flush(console::StatusColumns()));
  const std::string said = fmt::format("(thought for {})\n", console::Plural(tokens, "token"));
  if (shows_) {
    console::WriteStatus("\n" + said);
  } else if (console::NoticesGoToTerminal()) {
    console::WriteNotice(said);
  }
}

}  // namespace godwit::cli
