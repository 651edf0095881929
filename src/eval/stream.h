// Stream: one endless text through one reader, which is asked something now and then.
//
// Tokens are appended and each is read once, whatever a session keeps of them. Only an answer that
// does not stay in the text is read and taken back, where the cache can go back that far. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/encode_pair.h"
#include "eval/reader.h"
#include "godwit/engine.h"

namespace godwit::eval {

// The text behind a question: the papers do not say which.
enum class Feed {
  kAnswer,   // the model's answer and a newline
  kGold,     // the expected answer and a newline
  kNothing,  // a newline alone
};

// Turns text into tokens, and tokens into text.
struct StreamCoder {
  std::vector<int32_t> frame;  // in front of the text (LeadingTokens)
  Encoder encode;              // without a frame, unlike EncodePair's
  std::function<std::string(std::span<const int32_t> tokens)> decode;  // without special tokens
};

StreamCoder CoderOf(const Engine& engine);

// The tokens of `text` inside a longer text: many tokenizers put a space in front of a text that
// begins. A newline is taken to stand before it, or a word if it begins with a blank.
std::vector<int32_t> EncodeInside(const Encoder& encode, const std::string& text);

// The text of `tokens` behind the token `last`: some tokenizers drop the space at the beginning of
// a text.
std::string TextBehind(const std::function<std::string(std::span<const int32_t>)>& decode,
                       int32_t last, std::span<const int32_t> tokens);

// One question of a stream, and how it was answered.
struct StreamTurn {
  int64_t position = 0;      // of the question's last token in the text
  uint64_t fingerprint = 0;  // of the text up to it, without text behind earlier questions
  std::string expected;
  std::string answer;        // the model's answer, stripped
  std::vector<int32_t> fed;  // the tokens behind the question
  bool right = false;
  bool known = false;  // whether an earlier run has `answer`
};

class Stream {
 public:
  struct Options {
    Feed feed = Feed::kAnswer;
    int64_t max_new_tokens = 16;  // the most tokens of an answer
    int64_t query_tokens = 0;     // as in GenerateOptions; 0: what was appended last
  };
  using OnRead = std::function<void(int64_t pending_tokens)>;  // appended and not yet read

  // Begins a text. The coder must outlive the stream.
  Stream(Reader reader, const StreamCoder& coder, const Options& options);

  // The length of the text so far, without a sink token that the session adds.
  int64_t tokens() const { return static_cast<int64_t>(text_.size()); }

  void Append(std::span<const int32_t> tokens);

  // The model's greedy answer, up to a newline, the end of the text or max_new_tokens; the newline
  // is not part of it. Then appends what Options::feed says. gold: with the space that it begins
  // with. Throws as Session::Generate does, and Error(kCancelled).
  std::string Ask(const std::string& gold, const OnRead& on_read);

  // The tokens that the last Ask appended.
  std::span<const int32_t> fed() const { return std::span(text_).subspan(fed_from_); }

  // Replaces Ask: appends the tokens that it appended when the same was asked before.
  void Recall(std::span<const int32_t> fed) { Feed(fed); }

  // The fingerprint of appended tokens, except answers.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  void Feed(std::span<const int32_t> tokens);
  void AppendAnswer(const GenerateResult& result);
  std::string Behind(int32_t last, std::span<const int32_t> tokens) const {
    return TextBehind(coder_.decode, last, tokens);
  }

  Reader reader_;
  const StreamCoder& coder_;
  Options options_;
  std::vector<int32_t> text_;
  size_t fed_from_ = 0;
  size_t question_from_ = 0;  // where the last Append began
  uint64_t fingerprint_ = 0;
};

// Throws Error(kInput) if a text of so many tokens does not fit into the session's context.
void CheckStreamFits(const Reader& reader, int64_t tokens);

}  // namespace godwit::eval
