// Plans: what a request would cost, in each way in which it may be answered, before it is.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chat/answers.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"
#include "godwit/error.h"

namespace godwit::chat {

// A way to answer: SessionOptions::kv and prefill, and GenerateOptions::draft.
struct Way {
  std::string kv, prefill, draft;

  bool operator==(const Way&) const = default;
};

// A way and its price, or why it is refused.
struct Plan {
  Way way;
  std::optional<RequestPrice> price;
  std::string refusal = {};
};

// The ways that a request leaves open, the best first: the way in which it would be answered.
// Others follow with values of "prefill", then with values of "kv", as the operator lists them. A
// value that the request names is not changed. options: as the server has them.
std::vector<Way> OpenWays(const CompletionRequest& request, const SessionOptions& options,
                          const CompletionDefaults& defaults);

// The message of an error, for the client.
using MessageFor = std::function<std::string(const Error& error)>;

// The plan of each way. Ways that the engine refuses have its message. read_anew: of passages, if
// the prompt has some (Prompt::passage_ends).
std::vector<Plan> PlansOf(const Engine& engine, const SessionOptions& options, const Prompt& prompt,
                          const GenerateOptions& generate, std::span<const Way> ways,
                          const MessageFor& message_for, int64_t read_anew = 0);
// The same for a request. Throws Error(kInput) for several prompts, and what PromptsOf throws.
std::vector<Plan> PlansOf(const Engine& engine, const Session& session,
                          const SessionOptions& options, const CompletionRequest& request,
                          std::span<const Way> ways, const MessageFor& message_for);

// Parses the body of a plan. It is that of a chat or of a text to continue. With "input" it is that
// of a response, with "system" or "api": "messages" that of Anthropic's API. Throws as these do.
CompletionRequest ParsePlanRequest(nlohmann::ordered_json body, const CompletionDefaults& defaults);

// {"kv", "prefill", "draft", "cached_tokens", "disk_tokens", "kv_bytes", "first_token_s",
// "token_s"}, or with "refused" behind the first three. "draft_measured" comes where there are
// drafts, "near_measured" where it is false.
nlohmann::ordered_json PlanJson(const Plan& plan);
// {"object": "plan", "prompt_tokens", "plans": [...], "other_requests"}. within_s: as
// CompletionRequest::first_token_within_s. If it is not 0, "chosen" is the number of the way that
// would be chosen, null for none.
nlohmann::ordered_json PlansJson(std::span<const Plan> plans, double within_s = 0);

// No way keeps CompletionRequest::first_token_within_s.
class LateFirstToken : public Error {
 public:
  LateFirstToken(const std::string& message, nlohmann::ordered_json plans)
      : Error(ErrorKind::kInput, message), plans_(std::move(plans)) {}
  const nlohmann::ordered_json& plans() const { return plans_; }  // PlansJson

 private:
  nlohmann::ordered_json plans_;
};

// Makes the request keep first_token_within_s, if it has that: chooses the first way whose first
// token comes in time, and adds the plan to more_usage. Adds "prefix" there, if it has
// explain_cache. Throws LateFirstToken, and what PlansOf throws.
void PrepareRequest(const Engine& engine, const Session& session, const SessionOptions& options,
                    const CompletionDefaults& defaults, const MessageFor& message_for,
                    CompletionRequest& request);

}  // namespace godwit::chat
