// CompletionChunks: the chunks of a streamed answer, in the shape of OpenAI's API.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "chat/answer_reader.h"
#include "chat/completion_json.h"
#include "chat/completion_request.h"
#include "chat/token_texts.h"
#include "godwit/engine.h"

namespace godwit::chat {

class CompletionChunks {
 public:
  // All arguments must outlive this object.
  CompletionChunks(const CompletionRequest& request, const CompletionName& name, TokenTexts& texts);

  // Sets the form of a chat's answers. To be called before any of their chunks.
  void Begin(const AnswerForm& form);
  // The first chunk of a choice in a chat. Null for a text completion, which has none.
  nlohmann::ordered_json First(int choice) const;
  // The chunk for an event. Null: the event has no news for the client.
  nlohmann::ordered_json Of(int choice, const Event& event);
  // The chunk that says how much of the prompt is read: {"prompt_progress": {"total", "cache",
  // "processed", "time_ms", "left_ms"}}, without "left_ms" where it is unknown.
  nlohmann::ordered_json Progress(const PromptProgress& progress) const;
  // The last chunk of a choice.
  nlohmann::ordered_json Last(int choice, const GenerateResult& result);
  nlohmann::ordered_json Usage(std::span<const GenerateResult> results) const;

 private:
  nlohmann::ordered_json Chunk(nlohmann::ordered_json choices) const;
  nlohmann::ordered_json Choice(int choice, nlohmann::ordered_json delta) const;
  nlohmann::ordered_json Delta(size_t choice, const AnswerPieces& pieces);

  const CompletionRequest& request_;
  const CompletionName& name_;
  TokenTexts& texts_;
  struct Reader {
    AnswerReader answer;
    size_t calls = 0;
  };
  std::vector<Reader> readers_;  // [samples], of a chat
};

}  // namespace godwit::chat
