#include "server/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/cancel.h"
#include "base/cancellable_lock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "chat/answers.h"
#include "chat/anthropic_request.h"
#include "chat/completion_json.h"
#include "chat/continued_message.h"
#include "chat/infill_request.h"
#include "chat/result_json.h"
#include "godwit/version.h"
#include "server/error_body.h"
#include "server/refusals.h"

namespace godwit::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJson = "application/json";
constexpr std::string_view kChats = "/v1/chat/completions";
constexpr std::string_view kModels = "/v1/models/";  // and a name
constexpr std::string_view kEnding = "the server is shutting down";
constexpr std::string_view kTooMany = "too many requests are waiting: try again later";
constexpr std::pair<std::string_view, std::string_view> kLater{"Retry-After", "5"};

// The most values of a text of more than a million tokens, given as numbers.
constexpr size_t kMaxValues = 4'000'000;
// The most fields of a request, many times those that exist: finding one compares it with the
// others.
constexpr size_t kMaxFields = 1000;

void SendJson(HttpReply& reply, const Json& json) { reply.Send(200, kJson, DumpJson(json)); }

// Compares a key in constant time, whatever the two have in common.
bool IsSame(std::string_view key, std::string_view said) {
  unsigned differ = key.size() == said.size() ? 0 : 1;
  for (size_t i = 0; i < said.size(); ++i) {
    differ |= static_cast<unsigned char>(said[i]) ^
              static_cast<unsigned char>(key.empty() ? 0 : key[i % key.size()]);
  }
  return differ == 0;
}

// host: the value of the header; empty: the request is from no browser.
bool IsThisMachine(std::string_view host) {
  const size_t port = host.rfind(':');
  if (port != host.npos && host.find(']', port) == host.npos) host = host.substr(0, port);
  const bool is_numbers = host.find_first_not_of("0123456789.") == host.npos;
  return host.empty() || host == "localhost" || host == "[::1]" ||
         (is_numbers && host.starts_with("127."));
}

ErrorWords WordsOf(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorWords::kAnthropic : ErrorWords::kOpenAi;
}

// Decodes %2F and the like in a path.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Parses a body. The values of a text take up to a hundred times its bytes meanwhile, so large
// bodies are parsed one at a time. A request whose client is gone stops waiting and parsing.
//
// work: an Api::Work.
auto ReadBody(const auto& work, const auto& read) {
  constexpr size_t kLargeBytes = size_t{1} << 20;
  static std::timed_mutex one_at_a_time;
  const CancelToken* const gone = &work.reply.gone();
  std::unique_lock<std::timed_mutex> lock;
  if (work.request.body.size() > kLargeBytes) lock = CancellableLock(one_at_a_time, gone);
  const Json body = ParseOrderedJson(work.request.body, "the body",
                                     {.reject_duplicate_keys = true,
                                      .max_values = kMaxValues,
                                      .quote_input = false,
                                      .cancel = gone});
  if (body.is_object() && body.size() > kMaxFields) {
    Throw(ErrorKind::kInput, "expected a request of at most {} fields, found {}", kMaxFields,
          body.size());
  }
  return read(body);
}

// Throws for fields that a request may not have, and if the first one, which is required, is
// missing.
void CheckFields(const Json& body, std::initializer_list<std::string_view> names) {
  if (!body.is_object()) Throw(ErrorKind::kInput, "expected a request that is an object");
  for (const auto& [name, value] : body.items()) {
    if (std::ranges::find(names, name) == names.end()) {
      Throw(ErrorKind::kInput, "unknown field {}; expected {}", Quote(name),
            fmt::join(names, ", "));
    }
  }
  if (!body.contains(*names.begin())) {
    Throw(ErrorKind::kInput, "a request needs {}", Quote(*names.begin()));
  }
}

// Whether the model has a chat template. A broken template disables chats only, each of which says
// so.
bool HasTemplate(const Engine& engine) {
  try {
    return engine.has_chat_template();
  } catch (const Error&) {
    return false;
  }
}

// The conversation's text as the model reads it.
std::string Rendered(const Engine& engine, const chat::CompletionRequest& request) {
  return chat::RenderOpen(engine, std::get<std::vector<Message>>(request.prompt), request.continues,
                          request.template_variables.dump(), request.tools.list.dump());
}

// The context length of a session. 0: no limit.
int64_t ContextOf(const Session& session) {
  const int64_t limit = session.limit_tokens();
  return limit == INT64_MAX ? 0 : limit;
}

}  // namespace

void RefuseForNow(HttpReply& reply, std::string_view why) {
  reply.Send(503, kJson, ErrorBody(503, why), {&kLater, 1});
}

struct Api::Work {
  const HttpRequest& request;
  const std::string& owner;
  HttpReply& reply;
  ServedRequest& served;
};

struct Api::Route {
  std::string_view method;
  std::string_view path;
  void (Api::*answer)(const Work&) const;
  bool open = false;     // also without a key
  bool at_once = false;  // by the server's own thread, regardless of other work
};

const Api::Route Api::kRoutes[] = {
    {"GET", "/health", &Api::Health, /*open=*/true, /*at_once=*/true},
    {"GET", "/ready", &Api::Ready, /*open=*/true, /*at_once=*/true},
    {"GET", "/v1/models", &Api::Models, /*open=*/false, /*at_once=*/true},
    {"GET", "/v1/models/{id}", &Api::OneModel, /*open=*/false, /*at_once=*/true},
    {"GET", "/props", &Api::Props, /*open=*/false, /*at_once=*/true},
    {"GET", "/slots", &Api::ShowSlots, /*open=*/false, /*at_once=*/true},
    {"GET", "/metrics", &Api::ShowMetrics, /*open=*/false, /*at_once=*/true},
    {"POST", kChats, &Api::Complete},
    {"POST", "/v1/completions", &Api::Complete},
    {"POST", "/v1/responses", &Api::Respond},
    {"POST", "/v1/messages", &Api::Message},
    {"POST", "/v1/messages/count_tokens", &Api::CountTokens},
    {"POST", "/infill", &Api::FillIn},
    {"POST", "/tokenize", &Api::Tokenize},
    {"POST", "/detokenize", &Api::Detokenize},
    {"POST", "/apply-template", &Api::ApplyTemplate},
};

Api::Api(const Engine& engine, ApiOptions options)
    : engine_(engine),
      options_(std::move(options)),
      session_(engine.NewSession(options_.session)),
      started_(chat::UnixSeconds()),
      has_template_(HasTemplate(engine)),
      slots_(options_.parallel),
      workers_(options_.parallel, options_.queue) {}

// Null: no such route.
const Api::Route* Api::FindRoute(std::string_view path) {
  if (path.starts_with(kModels) && path.size() > kModels.size()) path = "/v1/models/{id}";
  const auto* const route = std::ranges::find(kRoutes, path, &Route::path);
  return route == std::end(kRoutes) ? nullptr : route;
}

// The reason to refuse a request of another site's page in a browser of this machine. Such a
// request names its origin. If the site's name was made to resolve to this machine (DNS rebinding),
// the request has that name as its host.
std::string_view Api::WhyForeign(const HttpRequest& request) const {
  if (request.allowed_origin) return "";
  std::string_view origin = request.origin;
  origin.remove_prefix(std::min(origin.find("://"), origin.size()));
  if (!request.origin.empty() && origin != "://" + request.host) {
    return "pages of other sites may not send requests; start the server with --allow-origin "
           "ORIGIN to allow that site";
  }
  const auto is_named = [&](const std::string& allowed) {
    return allowed.ends_with("://" + request.host);
  };
  if (!options_.local || !options_.keys.empty() || IsThisMachine(request.host) ||
      std::ranges::any_of(options_.origins, is_named)) {
    return "";
  }
  return "the host name of this request (Host) is not one of this machine: use localhost or "
         "127.0.0.1, or start the server with --allow-origin http://NAME for that name, or with "
         "--api-key-file for any name";
}

// The key that a request gave. Null: none that is valid. Without keys on the server: an empty one.
const std::string* Api::KeyOf(const HttpRequest& request) const {
  static const std::string kAnybody;
  if (options_.keys.empty()) return &kAnybody;
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view said = request.authorization;
  said.remove_prefix(said.starts_with(kScheme) ? kScheme.size() : said.size());
  const std::string* found = nullptr;
  for (const std::string& key : options_.keys) {
    // The first is the header of most clients, the second that of Anthropic's.
    if (IsSame(key, said) || IsSame(key, request.api_key)) found = &key;
  }
  return found;
}

void Api::Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  const Stopwatch watch;
  ServedRequest served{.method = "?", .path = "?"};
  const auto refuse = [&](int status, std::string_view message, Headers headers = {},
                          std::string_view code = "") {
    reply->Send(status, kJson, ErrorBody(status, message, code, WordsOf(request.path)), headers);
    served.status = status;
    served.ms = watch.ms();
    ReportServed(served);
  };
  const Route* const route = FindRoute(request.path);
  if (route == nullptr) {
    std::vector<Endpoint> endpoints{{"POST", kChats}};  // first, as the one that is asked most
    for (const Route& other : kRoutes) endpoints.push_back({other.method, other.path});
    return refuse(404, UnknownPathMessage(request.path, endpoints));
  }
  served.path = route->path;
  if (route->method != request.method) {
    const std::pair<std::string_view, std::string_view> allow{
        "Allow", route->method == "GET" ? "GET, HEAD" : route->method};
    return refuse(405, fmt::format("expected {}", route->method), {&allow, 1});
  }
  served.method = route->method;
  if (const auto why = WhyForeign(request); !why.empty()) return refuse(403, why);
  const std::string* const owner = KeyOf(request);
  if (owner == nullptr && !route->open) {
    constexpr std::pair<std::string_view, std::string_view> kScheme{"WWW-Authenticate", "Bearer"};
    const bool has_key = !request.authorization.empty() || !request.api_key.empty();
    return refuse(401,
                  has_key ? "the server does not know this key: expected Authorization: Bearer "
                            "KEY, or X-Api-Key: KEY"
                          : "a key is needed: Authorization: Bearer KEY, or X-Api-Key: KEY",
                  {&kScheme, 1}, has_key ? "invalid_api_key" : "");
  }
  const std::string whose = owner == nullptr ? "" : *owner;
  auto run = [this, route, watch, whose, served, reply](const HttpRequest& asked) mutable {
    Run(*route, asked, whose, *reply, served);
    served.ms = watch.ms();
    served.gone = reply->gone().cancelled();
    reply.reset();
    ReportServed(served);
  };
  if (route->at_once) return run(request);
  if (draining_) return refuse(503, kEnding, {&kLater, 1});
  auto shared = std::make_shared<const HttpRequest>(std::move(request));
  const bool taken = workers_.Take([run, shared]() mutable { run(*shared); });
  if (!taken) refuse(429, kTooMany, {&kLater, 1});
}

void Api::ReportServed(const ServedRequest& served) {
  metrics_.Add(served);
  if (options_.on_served) options_.on_served(served);
}

void Api::Run(const Route& route, const HttpRequest& request, const std::string& owner,
              HttpReply& reply, ServedRequest& served) const {
  const auto fail = [&](int status, const std::string& body) {
    served.status = status;
    reply.Send(status, kJson, body);
  };
  if (reply.gone().cancelled()) return;  // while the request waited
  served.status = 200;
  const ErrorWords words = WordsOf(request.path);
  const CancelScope scope(reply.gone());
  try {
    (this->*route.answer)({request, owner, reply, served});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled && reply.gone().cancelled()) return;
    fail(StatusOf(error), ErrorBody(error, MessageFor(error, served), words));
  } catch (const std::bad_alloc&) {
    fail(503, ErrorBody(503, "out of memory", "", words));
  } catch (const std::exception&) {
    fail(500, ErrorBody(500, "the server failed to answer this request", "", words));
  }
}

std::string Api::MessageFor(const Error& error, ServedRequest& served) const {
  const std::string message = WithAdvice(error, options_.defaults);
  std::string told = WithoutFolders(error, message, options_.model_place);
  if (told != message) served.error = message;
  return told;
}

void Api::Drain() {
  draining_ = true;
  workers_.Wait();
}

// The reason why no request makes progress. Empty: requests do.
std::string Api::StallReason() const {
  const int64_t waiting = workers_.waiting();
  const double stalled_ms = std::min(workers_.stalled_ms(), slots_.stalled_ms());
  if (waiting == 0 || stalled_ms < options_.stall_ms) return "";
  return fmt::format(
      "the server is stuck: requests waiting {}, running {}, and none has made progress "
      "for {:.0f} s",
      waiting, workers_.working(), stalled_ms / 1000);
}

// Answers 200 even when stalled. A supervisor may kill a server that fails this check, and slow
// work is no reason for that.
void Api::Health(const Work& work) const {
  if (draining_ || engine_.ranks_ended()) {
    work.served.status = 503;
    return RefuseForNow(work.reply, kEnding);
  }
  const std::string stall = StallReason();
  if (stall.empty()) return SendJson(work.reply, {{"status", "ok"}});
  SendJson(work.reply, {{"status", "stalled"}, {"message", stall}});
}

// Tells a load balancer whether the next request would be answered.
void Api::Ready(const Work& work) const {
  std::string why = StallReason();
  if (draining_ || engine_.ranks_ended()) {
    why = kEnding;
  } else if (!workers_.has_capacity()) {
    why = kTooMany;
  }
  if (why.empty()) return SendJson(work.reply, {{"status", "ready"}});
  work.served.status = 503;
  RefuseForNow(work.reply, why);
}

nlohmann::ordered_json Api::ModelJson() const {
  return {{"id", options_.model},
          {"object", "model"},
          {"created", started_},
          {"owned_by", "godwit"},
          {"meta",
           {{"n_vocab", engine_.vocab_size()},
            {"n_ctx_train", engine_.max_context()},
            {"size", engine_.weight_bytes()}}}};
}

void Api::Models(const Work& work) const {
  SendJson(work.reply, {{"object", "list"}, {"data", Json::array({ModelJson()})}});
}

void Api::OneModel(const Work& work) const {
  const std::string name = Unescaped(std::string_view(work.request.path).substr(kModels.size()));
  if (name == options_.model) return SendJson(work.reply, ModelJson());
  work.served.status = 404;
  work.reply.Send(
      404, kJson,
      ErrorBody(404, fmt::format("this server has another model: {}", Quote(options_.model)),
                "model_not_found"));
}

// Tells a client the server's properties and the limits of its requests.
void Api::Props(const Work& work) const {
  const GenerateOptions& generate = options_.defaults.generate;
  Json settings = chat::SamplerJson(generate.sampler);
  settings["max_tokens"] = generate.max_tokens;
  settings["timeout_ms"] = generate.timeout_ms;
  const auto choices = [](std::string_view is, std::vector<std::string> choices) {
    return Json{{"default", is}, {"choices", std::move(choices)}};
  };
  const ModelAbout& about = options_.about;
  Json model{{"family", about.family},       {"format", about.format},
             {"n_params", about.parameters}, {"n_vocab", engine_.vocab_size()},
             {"stored_as", about.stored_as}, {"loaded_as", about.loaded_as},
             {"kv_type", about.kv_type},     {"size", engine_.weight_bytes()}};
  SendJson(work.reply,
           {{"model", options_.model},
            {"model_info", std::move(model)},
            {"build_info", "godwit " GODWIT_VERSION},
            {"n_ctx", ContextOf(session_)},
            {"n_ctx_train", engine_.max_context()},
            {"total_slots", options_.parallel},
            {"chat_template", has_template_},
            {"default_generation_settings", std::move(settings)},
            {"kv", choices(options_.session.kv, options_.defaults.kv_choices)},
            {"prefill", choices(options_.session.prefill, options_.defaults.prefill_choices)},
            {"draft", choices(generate.draft, {"", "ngram"})}});
}

void Api::ShowSlots(const Work& work) const {
  SendJson(work.reply, slots_.Json(ContextOf(session_)));
}

void Api::ShowMetrics(const Work& work) const {
  const std::pair<std::string_view, int64_t> gauges[] = {
      {"requests_running", workers_.working()},
      {"requests_waiting", workers_.waiting()},
      {"kv_memory_bytes", engine_.kv_memory_bytes()},
      {"weight_bytes", engine_.weight_bytes()}};
  work.reply.Send(200, "text/plain; version=0.0.4", metrics_.Text(gauges), {});
}

void Api::Complete(const Work& work) const {
  const chat::CompletionRequest request = ReadBody(work, [&](const Json& body) {
    return chat::ParseCompletionRequest(body, options_.defaults);
  });
  if (request.is_chat() != (work.request.path == kChats)) {
    Throw(ErrorKind::kInput, "expected {} here", request.is_chat() ? "\"prompt\"" : "\"messages\"");
  }
  chat::TokenTexts texts(engine_);
  Answer(work, request,
         [&](const chat::CompletionName& name) { return CompletionShape(request, name, texts); });
}

void Api::Respond(const Work& work) const {
  const chat::ResponseRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParseResponseRequest(body, options_.defaults); });
  Answer(work, request.completion,
         [&](const chat::CompletionName& name) { return ResponseShape(request, name); });
}

void Api::Message(const Work& work) const {
  const chat::CompletionRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParseAnthropicRequest(body, options_.defaults); });
  Answer(work, request,
         [&](const chat::CompletionName& name) { return AnthropicShape(request, name); });
}

// Counts tokens also of a prompt that is too long.
void Api::CountTokens(const Work& work) const {
  const chat::CompletionRequest request = ReadBody(work, [&](const Json& body) {
    return chat::ParseAnthropicRequest(body, options_.defaults, /*for_count=*/true);
  });
  const auto tokens = engine_.Tokenize(Rendered(engine_, request), /*add_special=*/false);
  const auto sink = engine_.sink_token();
  const bool has_sink = sink && (tokens.empty() || tokens.front() != *sink);
  SendJson(work.reply, {{"input_tokens", std::ssize(tokens) + (has_sink ? 1 : 0)}});
}

void Api::FillIn(const Work& work) const {
  const chat::CompletionRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParseInfillRequest(body, options_.defaults); });
  Answer(work, request,
         [&](const chat::CompletionName& name) { return InfillShape(request, name); });
}

void Api::Answer(
    const Work& work, const chat::CompletionRequest& request,
    FunctionRef<std::unique_ptr<AnswerShape>(const chat::CompletionName&)> shape_of) const {
  const int64_t number = next_id_++;
  const chat::CompletionName name{.id = fmt::format("{:x}-{}", started_, number),
                                  .model = options_.model};
  const std::unique_ptr<AnswerShape> shape = shape_of(name);
  SessionOptions session = options_.session;
  session.owner = work.owner;
  Slots::Taken slot(slots_, number);
  work.served.completion = AnswerCompletion(
      {.engine = engine_,
       .session = session_,
       .options = session,
       .slot = slot,
       .message_for = [&](const Error& error) { return MessageFor(error, work.served); }},
      request, *shape, work.reply);
}

void Api::Tokenize(const Work& work) const {
  const auto [text, special] = ReadBody(work, [](const Json& body) {
    CheckFields(body, {"content", "add_special"});
    const Json add_special = body.value("add_special", Json(false));
    if (!body["content"].is_string() || !add_special.is_boolean()) {
      Throw(ErrorKind::kInput, "expected a text \"content\", and \"add_special\" true or false");
    }
    return std::pair(body["content"].get<std::string>(), add_special.get<bool>());
  });
  SendJson(work.reply, {{"tokens", engine_.Tokenize(text, special)}});
}

void Api::Detokenize(const Work& work) const {
  const auto tokens = ReadBody(work, [&](const Json& body) {
    CheckFields(body, {"tokens"});
    const Json& list = body["tokens"];
    const auto is_token = [&](const Json& token) {
      return token.is_number_unsigned() &&
             token.get<uint64_t>() < static_cast<uint64_t>(engine_.vocab_size());
    };
    if (!list.is_array() || !std::ranges::all_of(list, is_token)) {
      Throw(ErrorKind::kInput, "expected \"tokens\", a list of numbers below {}",
            engine_.vocab_size());
    }
    return list.get<std::vector<int32_t>>();
  });
  SendJson(work.reply, {{"content", engine_.Detokenize(tokens)}});
}

void Api::ApplyTemplate(const Work& work) const {
  const auto request = ReadBody(work, [&](const Json& body) {
    CheckFields(body, {"messages", "chat_template_kwargs", "tools", "tool_choice",
                       "reasoning_effort", "continue_final_message", "add_generation_prompt"});
    return chat::ParseCompletionRequest(body, options_.defaults);
  });
  SendJson(work.reply, {{"prompt", Rendered(engine_, request)}});
}

}  // namespace godwit::server
