// An answer told apart as it comes: what the model thinks, what it says, and what it calls.
#pragma once

#include <string>
#include <string_view>

#include "chat/answer_form.h"
#include "chat/answer_pieces.h"
#include "chat/completion_request.h"
#include "chat/tool_calls.h"

namespace godwit::chat {

// Of a chat. Any text: never fails, and nothing depends on where the pieces part it.
class AnswerReader {
 public:
  // request: which outlives it.
  AnswerReader(const CompletionRequest& request, const AnswerForm& form);

  AnswerPieces Push(std::string_view text);
  // What was held back, at the end.
  AnswerPieces Finish();

 private:
  enum class State {
    kBefore,  // held_ may be the beginning of a thought
    kThought,
    kBehind,  // line breaks behind a thought are none of the answer
    kAnswer,
    kHeader,  // of a message, in held_
    kMessage,
  };
  enum class Message { kThought, kText, kCall };

  void Feed(char c, AnswerPieces& out);
  void FeedThought(char c, AnswerPieces& out);
  // A thought without the line breaks around it.
  void Think(std::string_view text, AnswerPieces& out);
  void FeedHeader(char c, AnswerPieces& out);
  void FeedMessage(char c, AnswerPieces& out);
  void BeginMessage(AnswerPieces& out);
  void Say(std::string_view text, AnswerPieces& out);
  void EndMessage(AnswerPieces& out);

  const Tools& tools_;
  ThoughtMarks marks_;
  bool is_channels_;
  State state_;
  std::string held_;
  std::string breaks_;   // of a thought that may go on
  bool thinks_ = false;  // something of a thought has come
  Message message_ = Message::kText;
  JsonText json_;  // the arguments of a call
  bool has_arguments_ = false;
  bool is_json_ = true;  // so far
  ToolCallReader calls_;
};

// A whole answer at once.
WholeAnswer ReadAnswer(const CompletionRequest& request, const AnswerForm& form,
                       std::string_view text);

}  // namespace godwit::chat
