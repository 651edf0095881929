// A long prompt made of short pieces. Each becomes tokens once, however often it is used, so a text
// of 128 K tokens costs as much as its new pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/stream.h"

namespace godwit::eval {

// A part of a text at the beginning of a line, or of a word if it begins with a blank.
struct Piece {
  std::string text;
  std::vector<int32_t> tokens;
  bool is_first = false;  // of a prompt
  bool is_last = false;   // nothing follows its blanks

  int64_t size() const { return std::ssize(tokens); }
};

// The words around the text of a prompt.
struct PromptWords {
  std::string before;    // in front of the text
  std::string question;  // behind the text
  std::string answer;    // the beginning of the model's answer
};

struct PromptEnds {
  Piece first, last;
  int64_t tokens;  // of both ends and the frame
};

// A message in a model's chat template, up to where the answer begins.
using ChatRender = std::function<std::string(const std::string& message)>;

// PieceMaker: turns each piece into tokens by itself, as EncodeInside does.
class PieceMaker {
 public:
  // coder: must outlive the maker. chat: with it, a prompt is a message in a chat, and the
  // beginning of the answer stands behind the template. The coder's frame is empty then, since the
  // template has it.
  explicit PieceMaker(const StreamCoder& coder, ChatRender chat = {});

  const StreamCoder& coder() const { return coder_; }

  Piece Make(std::string text) const;
  std::vector<Piece> Make(const std::vector<std::string>& texts) const;
  // Makes a piece at the beginning of a text, behind its frame, or at the end of one.
  Piece MakeFirst(std::string text) const;
  Piece MakeLast(std::string text) const;
  // Throws Error(kUnsupported) for a template that does not show the message as it stands.
  PromptEnds Ends(const PromptWords& words) const;

 private:
  std::vector<int32_t> Encode(const std::string& text, bool is_last) const;
  Piece MakeInside(std::string text, bool is_last) const;

  const StreamCoder& coder_;
  const ChatRender chat_;
  const std::vector<int32_t> line_, word_;  // tokens that EncodeInside takes off
  const std::vector<int32_t> line_word_;    // tokens of a word on a line
};

// Puts pieces together. Two pieces become tokens again as one where tokenizers join them: newlines
// on both sides, or no blank between words. No other piece does.
class PromptBuilder {
 public:
  explicit PromptBuilder(const PieceMaker& maker);

  // Returns the token at which the piece begins. A joined piece begins with the piece before it.
  int64_t Append(const Piece& piece);

  // Appends the question at the end. Returns its first token: the first that would be another one
  // without the question.
  int64_t AppendQuestion(const Piece& piece);

  int64_t size() const { return std::ssize(tokens_); }
  std::vector<int32_t> Take() { return std::move(tokens_); }

 private:
  const PieceMaker& maker_;
  std::vector<int32_t> tokens_;
  std::string last_;  // the piece before, with pieces it was joined with
  int64_t last_begin_ = 0;
};

}  // namespace godwit::eval
