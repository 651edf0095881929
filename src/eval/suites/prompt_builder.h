// A long prompt made of short pieces, each of which becomes tokens once, however often it is used:
// a text of 128 K tokens costs what its new pieces cost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/stream.h"

namespace godwit::eval {

// A part of a text that stands at the beginning of a line, or of a word if it begins with a blank.
struct Piece {
  std::string text;
  std::vector<int32_t> tokens;
  bool is_first = false;  // of a prompt
  bool is_last = false;   // nothing follows its blanks

  int64_t size() const { return std::ssize(tokens); }
};

// What stands around the text of a prompt.
struct PromptWords {
  std::string before;    // the text
  std::string question;  // behind it
  std::string answer;    // the beginning of the model's own
};

struct PromptEnds {
  Piece first, last;
  int64_t tokens;  // of both and the frame
};

// A message in a model's chat template, up to where the answer begins.
using ChatRender = std::function<std::string(const std::string& message)>;

// Each piece by itself, as EncodeInside has it.
class PieceMaker {
 public:
  // coder: must outlive it. chat: with it, a prompt is a message in a chat, and behind the template
  // stands the beginning of the answer; the coder's frame is empty then, since the template has it.
  explicit PieceMaker(const StreamCoder& coder, ChatRender chat = {});

  const StreamCoder& coder() const { return coder_; }

  Piece Make(std::string text) const;
  std::vector<Piece> Make(const std::vector<std::string>& texts) const;
  // At the beginning of a text, behind its frame, and at the end of one.
  Piece MakeFirst(std::string text) const;
  Piece MakeLast(std::string text) const;
  // Throws Error(kUnsupported) for a template that does not show the message as it stands.
  PromptEnds Ends(const PromptWords& words) const;

 private:
  std::vector<int32_t> Encode(const std::string& text, bool is_last) const;
  Piece MakeInside(std::string text, bool is_last) const;

  const StreamCoder& coder_;
  const ChatRender chat_;
  const std::vector<int32_t> line_, word_;  // what EncodeInside takes off
  const std::vector<int32_t> line_word_;    // both, the word on the line
};

// Puts pieces together. Where two of them meet in a way that tokenizers join (newlines on both
// sides, no blank between words), they become tokens again as one, and nothing else does.
class PromptBuilder {
 public:
  explicit PromptBuilder(const PieceMaker& maker);

  // Returns the token at which the piece begins; what is joined begins with the piece before.
  int64_t Append(const Piece& piece);

  int64_t size() const { return std::ssize(tokens_); }
  std::vector<int32_t> Take() { return std::move(tokens_); }

 private:
  const PieceMaker& maker_;
  std::vector<int32_t> tokens_;
  std::string last_;  // the text of the piece before, and of what it was joined with
  int64_t last_begin_ = 0;
};

}  // namespace godwit::eval
