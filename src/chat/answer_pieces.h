// An answer as it comes, told apart: thoughts, text, and calls of tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace godwit::chat {

struct AnswerPiece {
  enum class Kind {
    kThought,
    kText,
    kCall,       // a call begins: `text` is the name of its tool
    kArguments,  // of the last call that began
  };
  Kind kind;
  std::string text;

  friend bool operator==(const AnswerPiece&, const AnswerPiece&) = default;
};

// In their order.
using AnswerPieces = std::vector<AnswerPiece>;

// To the end of the last piece, where that is of this kind and is no call.
void Add(AnswerPieces& pieces, AnswerPiece::Kind kind, std::string_view text);

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object, unless the model was cut off or went astray in it

  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct WholeAnswer {
  std::string thought;
  std::string text;
  std::vector<ToolCall> calls;
};

WholeAnswer Join(const AnswerPieces& pieces);

}  // namespace godwit::chat
