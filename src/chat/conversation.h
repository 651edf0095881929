// Conversation: the messages of a chat, and the token ids that stand for them.
//
// Tokens that a model generated are never tokenized again. A new turn renders the whole
// conversation with the model's template. If that text begins with the text so far, only the rest
// is encoded and appended. The session then finds everything before it in its cache. If the text so
// far has changed (the template trims answers or drops old thoughts), all is encoded anew. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_form.h"
#include "chat/codec.h"

namespace godwit::chat {

class Conversation {
 public:
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

  explicit Conversation(ChatCodec codec, std::optional<std::string> system = std::nullopt);

  // Adds the user's next message. Throws, and adds nothing, if the template refuses the message.
  // False, and nothing is added, if the prompt would have more than `limit_tokens`: the rest is not
  // tokenized then.
  bool Ask(std::string question, int64_t limit_tokens = kAny);

  // The tokens to continue. Valid until the next call that changes the conversation.
  std::span<const int32_t> prompt() const { return tokens_; }

  // The form in which the model will write its answer to the prompt.
  AnswerForm form() const;

  // The number of tokens at the prompt's end that are the question: the last message with its
  // template text. All of the prompt where the transcript has been encoded anew.
  int64_t question_tokens() const;

  // The end, in tokens, of a prefix of the prompt that is to stay. It is the first end of a message
  // at `tokens` or behind, else the last one. 0: no message ends visibly.
  int64_t MessageEnd(int64_t tokens) const;

  // Adds the answer to the prompt: the text as the user saw it, all tokens of the output, and the
  // thought before the text. Later turns hold the thought as far as the template writes it again.
  void Answer(std::string text, std::span<const int32_t> tokens, const std::string& thought = "");

  // Takes the last answer back; its question stays and can be continued again. False: there is
  // none.
  bool Retry();

  // Takes the last question back, with its answer. False: there is none.
  bool Undo();

  // Takes all questions and answers back. The system message stays.
  void Clear();

  // Replaces this conversation by questions and answers in turn, an answer last. Throws, with
  // nothing changed, what the template throws.
  void Load(std::optional<std::string> system, std::vector<Message> messages);

  // Replaces the system message. Throws, with nothing changed, what the template throws.
  void SetSystem(std::optional<std::string> text);

  const std::optional<std::string>& system() const { return system_; }
  // Questions and answers in turn, without the system message.
  const std::vector<Message>& messages() const { return messages_; }

 private:
  struct Mark {
    size_t tokens = 0;
    size_t text = 0;
  };

  Mark End() const { return {tokens_.size(), text_.size()}; }
  void CutTo(const Mark& mark);
  std::vector<Message> AllMessages() const;  // the system message first
  std::string Render() const;                // up to where the next answer begins
  std::string RenderClosed() const;          // up to the last answer; empty without messages
  // Encodes the whole transcript anew. Throws, or returns false beyond limit_tokens, with nothing
  // changed.
  bool SetTranscript(std::string rendered, int64_t limit_tokens = kAny);
  // Extends tokens_ to all messages. Throws and returns as SetTranscript does.
  bool Extend(const std::string& rendered, int64_t limit_tokens = kAny);
  // The tokens of the rest. Encoding may stop early beyond limit_tokens.
  std::optional<std::vector<int32_t>> EncodeRest(std::string_view rest, int64_t limit_tokens) const;
  std::string TextOf(std::span<const int32_t> output) const;

  ChatCodec codec_;
  std::optional<std::string> system_;
  std::vector<Message> messages_;
  std::vector<int32_t> tokens_;
  std::string text_;        // the text of tokens_
  size_t last_answer_ = 0;  // the place in text_ where the model's own text at its end begins
  // The ends of the transcript before each question, and before its answer. Zero where the
  // transcript has been encoded anew since then.
  std::vector<Mark> before_question_, before_answer_;
};

}  // namespace godwit::chat
