#include "chat/result_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sampling/options.h"

namespace godwit::chat {

double RoundedSeconds(double ms) { return std::round(1000 * ms) / 1e6; }

std::string FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kTimeout:
      return "timeout";
  }
  return "";
}

nlohmann::ordered_json KvJson(const KvReport& kv) {
  nlohmann::ordered_json spans = nlohmann::ordered_json::array();
  for (const auto& [begin, end] : kv.dropped) spans.push_back({begin, end});
  nlohmann::ordered_json json{{"policy", kv.policy},    {"seen", kv.seen},
                              {"kept", kv.kept},        {"dropped", kv.seen - kv.kept},
                              {"dropped_spans", spans}, {"bytes", kv.bytes}};
  if (kv.context_tokens > 0) json["context_tokens"] = kv.context_tokens;
  if (kv.file) {
    json["in_memory_bytes"] = kv.file->in_memory_bytes;
    json["file_read_bytes"] = kv.file->read_bytes;
  }
  return json;
}

nlohmann::ordered_json ProgressJson(const PromptProgress& progress) {
  nlohmann::ordered_json json{{"total", progress.total_tokens},
                              {"cache", progress.cached_tokens},
                              {"processed", progress.done_tokens},
                              {"time_ms", progress.elapsed_ms}};
  if (progress.left_ms) json["left_ms"] = *progress.left_ms;
  return json;
}

nlohmann::ordered_json TimingsJson(const GenerateResult& result) {
  const auto rate = [](int64_t tokens, double ms) {
    return ms > 0 ? static_cast<double>(tokens) * 1000 / ms : 0;
  };
  const auto predicted = std::ssize(result.tokens);
  return {{"cache_n", result.cached_tokens},
          {"prompt_n", result.read_tokens},
          {"prompt_ms", result.prompt_ms},
          {"prompt_per_second", rate(result.read_tokens, result.prompt_ms)},
          {"predicted_n", predicted},
          {"predicted_ms", result.predicted_ms},
          {"predicted_per_second", rate(predicted - 1, result.predicted_ms)}};
}

nlohmann::ordered_json DraftsJson(const DraftReport& drafts) {
  auto sources = nlohmann::ordered_json::object(), rested = sources;
  for (const auto& [name, accepted, skipped_steps] : drafts.sources) {
    sources[name] = accepted;
    rested[name] = skipped_steps;
  }
  return {{"steps", drafts.steps},       {"draft_tokens", drafts.draft_tokens},
          {"accepted", drafts.accepted}, {"sources", sources},
          {"skipped_steps", rested},     {"steps_short_of_memory", drafts.steps_short_of_memory}};
}

void AddPassages(const GenerateResult& result, nlohmann::ordered_json& usage) {
  if (!result.passages) return;
  usage["passages"] = {{"cached_tokens", result.passages->cached_tokens},
                       {"reused_tokens", result.passages->reused_tokens},
                       {"anew_tokens", result.passages->anew_tokens},
                       {"exact", result.passages->reused_tokens == 0}};
}

nlohmann::ordered_json SamplerJson(const SamplerOptions& options) {
  // Numbers are printed as they were typed, not as the nearest double.
  const auto shortest = [](float value) {
    return nlohmann::ordered_json::parse(fmt::format("{}", value));
  };
  nlohmann::ordered_json json{{"samplers", nlohmann::ordered_json::array()}};
  for (const SamplerStep step : options.steps) json["samplers"].push_back(Name(step));
  json["repeat_last_n"] = options.repeat_last_n;
  json["repeat_penalty"] = shortest(options.repeat_penalty);
  json["presence_penalty"] = shortest(options.presence_penalty);
  json["frequency_penalty"] = shortest(options.frequency_penalty);
  json["top_k"] = options.top_k;
  json["top_p"] = shortest(options.top_p);
  json["min_p"] = shortest(options.min_p);
  json["eta"] = shortest(options.eta);
  json["temperature"] = shortest(options.temperature);
  return json;
}

}  // namespace godwit::chat
