// Pieces of an answer as it arrives: thoughts, text, and tool calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace godwit::chat {

struct AnswerPiece {
  enum class Kind {
    kThought,
    kText,
    kCall,       // the beginning of a call: `text` is the tool's name
    kArguments,  // arguments of the last call
  };
  Kind kind;
  std::string text;

  friend bool operator==(const AnswerPiece&, const AnswerPiece&) = default;
};

// Pieces in their order in the answer.
using AnswerPieces = std::vector<AnswerPiece>;

// Adds text to the last piece if that has this kind and is no call; else adds a piece.
void Add(AnswerPieces& pieces, AnswerPiece::Kind kind, std::string_view text);

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object, unless the model was cut off or made a mistake

  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct WholeAnswer {
  std::string thought;
  std::string text;
  std::vector<ToolCall> calls;
};

WholeAnswer Join(const AnswerPieces& pieces);

}  // namespace godwit::chat
