#include "cli/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/machine_memory.h"
#include "base/quote.h"
#include "chat/result_json.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"
#include "sampling/options.h"

namespace godwit::cli {
namespace {

int64_t OutputTokens(const GenerateResult& result) {
  return static_cast<int64_t>(result.tokens.size());
}

std::string DescribeEnd(const GenerateResult& result) {
  switch (result.finish_reason) {
    case FinishReason::kStop:
      return result.stop.empty() ? "" : ", ended by the stop string " + Quote(result.stop);
    case FinishReason::kLength:
      return ", ended by the limit of -n";
    case FinishReason::kContextFull:
      return ", ended by a full context";
    case FinishReason::kCancelled:
      return ", cancelled";
    case FinishReason::kTimeout:
      return ", ended by its time limit";
  }
  return "";
}

// Appends "temperature 0.7 (the model's)", or nothing if the value is `off`.
template <typename Value>
void AppendOption(std::string& text, const EffectiveSampler& sampler, const std::string& field,
                  std::string_view shown, Value value, Value off) {
  if (value == off) return;
  text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", shown, value,
                      sampler.from_model.contains(field) ? " (the model's)" : "");
}

void AppendStep(std::string& text, const EffectiveSampler& sampler, SamplerStep step) {
  const SamplerOptions& options = sampler.options;
  switch (step) {
    case SamplerStep::kPenalties:
      AppendOption(text, sampler, "repeat_penalty", "repeat penalty", options.repeat_penalty, 1.0f);
      AppendOption(text, sampler, "presence_penalty", "presence penalty", options.presence_penalty,
                   0.0f);
      AppendOption(text, sampler, "frequency_penalty", "frequency penalty",
                   options.frequency_penalty, 0.0f);
      break;
    case SamplerStep::kTopK:
      AppendOption(text, sampler, "top_k", "top-k", options.top_k, 0);
      break;
    case SamplerStep::kTopP:
      AppendOption(text, sampler, "top_p", "top-p", options.top_p, 1.0f);
      break;
    case SamplerStep::kMinP:
      AppendOption(text, sampler, "min_p", "min-p", options.min_p, 0.0f);
      break;
    case SamplerStep::kEta:
      AppendOption(text, sampler, "eta", "eta", options.eta, 0.0f);
      break;
    case SamplerStep::kTemperature:
      AppendOption(text, sampler, "temperature", "temperature", options.temperature, 1.0f);
      break;
  }
}

double OtherMs(const LoadTimes& times) {
  return std::max(0.0, times.total_ms - times.weights_ms - times.tokenizer_ms);
}

}  // namespace

double TokenRate(int64_t tokens, double ms) {
  return tokens > 0 && ms > 0 ? 1000 * static_cast<double>(tokens) / ms : 0;
}

double PromptRate(const GenerateResult& result) {
  return TokenRate(result.read_tokens, result.prompt_ms);
}

double PredictedRate(const GenerateResult& result) {
  return TokenRate(OutputTokens(result) - 1, result.predicted_ms);
}

std::string DescribeDropped(const KvReport& kv) {
  std::string text;
  for (const auto& [begin, end] : kv.dropped) {
    text += fmt::format("{}{} after the first {}", text.empty() ? "dropped " : ", ",
                        console::Plural(end - begin, "token"), begin);
  }
  return text;
}

void SayDropped(const KvReport& kv, std::string_view where) {
  const std::string dropped = DescribeDropped(kv);
  if (!dropped.empty())
    console::WriteStatus(fmt::format("godwit: {}: {}{}\n", kv.policy, dropped, where));
}

std::string DescribeKv(const KvReport& kv) {
  std::string text = fmt::format("{}: {} of {} kept, {}", kv.policy, kv.kept,
                                 console::Plural(kv.seen, "token"), FormatBytes(kv.bytes));
  if (kv.file) {
    text += fmt::format(" in a file, {} of them in memory, {} read from it",
                        FormatBytes(kv.file->in_memory_bytes), FormatBytes(kv.file->read_bytes));
  }
  return text;
}

std::string DescribeDrafts(const DraftReport& drafts) {
  if (drafts.steps == 0) return "no draft tokens were needed";
  const auto steps = static_cast<double>(drafts.steps);
  std::string text = fmt::format("{:.2f} tokens a step; {} accepted of {}",
                                 1 + static_cast<double>(drafts.accepted) / steps, drafts.accepted,
                                 console::Plural(drafts.draft_tokens, "draft token"));
  if (drafts.draft_tokens == 0) text += ": none would have saved time";
  std::string sources, rested;
  for (const auto& [name, accepted, skipped_steps] : drafts.sources) {
    if (accepted > 0) {
      sources += fmt::format("{}{} of {}", sources.empty() ? ": " : ", ", accepted, name);
    }
    if (skipped_steps == 0) continue;
    rested += fmt::format(
        "{}{} in {}", rested.empty() ? "; paused because it took more time than it saved: " : ", ",
        name, console::Plural(skipped_steps, "step"));
  }
  std::string roomless;
  if (drafts.steps_short_of_memory > 0) {
    roomless = fmt::format("; {} had no memory for draft tokens",
                           console::Plural(drafts.steps_short_of_memory, "step"));
  }
  return text + sources + rested + roomless;
}

std::string Summarize(const GenerateResult& result) {
  const auto speed = [](double rate) {
    return rate > 0 ? fmt::format(" ({} tokens/s)", console::FormatRate(rate)) : "";
  };
  std::string text = fmt::format("prompt  {}", console::Plural(result.prompt_tokens, "token"));
  if (result.cached_tokens > 0) text += fmt::format(", {} of them cached", result.cached_tokens);
  if (result.disk_tokens > 0) text += " on the disk";
  if (result.cached_tokens + result.read_tokens < result.prompt_tokens) {
    text += fmt::format(", {} of them read", result.read_tokens);
  }
  text += fmt::format(", {}{}\n", fmt::format("{:.2f} s", result.prompt_ms / 1000),
                      speed(PromptRate(result)));
  text +=
      fmt::format("output  {}, {:.2f} s{}{}\n", console::Plural(OutputTokens(result), "token"),
                  result.predicted_ms / 1000, speed(PredictedRate(result)), DescribeEnd(result));
  if (result.drafts) text += "drafts  " + DescribeDrafts(*result.drafts) + "\n";
  text += "kv      " + DescribeKv(result.kv);
  const std::string dropped = DescribeDropped(result.kv);
  return text + (dropped.empty() ? "\n" : "; " + dropped + "\n");
}

std::string DescribeLoad(const LoadTimes& times) {
  return fmt::format("{:.2f} s: weights {:.2f} s, tokenizer {:.2f} s, other {:.2f} s",
                     times.total_ms / 1000, times.weights_ms / 1000, times.tokenizer_ms / 1000,
                     OtherMs(times) / 1000);
}

nlohmann::ordered_json LoadJson(const LoadTimes& times) {
  return {{"ms", times.total_ms},
          {"weights_ms", times.weights_ms},
          {"tokenizer_ms", times.tokenizer_ms},
          {"other_ms", OtherMs(times)}};
}

std::string DescribeSampler(const EffectiveSampler& sampler) {
  std::string text;
  const bool greedy = sampler.options.temperature == 0;
  for (const SamplerStep step : sampler.options.steps) {
    if (!greedy || step == SamplerStep::kPenalties) AppendStep(text, sampler, step);
  }
  if (greedy) {
    text += text.empty() ? "greedy" : ", greedy";
    if (sampler.from_model.contains("temperature")) text += " (the model's)";
  }
  return text.empty() ? "the model's own probabilities" : text;
}

nlohmann::ordered_json SamplerJson(const EffectiveSampler& sampler) {
  nlohmann::ordered_json json = chat::SamplerJson(sampler.options);
  json["from_model"] = sampler.from_model;
  return json;
}

}  // namespace godwit::cli
