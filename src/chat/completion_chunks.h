// The pieces of an answer that is streamed, in the shape of OpenAI's API.
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
  // All of which must outlive it.
  CompletionChunks(const CompletionRequest& request, const CompletionName& name, TokenTexts& texts);

  // How the answers will be written; before anything of a chat's.
  void Begin(const AnswerForm& form);
  // The first one of a chat's choice; null of a text's, which has none.
  nlohmann::ordered_json First(int choice) const;
  // What came of it; null if that was nothing for whoever reads.
  nlohmann::ordered_json Of(int choice, const Event& event);
  // How far its prompt is read: {"prompt_progress": {"total", "cache", "processed", "time_ms",
  // "left_ms"}}; without the last where that is not known.
  nlohmann::ordered_json Progress(const PromptProgress& progress) const;
  // The last one of a choice, and of all, where the request asks for it.
  nlohmann::ordered_json Last(int choice, const GenerateResult& result);
  nlohmann::ordered_json Usage(std::span<const GenerateResult> results) const;

 private:
  nlohmann::ordered_json Chunk(nlohmann::ordered_json choices) const;
  nlohmann::ordered_json Choice(int choice, nlohmann::ordered_json delta) const;
  nlohmann::ordered_json Delta(size_t choice, const AnswerPieces& pieces);

  const CompletionRequest& request_;
  const CompletionName& name_;
  TokenTexts& texts_;
  int64_t created_;
  struct Reader {
    AnswerReader answer;
    size_t calls = 0;
  };
  std::vector<Reader> readers_;  // [samples], of a chat
};

}  // namespace godwit::chat
