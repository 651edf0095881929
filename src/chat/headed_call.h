// HeadedCall: a reader of a call whose arguments stand behind a head with the tool's name.
#pragma once

#include <string>
#include <string_view>

#include "chat/call_readers.h"

namespace godwit::chat {

// Reads a head, a separator and an object of JSON. Kimi's head is functions.NAME:0, DeepSeek's is
// NAME. DeepSeek V3 and R1 have the head "function", and then the name in a line of its own before
// the JSON in a code fence.
class HeadedCall : public CallReader {
 public:
  // separator: outlives the reader.
  HeadedCall(const Tools& tools, std::string_view separator)
      : CallReader(tools), separator_(separator) {}
  Reading Feed(char c, AnswerPieces& out);

 private:
  enum class State { kHead, kNameLine, kBeforeArguments, kArguments };

  Reading EndHead(char c);

  std::string_view separator_;
  State state_ = State::kHead;
  std::string head_, name_;
  std::string fence_;  // what has come of the code fence's mark
  JsonText json_;
};

}  // namespace godwit::chat
