#include "chat/plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "chat/anthropic_request.h"
#include "chat/prefix_doctor.h"
#include "chat/response_request.h"
#include "chat/result_json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

// Seconds with two digits that count.
std::string Brief(double ms) {
  const double s = ms / 1000;
  return s < 10 ? fmt::format("{:.2g} s", s) : fmt::format("{:.0f} s", s);
}

std::string NameOf(const Way& way) {
  return way.prefill.empty() ? fmt::format("kv {}", way.kv)
                             : fmt::format("kv {} and prefill {}", way.kv, way.prefill);
}

SessionOptions OptionsOf(const Way& way, SessionOptions options) {
  options.kv = way.kv;
  options.prefill = way.prefill;
  return options;
}

bool ComesWithin(const Plan& plan, double seconds) {
  return plan.price && plan.price->first_token_ms <= 1000 * seconds;
}

void RefuseSeveral(const CompletionRequest& request) {
  if (request.more_prompts.empty()) return;
  Throw(ErrorKind::kInput, "a plan is made for one prompt, and \"prompt\" has {}",
        1 + request.more_prompts.size());
}

}  // namespace

std::vector<Way> OpenWays(const CompletionRequest& request, const SessionOptions& options,
                          const CompletionDefaults& defaults) {
  const std::string kv = request.kv.value_or(options.kv);
  const std::string prefill = request.prefill.value_or(options.prefill);
  std::vector<Way> ways;
  const auto add = [&](const std::string& a_kv, const std::string& a_prefill) {
    const Way way{a_kv, a_prefill, request.generate.draft};
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  };
  const auto add_with = [&](const std::string& a_kv) {
    add(a_kv, prefill);
    if (request.prefill) return;
    for (const std::string& other : defaults.prefill_choices) add(a_kv, other);
  };
  add_with(kv);
  if (!request.kv) {
    for (const std::string& other : defaults.kv_choices) add_with(other);
  }
  return ways;
}

std::vector<Plan> PlansOf(const Engine& engine, const SessionOptions& options, const Prompt& prompt,
                          const GenerateOptions& generate, std::span<const Way> ways,
                          const MessageFor& message_for, int64_t read_anew) {
  const PassagePlaces passages{.ends = prompt.passage_ends, .read_anew = read_anew};
  std::vector<Plan> plans;
  for (const Way& way : ways) {
    Plan plan{.way = way, .price = {}};
    GenerateOptions own = generate;
    own.query_tokens = prompt.query_tokens;
    own.draft = way.draft;
    try {
      const SessionOptions session = OptionsOf(way, options);
      plan.price = passages.ends.empty() ? engine.PriceOf(prompt.tokens, own, session)
                                         : engine.PriceOf(prompt.tokens, passages, own, session);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kCancelled) throw;
      plan.refusal = message_for(error);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<Plan> PlansOf(const Engine& engine, const Session& session,
                          const SessionOptions& options, const CompletionRequest& request,
                          std::span<const Way> ways, const MessageFor& message_for) {
  RefuseSeveral(request);
  const auto prompts = PromptsOf(engine, session, request);
  return PlansOf(engine, options, prompts.front(), request.generate, ways, message_for,
                 request.passages ? request.passages->read_anew : 0);
}

CompletionRequest ParsePlanRequest(Json body, const CompletionDefaults& defaults) {
  if (!body.is_object()) Throw(ErrorKind::kInput, "expected a request that is an object");
  Json api = body.value("api", Json());
  body.erase("api");
  if (api.is_null()) {
    api = body.contains("input") ? "responses" : body.contains("system") ? "messages" : "";
  }
  if (api == "responses") return ParseResponseRequest(body, defaults).completion;
  if (api == "messages") {
    const bool has_limit = body.contains("max_tokens");
    return ParseAnthropicRequest(body, defaults, /*for_count=*/!has_limit);
  }
  if (api != "" && api != "chat/completions" && api != "completions") {
    Throw(ErrorKind::kInput,
          R"("api": expected "chat/completions", "completions", "responses" or "messages")");
  }
  return ParseCompletionRequest(body, defaults);
}

Json PlanJson(const Plan& plan) {
  Json json{{"kv", plan.way.kv}, {"prefill", plan.way.prefill}, {"draft", plan.way.draft}};
  if (!plan.price) {
    json["refused"] = plan.refusal;
    return json;
  }
  const RequestPrice& price = *plan.price;
  json["prefill"] = price.prefill;
  json["cached_tokens"] = price.cached_tokens;
  json["disk_tokens"] = price.disk_tokens;
  json["kv_bytes"] = price.kv_bytes;
  json["first_token_s"] = RoundedSeconds(price.first_token_ms);
  json["token_s"] = RoundedSeconds(price.token_ms);
  if (!plan.way.draft.empty()) json["draft_measured"] = price.draft_measured;
  if (!price.near_measured) json["near_measured"] = false;
  return json;
}

Json PlansJson(std::span<const Plan> plans, double within_s) {
  Json json{{"object", "plan"}};
  const auto priced = std::ranges::find_if(plans, [](const Plan& p) { return !!p.price; });
  if (priced != plans.end()) json["prompt_tokens"] = priced->price->prompt_tokens;
  Json& list = json["plans"] = Json::array();
  for (const Plan& plan : plans) list.push_back(PlanJson(plan));
  if (within_s > 0) {
    const auto in_time =
        std::ranges::find_if(plans, [&](const Plan& plan) { return ComesWithin(plan, within_s); });
    json["chosen"] = in_time == plans.end() ? Json() : Json(in_time - plans.begin());
  }
  if (priced != plans.end()) {
    json["other_requests"] = priced->price->running + priced->price->waiting;
  }
  return json;
}

void PrepareRequest(const Engine& engine, const Session& session, const SessionOptions& options,
                    const CompletionDefaults& defaults, const MessageFor& message_for,
                    CompletionRequest& request) {
  if (request.explain_cache) {
    RefuseSeveral(request);
    SessionOptions own = options;
    own.kv = request.kv.value_or(own.kv);
    own.prefill = request.prefill.value_or(own.prefill);
    request.more_usage["prefix"] =
        ExplainPrefix(engine, own, request, PromptsOf(engine, session, request).front());
    request.include_usage = request.stream;
  }
  if (request.first_token_within_s <= 0) return;
  std::vector<Plan> plans;
  for (const Way& way : OpenWays(request, options, defaults)) {
    plans.push_back(
        PlansOf(engine, session, options, request, std::span(&way, 1), message_for).front());
    const Plan& plan = plans.back();
    if (!ComesWithin(plan, request.first_token_within_s)) continue;
    request.kv = way.kv;
    request.prefill = way.prefill;
    request.more_usage["plan"] = PlanJson(plan);
    request.include_usage = request.stream;
    return;
  }
  const Plan* fastest = nullptr;
  for (const Plan& plan : plans) {
    if (!plan.price) continue;
    if (fastest == nullptr || plan.price->first_token_ms < fastest->price->first_token_ms) {
      fastest = &plan;
    }
  }
  if (fastest == nullptr) Throw(ErrorKind::kInput, "{}", plans.front().refusal);
  throw LateFirstToken(
      fmt::format(
          "the first token would come after {} at best, with {}, and \"first_token_within_s\""
          " is {}",
          Brief(fastest->price->first_token_ms), NameOf(fastest->way),
          request.first_token_within_s),
      PlansJson(plans, request.first_token_within_s));
}

}  // namespace godwit::chat
