#include "chat/answer_pieces.h"

namespace godwit::chat {

void Add(AnswerPieces& pieces, AnswerPiece::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (kind != AnswerPiece::Kind::kCall && !pieces.empty() && pieces.back().kind == kind) {
    pieces.back().text += text;
  } else {
    pieces.push_back({kind, std::string(text)});
  }
}

WholeAnswer Join(const AnswerPieces& pieces) {
  WholeAnswer answer;
  for (const auto& [kind, text] : pieces) {
    switch (kind) {
      case AnswerPiece::Kind::kThought:
        answer.thought += text;
        break;
      case AnswerPiece::Kind::kText:
        answer.text += text;
        break;
      case AnswerPiece::Kind::kCall:
        answer.calls.push_back({.name = text, .arguments = {}});
        break;
      case AnswerPiece::Kind::kArguments:
        answer.calls.back().arguments += text;
        break;
    }
  }
  return answer;
}

}  // namespace godwit::chat
