// AnthropicEvents: answers in the shape of Anthropic's /v1/messages, whole or as a stream of
// events.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "chat/answer_reader.h"
#include "chat/completion_json.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// Lists of events, each an object with its "type", made from the engine's events one by one. As in
// Anthropic's API, "input_tokens" counts tokens that were not in the cache. "seed", "timings", and
// "kv" as in CompletionJson are added to that API. A call that was cut off has its "partial_json",
// because its input must be an object.
class AnthropicEvents {
 public:
  // Both arguments must outlive this object.
  AnthropicEvents(const CompletionRequest& request, const CompletionName& name)
      : request_(request), name_(name) {}

  // Sets the form of the answer. To be called first.
  void Begin(const AnswerForm& form) { reader_.emplace(request_, form); }

  // The whole answer, instead of events.
  nlohmann::ordered_json Whole(const GenerateResult& result);

  // Always empty: the first event of the stream needs the prompt's length, which the engine's first
  // event brings.
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
  bool is_open_ = false;                               // whether the last block of content_ is open
  AnswerPiece::Kind kind_ = AnswerPiece::Kind::kText;  // of the last block
  std::string text_;                                   // of the last block
};

}  // namespace godwit::chat
