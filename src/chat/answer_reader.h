// AnswerReader: splits an answer, as it arrives, into thought, text and tool calls.
#pragma once

#include <string>
#include <string_view>

#include "chat/answer_form.h"
#include "chat/answer_pieces.h"
#include "chat/completion_request.h"
#include "chat/tool_calls.h"

namespace godwit::chat {

// Reads one answer of a chat. Any text is accepted, and the result does not depend on where the
// text is split into pieces.
class AnswerReader {
 public:
  // request: outlives the reader.
  AnswerReader(const CompletionRequest& request, const AnswerForm& form);

  AnswerPieces Push(std::string_view text);
  // Returns, at the end of the answer, the pieces of text that were held back.
  AnswerPieces Finish();

 private:
  enum class State {
    kBefore,  // held_ may be the beginning of a thought
    kThought,
    kBehind,  // behind a thought; line breaks here do not belong to the answer
    kAnswer,
    kMarked,  // between the marks around the answer, with their end in held_, perhaps
    kHeader,  // the header of a message, in held_
    kMessage,
  };
  enum class Message { kThought, kText, kCall };

  void Feed(char c, AnswerPieces& out);
  void FeedThought(char c, AnswerPieces& out);
  // Adds to the thought, without the line breaks around it.
  void AddThought(std::string_view text, AnswerPieces& out);
  void FeedBehind(char c, AnswerPieces& out);
  void FeedMarked(char c, AnswerPieces& out);
  void FinishMarked(AnswerPieces& out);
  void FeedHeader(char c, AnswerPieces& out);
  void FeedMessage(char c, AnswerPieces& out);
  void BeginMessage(AnswerPieces& out);
  void AddText(std::string_view text, AnswerPieces& out);
  void EndMessage(AnswerPieces& out);

  const Tools& tools_;
  ThoughtMarks marks_;
  std::string answer_begin_, answer_end_;  // AnswerForm
  std::string title_;  // words that still may belong to the mark before the thought
  bool is_channels_;
  State state_;
  std::string held_;
  std::string breaks_;   // line breaks of a thought that may go on
  bool thinks_ = false;  // whether part of a thought has arrived
  bool says_ = false;    // whether part of an answer between marks has arrived
  Message message_ = Message::kText;
  JsonText json_;  // arguments of a call
  bool has_arguments_ = false;
  bool is_json_ = true;  // whether the arguments are JSON so far
  ToolCallReader calls_;
};

// Reads a whole answer at once.
WholeAnswer ReadAnswer(const CompletionRequest& request, const AnswerForm& form,
                       std::string_view text);

}  // namespace godwit::chat
