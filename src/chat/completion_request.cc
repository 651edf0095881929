#include "chat/completion_request.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/name_list.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "chat/fixed_fields.h"
#include "chat/json_fields.h"
#include "chat/request_messages.h"
#include "sampling/options.h"
#include "text/chat_template.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxSamples = 128, kMaxTopLogprobs = 20;  // OpenAI's limits
constexpr int64_t kMaxAnswers = 1024;
constexpr int64_t kMaxStops = 16;
constexpr int64_t kMaxBiases = 1 << 19;  // more tokens than any vocabulary has
constexpr int64_t kMaxTokens = int64_t{1} << 40;
constexpr int64_t kMaxTimeoutMs = int64_t{1} << 40;
constexpr int64_t kMaxSeconds = 1'000'000;

int64_t Int(const Json& value, int64_t min, int64_t max) {
  // The type is unsigned for every number from 0 to 2^64 - 1.
  const bool fits = value.is_number_unsigned() ? std::in_range<int64_t>(value.get<uint64_t>())
                                               : value.is_number_integer();
  const int64_t number = fits ? value.get<int64_t>() : 0;
  if (!fits || number < min || number > max) {
    Refuse(fmt::format("a whole number from {} to {}", min, max), value);
  }
  return number;
}

float Float(const Json& value) {
  if (!value.is_number()) Refuse("a number", value);
  return value.get<float>();
}

double SecondsOf(const Json& value) {
  const double seconds = value.is_number() ? value.get<double>() : 0;
  if (!(seconds > 0 && seconds <= kMaxSeconds)) {
    Refuse(fmt::format("a number above 0 and up to {}", kMaxSeconds), value);
  }
  return seconds;
}

uint64_t Seed(const Json& value) {
  if (!value.is_number_unsigned()) Refuse("a whole number of at least 0", value);
  return value.get<uint64_t>();
}

std::vector<int32_t> Tokens(const Json& value) {
  std::vector<int32_t> tokens;
  for (const Json& token : value) {
    if (!token.is_number()) Refuse("a text or a list of token ids", token);
    tokens.push_back(static_cast<int32_t>(Int(token, 0, std::numeric_limits<int32_t>::max())));
  }
  return tokens;
}

using TextPrompt = std::variant<std::string, std::vector<int32_t>>;

TextPrompt OnePrompt(const Json& value) {
  if (value.is_array()) return Tokens(value);
  return Text(value);
}

// One prompt, or a list of several.
std::vector<TextPrompt> Prompts(const Json& value) {
  const bool is_list = value.is_array() && !value.empty() && !value.front().is_number();
  if (!is_list) return {OnePrompt(value)};
  std::vector<TextPrompt> prompts;
  for (const Json& one : value) {
    if (!one.is_string() && !one.is_array()) Refuse("texts or lists of token ids", one);
    prompts.push_back(OnePrompt(one));
  }
  return prompts;
}

std::string ReasoningEffort(const Json& value) {
  for (const char* const effort : {"none", "minimal", "low", "medium", "high", "xhigh"}) {
    if (value == effort) return effort;
  }
  Refuse(R"("none", "minimal", "low", "medium", "high" or "xhigh")", value);
}

// The time that an unused model stays loaded, which here is as long as the server runs.
void CheckKeepAlive(const Json& value, bool lenient) {
  const bool is_none = value.is_number() ? value == 0 : Text(value).starts_with('0');
  if (!is_none || lenient) return;
  Refuse(
      "a time other than 0, because the model stays loaded while the server runs (--lenient "
      "ignores it)",
      value);
}

std::vector<std::string> Stops(const Json& value) {
  const Json list = value.is_array() ? value : Json::array({value});
  if (std::ssize(list) > kMaxStops) Refuse(fmt::format("up to {} texts", kMaxStops), value);
  std::vector<std::string> stops;
  for (const Json& stop : list) {
    if (Text(stop).empty()) Refuse("texts that are not empty", stop);
    stops.push_back(stop);
  }
  return stops;
}

std::map<int32_t, float> LogitBias(const Json& value) {
  if (!value.is_object()) Refuse("an object of token ids and numbers", value);
  if (std::ssize(value) > kMaxBiases) Refuse(fmt::format("up to {} token ids", kMaxBiases), value);
  std::map<int32_t, float> biases;
  for (const auto& [key, bias] : value.items()) {
    int32_t token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size()) Refuse("token ids as keys", key);
    if (!biases.emplace(token, Float(bias)).second) Refuse("each token id only once", key);
  }
  return biases;
}

// The schema in {"name": ..., "schema": {...}}. It is always enforced, as if it were strict.
const Json& SchemaOf(const Json& value) {
  if (!value.is_object() || !value.value("schema", Json()).is_object()) {
    Refuse(R"("json_schema": {"name": "...", "schema": {...}})", value);
  }
  for (const auto& [name, part] : value.items()) {
    if (name == "schema") continue;
    if (name == "name" || name == "description") {
      Text(part);
    } else if (name == "strict") {
      if (!part.is_null()) Bool(part);
    } else {
      Throw(ErrorKind::kInput, "unknown field {} in \"json_schema\"", Quote(name));
    }
  }
  return value["schema"];
}

// The schema of the answer. Empty: none.
std::string ResponseFormat(const Json& value) {
  if (!value.is_object()) Refuse("an object", value);
  const Json type = value.value("type", Json());
  const bool by_schema = type == "json_schema";
  if (!by_schema && type != "json_object" && type != "text") {
    Refuse(R"("type": "text", "json_object" or "json_schema")", type);
  }
  if (by_schema != value.contains("json_schema") || value.size() != (by_schema ? 2 : 1)) {
    Refuse(R"("json_schema" beside "type": "json_schema", and nothing else)", value);
  }
  if (by_schema) return DumpJson(SchemaOf(value["json_schema"]));
  return type == "text" ? "" : R"({"type": "object"})";
}

// A request while its fields are read.
struct Draft {
  CompletionRequest request;
  bool has_prompt = false;
  bool has_limit = false;
  bool has_penalty = false;
  bool has_reach = false;
  bool logprobs = false;
  bool has_stream_options = false;
  Json tool_choice;
  std::optional<bool> continues;  // the last message
  std::optional<bool> begins;     // another message
  std::string reasoning_effort;
  std::optional<int> top_logprobs;
  const CompletionDefaults* defaults;

  SamplerOptions& sampler() { return request.generate.sampler; }

  void TakePrompt(decltype(CompletionRequest::prompt) prompt) {
    if (std::exchange(has_prompt, true)) {
      Throw(ErrorKind::kInput, "\"messages\" and \"prompt\" exclude each other");
    }
    request.prompt = std::move(prompt);
  }
  void TakePrompts(std::vector<TextPrompt> prompts) {
    std::visit([&](auto& first) { TakePrompt(std::move(first)); }, prompts.front());
    prompts.erase(prompts.begin());
    request.more_prompts = std::move(prompts);
  }
  void CheckPrompts() const {
    if (!has_prompt) Throw(ErrorKind::kInput, "a request needs \"messages\" or \"prompt\"");
    const auto is_empty = [](const auto& prompt) {
      return std::visit([](const auto& one) { return one.empty(); }, prompt);
    };
    if (request.fill) return CheckFill();
    if (is_empty(request.prompt) || std::ranges::any_of(request.more_prompts, is_empty)) {
      Throw(ErrorKind::kInput, "the prompt is empty: there is nothing to continue");
    }
    const int64_t answers = request.samples * (1 + std::ssize(request.more_prompts));
    if (answers > kMaxAnswers) {
      Throw(ErrorKind::kInput, "\"prompt\": expected up to {} answers, \"n\" to each, found {}",
            kMaxAnswers, answers);
    }
    if (request.echo && request.is_chat()) {
      Throw(ErrorKind::kInput, "\"echo\": expected \"prompt\", found \"messages\"");
    }
  }
  void CheckFill() const {
    if (!std::holds_alternative<std::string>(request.prompt) || !request.more_prompts.empty()) {
      Throw(ErrorKind::kInput, "\"suffix\": expected a \"prompt\" that is one text");
    }
    if (request.echo) Throw(ErrorKind::kInput, "\"echo\" and \"suffix\" exclude each other");
  }
  // Continues an assistant's last message, unless the request wants another one behind it.
  void TakeContinuation() {
    const auto* const messages = std::get_if<std::vector<Message>>(&request.prompt);
    const bool can = messages != nullptr && messages->back().role == "assistant" &&
                     messages->back().fields.find("\"tool_calls\"") == std::string::npos;
    if (continues && begins && *continues == *begins) {
      Throw(ErrorKind::kInput,
            "\"continue_final_message\" and \"add_generation_prompt\" contradict each other");
    }
    const bool wanted = continues.value_or(!begins.value_or(false));
    if ((continues || begins) && wanted && !can) {
      Throw(ErrorKind::kInput, "{}: expected a last message of the assistant",
            continues ? "\"continue_final_message\"" : "\"add_generation_prompt\"");
    }
    request.continues = can && wanted;
  }
  // Passes the effort to the template. A request's own template variables win.
  void TakeReasoningEffort() {
    if (reasoning_effort.empty()) return;
    Json& variables = request.template_variables;
    if (!variables.contains("reasoning_effort")) variables["reasoning_effort"] = reasoning_effort;
    if (reasoning_effort == "none" && !variables.contains("enable_thinking")) {
      variables["enable_thinking"] = false;
    }
  }
  void TakeLimit(const Json& value) {
    if (std::exchange(has_limit, true)) {
      Throw(ErrorKind::kInput, "\"max_tokens\" and \"max_completion_tokens\" exclude each other");
    }
    request.generate.max_tokens = Int(value, 0, kMaxTokens);
  }
  void TakeStreamOptions(const Json& value) {
    if (!value.is_object()) Refuse("an object", value);
    for (const auto& [name, part] : value.items()) {
      if (name != "include_usage") Refuse("\"include_usage\" and nothing else", value);
      request.include_usage = Bool(part);
    }
    has_stream_options = true;
  }
  // Takes a way of keeping or reading texts, one of those that requests may name.
  void TakeChoice(const Json& value, const std::vector<std::string>& choices, std::string_view flag,
                  std::optional<std::string>& choice) {
    if (std::ranges::find(choices, Text(value)) == choices.end()) {
      const auto names = NameList(
          choices, [](const auto& name) { return Quote(name); }, " or ");
      Refuse(fmt::format("{}, because the server allows no other value ({} NAME adds one)",
                         choices.empty() ? "nothing" : names, flag),
             value);
    }
    choice = value;
  }
  void TakeTimeout(const Json& value) {
    const double most = defaults->generate.timeout_ms;
    request.generate.timeout_ms =
        static_cast<double>(Int(value, 1, most > 0 ? static_cast<int64_t>(most) : kMaxTimeoutMs));
  }
  void TakeTools() {
    if (request.tools.list.empty() && tool_choice.is_null()) return;
    if (!request.is_chat()) Throw(ErrorKind::kInput, "\"tools\" need \"messages\"");
    const bool has_format = !request.generate.json_schema.empty();
    try {
      TakeToolChoice(tool_choice, request.parallel_tool_calls, request.tools, request.generate);
    } catch (const Error& error) {
      Throw(error.kind(), "\"tool_choice\": {}", error.what());
    }
    if (has_format && !request.tools.list.empty()) {
      Throw(ErrorKind::kInput,
            "\"tools\" and a \"response_format\" of JSON exclude each other, except with "
            "\"tool_choice\": \"none\"");
    }
  }
  // messages: those of the request.
  void TakePassages(const Json& messages) {
    if (!request.passages) return;
    const char* other = !request.is_chat()      ? "\"prompt\""
                        : request.samples > 1   ? "\"n\" above 1"
                        : request.explain_cache ? "\"explain_cache\""
                                                : nullptr;
    if (other != nullptr) {
      Throw(ErrorKind::kInput, "\"passages\" and {} exclude each other", other);
    }
    request.passages->texts = PassagesIn(messages);
    // A stream says, too, that its answer is not exactly the model's own.
    if (request.stream) request.include_usage = true;
  }
  void TakePenalty(const Json& value) {
    sampler().repeat_penalty = Float(value);
    has_penalty = true;
  }
};

int TopLogprobs(const Json& value) { return static_cast<int>(Int(value, 0, kMaxTopLogprobs)); }

struct Field {
  std::string_view name;
  void (*take)(const Json& value, Draft& draft);
};

constexpr Field kFields[] = {
    {"messages",
     [](const Json& v, Draft& d) { d.TakePrompt(ParseMessages(v, d.defaults->lenient)); }},
    {"prompt", [](const Json& v, Draft& d) { d.TakePrompts(Prompts(v)); }},
    {"suffix",
     [](const Json& v, Draft& d) {
       if (!Text(v).empty()) d.request.fill = FillIn{.before = "", .behind = v};
     }},
    {"echo", [](const Json& v, Draft& d) { d.request.echo = Bool(v); }},
    {"continue_final_message", [](const Json& v, Draft& d) { d.continues = Bool(v); }},
    {"add_generation_prompt", [](const Json& v, Draft& d) { d.begins = Bool(v); }},
    {"max_tokens", [](const Json& v, Draft& d) { d.TakeLimit(v); }},
    {"max_completion_tokens", [](const Json& v, Draft& d) { d.TakeLimit(v); }},
    {"query_tokens",
     [](const Json& v, Draft& d) { d.request.generate.query_tokens = Int(v, 1, kMaxTokens); }},
    {"n",
     [](const Json& v, Draft& d) { d.request.samples = static_cast<int>(Int(v, 1, kMaxSamples)); }},
    {"temperature", [](const Json& v, Draft& d) { d.sampler().temperature = Float(v); }},
    {"top_p", [](const Json& v, Draft& d) { d.sampler().top_p = Float(v); }},
    {"top_k",
     [](const Json& v, Draft& d) {
       // vLLM says -1 for all tokens.
       const int64_t most = Int(v, -1, std::numeric_limits<int>::max());
       d.sampler().top_k = static_cast<int>(std::max<int64_t>(0, most));
     }},
    {"min_p", [](const Json& v, Draft& d) { d.sampler().min_p = Float(v); }},
    {"eta", [](const Json& v, Draft& d) { d.sampler().eta = Float(v); }},
    {"repeat_penalty", [](const Json& v, Draft& d) { d.TakePenalty(v); }},
    {"repetition_penalty", [](const Json& v, Draft& d) { d.TakePenalty(v); }},
    {"repeat_last_n",
     [](const Json& v, Draft& d) {
       d.sampler().repeat_last_n = static_cast<int>(Int(v, -1, std::numeric_limits<int>::max()));
       d.has_reach = true;
     }},
    {"presence_penalty", [](const Json& v, Draft& d) { d.sampler().presence_penalty = Float(v); }},
    {"frequency_penalty",
     [](const Json& v, Draft& d) { d.sampler().frequency_penalty = Float(v); }},
    {"logit_bias", [](const Json& v, Draft& d) { d.sampler().logit_bias = LogitBias(v); }},
    {"seed", [](const Json& v, Draft& d) { d.sampler().seed = Seed(v); }},
    {"stop", [](const Json& v, Draft& d) { d.request.generate.stop = Stops(v); }},
    {"ignore_eos", [](const Json& v, Draft& d) { d.request.generate.ignore_eos = Bool(v); }},
    {"response_format",
     [](const Json& v, Draft& d) { d.request.generate.json_schema = ResponseFormat(v); }},
    {"draft", [](const Json& v, Draft& d) { d.request.generate.draft = Text(v); }},
    {"kv", [](const Json& v,
              Draft& d) { d.TakeChoice(v, d.defaults->kv_choices, "--kv-choice", d.request.kv); }},
    {"prefill",
     [](const Json& v, Draft& d) {
       d.TakeChoice(v, d.defaults->prefill_choices, "--prefill-choice", d.request.prefill);
     }},
    {"timeout_ms", [](const Json& v, Draft& d) { d.TakeTimeout(v); }},
    {"first_token_within_s",
     [](const Json& v, Draft& d) { d.request.first_token_within_s = SecondsOf(v); }},
    {"passages", [](const Json& v, Draft& d) { d.request.passages = ParsePassages(v); }},
    {"explain_cache", [](const Json& v, Draft& d) { d.request.explain_cache = Bool(v); }},
    // A chat has a switch and a number, a completion the number alone.
    {"logprobs",
     [](const Json& v, Draft& d) {
       d.logprobs = !v.is_boolean() || v.get<bool>();
       if (!v.is_boolean()) d.top_logprobs = TopLogprobs(v);
     }},
    {"top_logprobs", [](const Json& v, Draft& d) { d.top_logprobs = TopLogprobs(v); }},
    {"return_token_ids", [](const Json& v, Draft& d) { d.request.return_token_ids = Bool(v); }},
    {"tools", [](const Json& v, Draft& d) { d.request.tools = ParseTools(v); }},
    {"tool_choice", [](const Json& v, Draft& d) { d.tool_choice = v; }},
    {"parallel_tool_calls",
     [](const Json& v, Draft& d) { d.request.parallel_tool_calls = Bool(v); }},
    {"chat_template_kwargs",
     [](const Json& v, Draft& d) {
       d.request.template_variables.update(ParseTemplateVariables(v.dump()));
     }},
    {"stream", [](const Json& v, Draft& d) { d.request.stream = Bool(v); }},
    {"stream_options", [](const Json& v, Draft& d) { d.TakeStreamOptions(v); }},
    {"return_progress", [](const Json& v, Draft& d) { d.request.return_progress = Bool(v); }},
    {"reasoning_effort", [](const Json& v, Draft& d) { d.reasoning_effort = ReasoningEffort(v); }},
    // The engine does not use the names of model and user.
    {"model", [](const Json& v, Draft&) { Text(v); }},
    {"user", [](const Json& v, Draft&) { Text(v); }},
    {"safety_identifier", [](const Json& v, Draft&) { Text(v); }},
    {"metadata",
     [](const Json& v, Draft&) {
       if (!v.is_object()) Refuse("an object", v);
     }},
    // The prefix cache finds equal beginnings without a key.
    {"prompt_cache_key", [](const Json& v, Draft&) { Text(v); }},
    {"keep_alive", [](const Json& v, Draft& d) { CheckKeepAlive(v, d.defaults->lenient); }},
};

// Other APIs' names of fields.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"functions", "tools"},
    {"function_call", "tool_choice"},
    {"n_predict", "max_tokens"},
    {"num_predict", "max_tokens"},
    {"max_new_tokens", "max_tokens"},
    {"guided_json", "response_format"},
    {"json_schema", "response_format"},
};

// Finds a field. Null: there is none, or a lenient server ignores it.
const Field* FindField(const std::string& name, bool lenient) {
  for (const Field& field : kFields) {
    if (field.name == name) return &field;
  }
  if (lenient) return nullptr;
  auto nearest = Nearest(name, Names(kFields, &Field::name));
  for (const auto& [other, own] : kOtherNames) {
    if (name == other) nearest = own;
  }
  Throw(ErrorKind::kInput, "unknown field {}{}; --lenient ignores it", Quote(name),
        nearest ? fmt::format(" (did you mean {}?)", Quote(*nearest)) : "");
}

void Take(const Field& field, const Json& value, Draft& draft) {
  try {
    field.take(value, draft);
  } catch (const Error& error) {
    Throw(error.kind(), "{}: {}", Quote(field.name), error.what());
  }
}

}  // namespace

CompletionRequest ParseCompletionRequest(const Json& body, const CompletionDefaults& defaults,
                                         std::optional<FillIn> fill) {
  if (!body.is_object()) Refuse("a request that is an object", body);
  Draft draft;
  draft.defaults = &defaults;
  draft.request.generate = defaults.generate;
  draft.request.fill = std::move(fill);
  // A seed of 32 bits survives every JSON reader.
  if (defaults.random_seeds) draft.sampler().seed = std::random_device()();
  draft.request.template_variables = defaults.template_variables;
  for (const auto& [name, value] : body.items()) {
    if (IsFixed(FixedFields(), name, value, defaults.lenient)) continue;
    const Field* field = FindField(name, defaults.lenient);
    if (field != nullptr && !value.is_null()) Take(*field, value, draft);
  }
  draft.CheckPrompts();
  draft.TakeContinuation();
  draft.TakeReasoningEffort();
  draft.TakePassages(body.value("messages", Json()));
  if (draft.top_logprobs && !draft.logprobs) {
    Throw(ErrorKind::kInput, "\"top_logprobs\" needs \"logprobs\": true");
  }
  if (!draft.request.stream && (draft.has_stream_options || draft.request.return_progress)) {
    Throw(ErrorKind::kInput, "{} needs \"stream\": true",
          draft.has_stream_options ? "\"stream_options\"" : "\"return_progress\"");
  }
  draft.TakeTools();
  if (draft.logprobs) draft.request.generate.top_logprobs = draft.top_logprobs.value_or(0);
  if (draft.has_penalty && !draft.has_reach) {
    draft.sampler().repeat_last_n = defaults.repeat_last_n;
  }
  Validate(draft.sampler(), std::numeric_limits<int32_t>::max());
  return std::move(draft.request);
}

}  // namespace godwit::chat
