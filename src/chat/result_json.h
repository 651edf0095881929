// What came of a text, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "godwit/engine.h"

namespace godwit::chat {

// As OpenAI's API has them: "stop", "length", besides "cancelled".
std::string FinishReasonName(FinishReason reason);

// {"policy", "seen", "kept", "dropped", "dropped_spans": [[begin, end]], "bytes"}
nlohmann::ordered_json KvJson(const KvReport& kv);

// How far a prompt is read: {"total", "cache", "processed", "time_ms"}, and "left_ms" where
// it is known how long the rest should take.
nlohmann::ordered_json ProgressJson(const PromptProgress& progress);

// As llama.cpp's server has them: {"cache_n", "prompt_n", "prompt_ms", "prompt_per_second",
// "predicted_n", "predicted_ms", "predicted_per_second"}
nlohmann::ordered_json TimingsJson(const GenerateResult& result);

// {"steps", "guesses", "accepted", "sources": {name: accepted}}
nlohmann::ordered_json DraftsJson(const DraftReport& drafts);

// Every option that is a number, and the names of the steps in order as "samplers".
nlohmann::ordered_json SamplerJson(const SamplerOptions& options);

}  // namespace godwit::chat
