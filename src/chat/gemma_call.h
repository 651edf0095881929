// GemmaCall: a reader of calls as Gemma 4 writes them.
#pragma once

#include <string>
#include <string_view>

#include "chat/call_readers.h"

namespace godwit::chat {

// Reads NAME{key:<|"|>text<|"|>,n:2,list:[true,{k:null}]}, from the name on. Texts of JSON in
// quotation marks are read, too. The mark of a text's end within the text is a part of it, unless
// the call goes on or ends behind it.
class GemmaCall : public CallReader {
 public:
  explicit GemmaCall(const Tools& tools) : CallReader(tools) {}
  Reading Feed(char c, AnswerPieces& out);
  void Finish(AnswerPieces& out);

  static constexpr std::string_view kTextMark = "<|\"|>";

 private:
  enum class State { kName, kBetween, kWord, kText, kQuoted };

  Reading FeedBetween(char c, AnswerPieces& out);
  void FeedText(AnswerPieces& out);
  // Ends a word that stands without marks.
  void EndWord(AnswerPieces& out);
  // Whether the place is that of a key.
  bool IsKey() const {
    return open_.ends_with('}') && (before_value_ == '{' || before_value_ == ',');
  }

  State state_ = State::kName;
  std::string name_, word_;
  std::string open_;         // closing characters of the open objects and lists
  char before_value_ = '{';  // the last character of the structure
  bool has_value_ = false;   // whether a value or a key stands behind it
  bool escaped_ = false;
};

}  // namespace godwit::chat
