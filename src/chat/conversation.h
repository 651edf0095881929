// Conversation: the messages of a chat, and the token ids that stand for them.
//
// The tokens that a model generated are never tokenized again: a new turn renders the whole
// conversation with the model's template, and where that text begins with the text so far, only the
// rest is encoded and appended. The session then finds everything before it in its cache. Where the
// text so far has changed (a template that trims answers or drops old thoughts), all is encoded
// anew. Not thread-safe.
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

  // Adds the user's next message. What the template refuses is thrown and not added. False, and not
  // added, if the prompt would have more than `limit_tokens`: the rest is not tokenized then.
  bool Ask(std::string question, int64_t limit_tokens = kAny);

  // The tokens to continue. Valid until the next call that changes the conversation.
  std::span<const int32_t> prompt() const { return tokens_; }

  // How the model will write its answer to it.
  AnswerForm form() const;

  // Of the prompt, from its end: the last message and what frames it. All of it where the
  // transcript has been encoded anew.
  int64_t question_tokens() const;

  // Where to end a prefix of the prompt that is to stay: the end of a message, the first one at
  // `tokens` or behind, else the last. In tokens; 0 where no message ends visibly.
  int64_t MessageEnd(int64_t tokens) const;

  // What came of it: the text as the user saw it, all tokens of the output, and the thought before
  // the text, which later turns hold as far as the template writes it again.
  void Answer(std::string text, std::span<const int32_t> tokens, const std::string& thought = "");

  // Takes the last answer back; its question stands and can be continued again. False if there is
  // none.
  bool Retry();

  // Takes the last question back, with its answer. False if there is none.
  bool Undo();

  // Takes all questions and answers back. The system message stays.
  void Clear();

  // Another conversation in place of this one: questions and answers in turn, an answer last.
  // Throws, with nothing changed, what the template throws.
  void Load(std::optional<std::string> system, std::vector<Message> messages);

  // Throws, with nothing changed, what the template throws.
  void SetSystem(std::optional<std::string> text);

  const std::optional<std::string>& system() const { return system_; }
  // Without the system message: questions and answers in turn.
  const std::vector<Message>& messages() const { return messages_; }

 private:
  struct Mark {
    size_t tokens = 0;
    size_t text = 0;
  };

  Mark End() const { return {tokens_.size(), text_.size()}; }
  void CutTo(const Mark& mark);
  std::vector<Message> AllMessages() const;  // the system message first
  std::string Render() const;                // for the next answer
  std::string RenderClosed() const;          // up to the last answer; empty without messages
  // All of it encoded anew. Throws, or returns false beyond limit_tokens, with nothing changed.
  bool SetTranscript(std::string rendered, int64_t limit_tokens = kAny);
  // Brings tokens_ to stand for all messages, likewise.
  bool Extend(const std::string& rendered, int64_t limit_tokens = kAny);
  // More than limit_tokens may end early.
  std::optional<std::vector<int32_t>> EncodeRest(std::string_view rest, int64_t limit_tokens) const;
  std::string TextOf(std::span<const int32_t> output) const;

  ChatCodec codec_;
  std::optional<std::string> system_;
  std::vector<Message> messages_;
  std::vector<int32_t> tokens_;
  std::string text_;        // what tokens_ stand for
  size_t last_answer_ = 0;  // where in text_ the model's own text begins, if it ends with such
  // The ends of the transcript before each question, and before its answer. Zero where the
  // transcript has been encoded anew since.
  std::vector<Mark> before_question_, before_answer_;
};

}  // namespace godwit::chat
