// Results of a text as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "godwit/engine.h"

namespace godwit::chat {

// The name in OpenAI's API: "stop" or "length"; besides, "cancelled".
std::string FinishReasonName(FinishReason reason);

// {"policy", "seen", "kept", "dropped", "dropped_spans": [[begin, end]], "bytes"}
nlohmann::ordered_json KvJson(const KvReport& kv);

// Seconds, to the microsecond.
double RoundedSeconds(double ms);

// The progress of a prompt: {"total", "cache", "processed", "time_ms"}, and "left_ms", the expected
// time for the rest, where it is known.
nlohmann::ordered_json ProgressJson(const PromptProgress& progress);

// Timings in the form of llama.cpp's server: {"cache_n", "prompt_n", "prompt_ms",
// "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second"}
nlohmann::ordered_json TimingsJson(const GenerateResult& result);

// {"steps", "draft_tokens", "accepted", "sources": {name: accepted}}
nlohmann::ordered_json DraftsJson(const DraftReport& drafts);

// Adds "passages" to a request's usage, if its prompt had some: {"cached_tokens", "reused_tokens",
// "anew_tokens", "exact"}. The answer is exactly the model's own if no tokens were reused.
void AddPassages(const GenerateResult& result, nlohmann::ordered_json& usage);

// Every numeric option, and the names of the steps in order as "samplers".
nlohmann::ordered_json SamplerJson(const SamplerOptions& options);

}  // namespace godwit::chat
