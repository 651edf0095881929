// Answers in the shape of Anthropic's API, of /v1/messages: whole, or as the events of a stream.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "chat/answer_reader.h"
#include "chat/completion_json.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// Events, each an object with its "type", in lists: what follows from one event of the engine. As
// there, "input_tokens" are those that were not in the cache. Beside what Anthropic has, an answer
// has "seed", "timings", and "kv" as CompletionJson has it, and a call that was cut off its
// "partial_json", since its input is an object.
class AnthropicEvents {
 public:
  // Both of which must outlive it.
  AnthropicEvents(const CompletionRequest& request, const CompletionName& name)
      : request_(request), name_(name) {}

  // How the answer will be written; before all else.
  void Begin(const AnswerForm& form) { reader_.emplace(request_, form); }

  // The answer, in place of events.
  nlohmann::ordered_json Whole(const GenerateResult& result);

  // None: a stream begins with how long its prompt is, which the first event says.
  nlohmann::ordered_json First() { return nlohmann::ordered_json::array(); }
  nlohmann::ordered_json Of(const Event& event);
  // {"type": "godwit.prompt_progress", "total", "cache", "processed", "time_ms"}
  nlohmann::ordered_json Progress(const PromptProgress& progress);
  nlohmann::ordered_json Last(const GenerateResult& result);

 private:
  void AddMeasures(const GenerateResult& result, nlohmann::ordered_json& json) const;
  nlohmann::ordered_json Stop(const GenerateResult& result) const;
  void Start(const PromptProgress& progress, nlohmann::ordered_json& events);
  void Take(const AnswerPieces& pieces, nlohmann::ordered_json& events);
  void Open(AnswerPiece::Kind kind, const std::string& name, nlohmann::ordered_json& events);
  void Say(const std::string& text, nlohmann::ordered_json& events);
  void Close(nlohmann::ordered_json& events);

  const CompletionRequest& request_;
  const CompletionName& name_;
  std::optional<AnswerReader> reader_;
  bool started_ = false;
  nlohmann::ordered_json content_ = nlohmann::ordered_json::array();
  bool is_open_ = false;                               // the last block of it
  AnswerPiece::Kind kind_ = AnswerPiece::Kind::kText;  // of that
  std::string text_;                                   // of that
};

}  // namespace godwit::chat
