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
#include "base/name_list.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "chat/answers.h"
#include "chat/anthropic_request.h"
#include "chat/completion_json.h"
#include "chat/continued_message.h"
#include "chat/infill_request.h"
#include "chat/plans.h"
#include "chat/result_json.h"
#include "godwit/version.h"
#include "server/api_parts.h"
#include "server/error_body.h"
#include "server/model_in_body.h"
#include "server/refusals.h"
#include "server/waiting_reply.h"

namespace godwit::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModels = "/v1/models/";  // and a name

// The most fields of a request, many times those that exist: finding one compares it with the
// others.
constexpr size_t kMaxFields = 1000;

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

// The part of a query "a=1&model=NAME" that names a model.
std::string ModelInQuery(std::string_view query) {
  constexpr std::string_view kName = "model=";
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    if (part.starts_with(kName)) return Unescaped(part.substr(kName.size()));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
  }
  return "";
}

// Parses a body. The values of a text take up to a hundred times its bytes meanwhile, so large
// bodies are parsed one at a time. A request whose client is gone stops waiting and parsing.
//
// work: an Api::Work.
auto ReadBody(const auto& work, const auto& read) {
  constexpr size_t kLargeBytes = size_t{1} << 20;
  static std::timed_mutex one_at_a_time;
  const CancelToken* const gone = &work.reply->gone();
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
  if (const auto model = body.find("model");
      model != body.end() && !model->is_null() && !model->is_string()) {
    Throw(ErrorKind::kInput, "\"model\": expected a text, the name of a model");
  }
}

int64_t WeightBytes(const ModelFacts& facts, const Models::Status& status) {
  return status.limits != nullptr ? status.limits->weight_bytes : facts.weight_bytes;
}

// The conversation's text as the model reads it.
std::string Rendered(const Engine& engine, const chat::CompletionRequest& request) {
  return chat::RenderOpen(engine, std::get<std::vector<Message>>(request.prompt), request.continues,
                          request.template_variables.dump(), request.tools.list.dump());
}

}  // namespace

void RefuseForNow(HttpReply& reply, std::string_view why) {
  reply.Send(503, kJson, ErrorBody(503, why), {&kLater, 1});
}

const Api::Route Api::kRoutes[] = {
    {"GET", "/health", &Api::Health, /*open=*/true, /*at_once=*/true},
    {"GET", "/ready", &Api::Ready, /*open=*/true, /*at_once=*/true},
    {"GET", "/v1/models", &Api::ListModels, /*open=*/false, /*at_once=*/true},
    {"GET", "/v1/models/{id}", &Api::OneModel, /*open=*/false, /*at_once=*/true},
    {"GET", "/props", &Api::Props, /*open=*/false, /*at_once=*/true},
    {"GET", "/slots", &Api::ShowSlots, /*open=*/false, /*at_once=*/true},
    {"GET", "/metrics", &Api::ShowMetrics, /*open=*/false, /*at_once=*/true},
    {"POST", kChats, &Api::Complete},
    {"POST", "/v1/completions", &Api::Complete},
    {"POST", "/v1/responses", &Api::Respond},
    {"POST", "/v1/messages", &Api::Message},
    {"POST", "/v1/messages/count_tokens", &Api::CountTokens},
    {"POST", "/v1/plan", &Api::MakePlan},
    {"POST", "/infill", &Api::FillIn},
    {"POST", "/tokenize", &Api::Tokenize},
    {"POST", "/detokenize", &Api::Detokenize},
    {"POST", "/apply-template", &Api::ApplyTemplate},
};

Api::Api(Models& models, ApiOptions options)
    : models_(models),
      options_(std::move(options)),
      started_(chat::UnixSeconds()),
      kept_({.grace_ms = options_.grace_ms}),
      choosers_(/*threads=*/1, /*max_waiting=*/1 << 20) {
  for (size_t i = 0; i < models.size(); ++i) {
    desks_.push_back(std::make_unique<Desk>(options_.parallel, options_.queue));
  }
}

// Null: no such route.
const Api::Route* Api::FindRoute(std::string_view path) {
  if (path.starts_with(kModels) && path.size() > kModels.size()) path = "/v1/models/{id}";
  const auto* const route = std::ranges::find(kRoutes, path, &Route::path);
  return route == std::end(kRoutes) ? FindAnswerRoute(path) : route;
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
  Asked asked{.request = std::make_shared<const HttpRequest>(std::move(request)),
              .reply = std::move(reply),
              .route = nullptr,
              .owner = {},
              .served = {.method = "?", .path = "?"}};
  const HttpRequest& wants = *asked.request;
  const Route* const route = FindRoute(wants.path);
  if (route == nullptr) {
    std::vector<Endpoint> endpoints{{"POST", kChats}};  // first, as the one that is asked most
    for (const Route& other : kRoutes) endpoints.push_back({other.method, other.path});
    AddAnswerEndpoints(endpoints);
    return Refuse(asked, 404, UnknownPathMessage(wants.path, endpoints));
  }
  asked.route = route;
  asked.served.path = route->path;
  if (route->method != wants.method && !(route->is_answer && wants.method == "DELETE")) {
    const std::pair<std::string_view, std::string_view> allow{
        "Allow", route->method == "POST" ? "POST"
                 : route->is_answer      ? "GET, HEAD, DELETE"
                                         : "GET, HEAD"};
    return Refuse(asked, 405, fmt::format("expected {}", route->method), {&allow, 1});
  }
  asked.served.method = route->is_answer ? wants.method : route->method;
  if (const auto why = WhyForeign(wants); !why.empty()) return Refuse(asked, 403, why);
  const std::string* const owner = KeyOf(wants);
  if (owner == nullptr && !route->open) {
    constexpr std::pair<std::string_view, std::string_view> kScheme{"WWW-Authenticate", "Bearer"};
    const bool has_key = !wants.authorization.empty() || !wants.api_key.empty();
    return Refuse(asked, 401,
                  has_key ? "the server does not know this key: expected Authorization: Bearer "
                            "KEY, or X-Api-Key: KEY"
                          : "a key is needed: Authorization: Bearer KEY, or X-Api-Key: KEY",
                  {&kScheme, 1}, has_key ? "invalid_api_key" : "");
  }
  if (owner != nullptr) asked.owner = *owner;
  if (route->is_answer) return HandleAnswer(std::move(asked));
  if (route->at_once) {
    const std::string name = ModelInQuery(wants.query);
    const auto model = models_.Find(name);
    return model ? Finish(std::move(asked), *model) : RefuseModel(asked, name);
  }
  if (draining_) return Refuse(asked, 503, kEnding, {&kLater, 1});
  if (wants.path == kResponses && wants.body.find("\"background\"") != wants.body.npos) {
    choosers_.Take([this, asked]() mutable { BeginInBackground(std::move(asked)); });
    return;
  }
  constexpr size_t kSmallBytes = 16 << 10;  // read within a fraction of a millisecond
  if (models_.size() == 1) return Enqueue(std::move(asked), 0);
  if (wants.body.size() <= kSmallBytes) return Choose(std::move(asked));
  choosers_.Take([this, asked]() mutable { Choose(std::move(asked)); });
}

void Api::Refuse(Asked& asked, int status, std::string_view message, Headers headers,
                 std::string_view code) {
  asked.reply->Send(status, kJson, ErrorBody(status, message, code, WordsOf(asked.request->path)),
                    headers);
  asked.served.status = status;
  asked.served.ms = asked.watch.ms();
  ReportServed(asked.served);
}

std::string Api::UnknownModel(std::string_view name) const {
  if (models_.size() == 1) {
    return fmt::format("this server has another model: {}", Quote(models_.facts(0).name));
  }
  constexpr int64_t kShown = 24;
  std::vector<std::string> names = models_.Names();
  for (std::string& known : names) known = Quote(known);
  return fmt::format("this server has no model {}: it has {}", Quote(name),
                     FirstNames(names, kShown));
}

void Api::RefuseModel(Asked& asked, std::string_view name) {
  Refuse(asked, 404, UnknownModel(name), {}, "model_not_found");
}

void Api::Choose(Asked asked) {
  std::string name;
  try {
    name = ModelInBody(asked.request->body, asked.reply->gone());
  } catch (const Error&) {  // the client is gone
    asked.served.gone = true;
    return ReportServed(asked.served);
  }
  const auto model = models_.Find(name);
  model ? Enqueue(std::move(asked), *model) : RefuseModel(asked, name);
}

void Api::Enqueue(Asked asked, size_t model) {
  if (models_.size() > 1) asked.served.model = models_.facts(model).name;
  const bool taken = desks_[model]->workers.Take(
      [this, asked, model]() mutable { Finish(std::move(asked), model); });
  if (!taken) Refuse(asked, 429, kTooMany, {&kLater, 1});
}

void Api::Finish(Asked asked, size_t model) {
  Run(asked, model);
  asked.served.ms = asked.watch.ms();
  asked.served.gone = asked.reply->gone().cancelled();
  asked.reply.reset();
  ReportServed(asked.served);
}

void Api::ReportServed(const ServedRequest& served) {
  metrics_.Add(served);
  if (options_.on_served) options_.on_served(served);
}

Models::Use Api::TakeModel(const HttpRequest& request, size_t model,
                           std::shared_ptr<HttpReply>& reply) const {
  if (models_.status(model).loaded != nullptr || !IsStreamed(request)) {
    return models_.Take(model, reply->gone());
  }
  const auto waiting = std::make_shared<WaitingReply>(reply, WordsOf(request.path));
  reply = waiting;
  const auto tell = [&](const std::string& comment) { waiting->Comment(comment); };
  return models_.Take(model, reply->gone(), TellOfLoading(options_.comment_ms, tell));
}

void Api::Run(Asked& asked, size_t model) const {
  const HttpRequest& request = *asked.request;
  std::shared_ptr<HttpReply> reply = asked.reply;
  ServedRequest& served = asked.served;
  const auto fail = [&](int status, const std::string& body) {
    served.status = status;
    reply->Send(status, kJson, body, {});
  };
  if (reply->gone().cancelled()) return;  // while the request waited
  served.status = 200;
  const ErrorWords words = WordsOf(request.path);
  const CancelScope scope(reply->gone());
  try {
    Work work{request, asked.owner, reply, served, model, /*loaded=*/nullptr};
    if (asked.route->at_once) return (this->*asked.route->answer)(work);
    const Models::Use use = TakeModel(request, model, reply);
    work.loaded = &*use;
    (this->*asked.route->answer)(work);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled && reply->gone().cancelled()) return;
    fail(StatusOf(error), ErrorBody(error, MessageFor(error, model, served), words));
  } catch (const std::bad_alloc&) {
    fail(503, ErrorBody(503, "out of memory", "", words));
  } catch (const std::exception&) {
    fail(500, ErrorBody(500, "the server failed to answer this request", "", words));
  }
}

chat::CompletionDefaults Api::DefaultsOf(size_t model) const {
  const auto limits = models_.status(model).limits;
  return limits == nullptr ? chat::CompletionDefaults() : limits->defaults;
}

std::string Api::MessageFor(const Error& error, size_t model, ServedRequest& served) const {
  const std::string message = WithAdvice(error, DefaultsOf(model));
  std::string told = WithoutFolders(error, message, models_.facts(model).place);
  if (told != message) served.error = message;
  return told;
}

void Api::Drain() {
  draining_ = true;
  choosers_.Wait();
  for (const auto& desk : desks_) desk->workers.Wait();
}

int64_t Api::CountOf(int64_t (Workers::*count)() const) const {
  int64_t sum = 0;
  for (const auto& desk : desks_) sum += (desk->workers.*count)();
  return sum;
}

// The reason why no request makes progress. Empty: requests do.
std::string Api::StallReason() const {
  if (models_.is_loading()) return "";
  for (const auto& desk : desks_) {
    const int64_t waiting = desk->workers.waiting();
    const double stalled_ms = std::min(desk->workers.stalled_ms(), desk->slots.stalled_ms());
    if (waiting == 0 || stalled_ms < options_.stall_ms) continue;
    return fmt::format(
        "the server is stuck: requests waiting {}, running {}, and none has made progress "
        "for {:.0f} s",
        waiting, desk->workers.working(), stalled_ms / 1000);
  }
  return "";
}

// Answers 200 even when stalled. A supervisor may kill a server that fails this check, and slow
// work is no reason for that.
void Api::Health(const Work& work) const {
  if (has_ended()) {
    work.served.status = 503;
    return RefuseForNow(*work.reply, kEnding);
  }
  const std::string stall = StallReason();
  if (stall.empty()) return SendJson(*work.reply, {{"status", "ok"}});
  SendJson(*work.reply, {{"status", "stalled"}, {"message", stall}});
}

bool Api::has_ended() const { return draining_ || models_.ranks_ended(); }

// Tells a load balancer whether the next request would be answered.
void Api::Ready(const Work& work) const {
  std::string why = StallReason();
  const auto is_full = [](const auto& desk) { return !desk->workers.has_capacity(); };
  if (has_ended()) {
    why = kEnding;
  } else if (std::ranges::all_of(desks_, is_full)) {
    why = kTooMany;
  }
  if (why.empty()) return SendJson(*work.reply, {{"status", "ready"}});
  work.served.status = 503;
  RefuseForNow(*work.reply, why);
}

nlohmann::ordered_json Api::ModelJson(size_t model) const {
  const ModelFacts& facts = models_.facts(model);
  const Models::Status status = models_.status(model);
  Json json{{"id", facts.name},
            {"object", "model"},
            {"created", started_},
            {"owned_by", "godwit"},
            {"meta",
             {{"n_vocab", facts.vocab_size},
              {"n_ctx_train", facts.max_context},
              {"size", WeightBytes(facts, status)}}}};
  if (models_.size() == 1) return json;
  json["status"]["value"] = status.state == Models::State::kLoaded    ? "loaded"
                            : status.state == Models::State::kLoading ? "loading"
                                                                      : "unloaded";
  if (status.state == Models::State::kLoading) json["status"]["progress"] = status.progress;
  return json;
}

void Api::ListModels(const Work& work) const {
  Json list = Json::array();
  for (size_t i = 0; i < models_.size(); ++i) list.push_back(ModelJson(i));
  SendJson(*work.reply, {{"object", "list"}, {"data", std::move(list)}});
}

void Api::OneModel(const Work& work) const {
  const std::string name = Unescaped(std::string_view(work.request.path).substr(kModels.size()));
  for (size_t i = 0; i < models_.size(); ++i) {
    if (name == models_.facts(i).name) return SendJson(*work.reply, ModelJson(i));
  }
  work.served.status = 404;
  work.reply->Send(404, kJson, ErrorBody(404, UnknownModel(name), "model_not_found"));
}

// Tells a client the server's properties and the limits of its requests. A model that was never
// loaded has no limits yet.
void Api::Props(const Work& work) const {
  const ModelFacts& facts = models_.facts(work.model);
  const Models::Status status = models_.status(work.model);
  const ModelAbout& about = facts.about;
  const auto choices = [](std::string_view is, std::vector<std::string> choices) {
    return Json{{"default", is}, {"choices", std::move(choices)}};
  };
  Json props{{"model", facts.name}};
  if (models_.size() > 1) {
    props["models"] = models_.Names();
    props["loaded"] = status.state == Models::State::kLoaded;
  }
  props["model_info"] = {{"family", about.family},       {"format", about.format},
                         {"n_params", about.parameters}, {"n_vocab", facts.vocab_size},
                         {"stored_as", about.stored_as}, {"loaded_as", about.loaded_as},
                         {"kv_type", about.kv_type},     {"size", WeightBytes(facts, status)}};
  props["build_info"] = "godwit " GODWIT_VERSION;
  if (status.limits != nullptr) props["n_ctx"] = status.limits->context;
  props["n_ctx_train"] = facts.max_context;
  props["total_slots"] = options_.parallel;
  if (status.limits != nullptr) {
    const ModelLimits& limits = *status.limits;
    const GenerateOptions& generate = limits.defaults.generate;
    Json settings = chat::SamplerJson(generate.sampler);
    settings["max_tokens"] = generate.max_tokens;
    settings["timeout_ms"] = generate.timeout_ms;
    props["chat_template"] = limits.has_template;
    props["default_generation_settings"] = std::move(settings);
    props["kv"] = choices(options_.session.kv, limits.defaults.kv_choices);
    props["prefill"] = choices(options_.session.prefill, limits.defaults.prefill_choices);
    props["draft"] = choices(generate.draft, {"", "ngram"});
  }
  SendJson(*work.reply, props);
}

void Api::ShowSlots(const Work& work) const {
  Json all = Json::array();
  for (size_t i = 0; i < models_.size(); ++i) {
    const auto limits = models_.status(i).limits;
    for (Json& slot : desks_[i]->slots.Json(limits == nullptr ? 0 : limits->context)) {
      slot["id"] = all.size();
      if (models_.size() > 1) slot["model"] = models_.facts(i).name;
      all.push_back(std::move(slot));
    }
  }
  SendJson(*work.reply, all);
}

void Api::ShowMetrics(const Work& work) const {
  int64_t kv_memory_bytes = 0, weight_bytes = 0;
  LabelledGauge is_loaded{"model_loaded", "whether the model is in memory", {}};
  LabelledGauge loads{"model_loads", "times that the model was loaded", {}};
  for (size_t i = 0; i < models_.size(); ++i) {
    const Models::Status status = models_.status(i);
    const std::string& name = models_.facts(i).name;
    is_loaded.values.emplace_back(name, status.loaded != nullptr ? 1 : 0);
    loads.values.emplace_back(name, status.loads);
    if (status.loaded == nullptr) continue;
    kv_memory_bytes = status.loaded->engine->kv_memory_bytes();  // of all models together
    weight_bytes += status.loaded->engine->weight_bytes();
  }
  const std::pair<std::string_view, int64_t> gauges[] = {
      {"requests_running", CountOf(&Workers::working)},
      {"requests_waiting", CountOf(&Workers::waiting)},
      {"kv_memory_bytes", kv_memory_bytes},
      {"weight_bytes", weight_bytes}};
  std::string text = metrics_.Text(gauges);
  if (models_.size() > 1) text += is_loaded.Text("model") + loads.Text("model");
  work.reply->Send(200, "text/plain; version=0.0.4", text, {});
}

void Api::Complete(const Work& work) const {
  chat::CompletionRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParseCompletionRequest(body, work.defaults()); });
  if (request.is_chat() != (work.request.path == kChats)) {
    Throw(ErrorKind::kInput, "expected {} here", request.is_chat() ? "\"prompt\"" : "\"messages\"");
  }
  chat::TokenTexts texts(work.engine());
  Answer(work, request,
         [&](const chat::CompletionName& name) { return CompletionShape(request, name, texts); });
}

void Api::Respond(const Work& work) const {
  chat::ResponseRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParseResponseRequest(body, work.defaults()); });
  Answer(work, request.completion,
         [&](const chat::CompletionName& name) { return ResponseShape(request, name); });
}

void Api::Message(const Work& work) const {
  chat::CompletionRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParseAnthropicRequest(body, work.defaults()); });
  Answer(work, request,
         [&](const chat::CompletionName& name) { return AnthropicShape(request, name); });
}

// Counts tokens also of a prompt that is too long.
void Api::CountTokens(const Work& work) const {
  const chat::CompletionRequest request = ReadBody(work, [&](const Json& body) {
    return chat::ParseAnthropicRequest(body, work.defaults(), /*for_count=*/true);
  });
  const auto tokens =
      work.engine().Tokenize(Rendered(work.engine(), request), /*add_special=*/false);
  const auto sink = work.engine().sink_token();
  const bool has_sink = sink && (tokens.empty() || tokens.front() != *sink);
  SendJson(*work.reply, {{"input_tokens", std::ssize(tokens) + (has_sink ? 1 : 0)}});
}

// Tells what a request would take in each way that it leaves open, and with draft tokens.
void Api::MakePlan(const Work& work) const {
  const chat::CompletionRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParsePlanRequest(body, work.defaults()); });
  SessionOptions session = options_.session;
  session.owner = work.owner;
  auto ways = chat::OpenWays(request, session, work.defaults());
  if (request.generate.draft.empty()) {
    ways.push_back(ways.front());
    ways.back().draft = "ngram";
  }
  const auto plans =
      chat::PlansOf(work.engine(), work.loaded->session, session, request, ways,
                    [&](const Error& error) { return MessageFor(error, work.model, work.served); });
  SendJson(*work.reply, chat::PlansJson(plans, request.first_token_within_s));
}

// A server without keys has one owner of all texts, and words of one client would reach another.
void Api::RequireOwnTexts() const {
  if (options_.local || !options_.keys.empty()) return;
  Throw(ErrorKind::kInput,
        "\"explain_cache\" shows words of cached texts, so it needs keys (--api-key-file) where "
        "other machines reach the server");
}

void Api::FillIn(const Work& work) const {
  chat::CompletionRequest request = ReadBody(
      work, [&](const Json& body) { return chat::ParseInfillRequest(body, work.defaults()); });
  Answer(work, request,
         [&](const chat::CompletionName& name) { return InfillShape(request, name); });
}

void Api::Tokenize(const Work& work) const {
  const auto [text, special] = ReadBody(work, [](const Json& body) {
    CheckFields(body, {"content", "add_special", "model"});
    const Json add_special = body.value("add_special", Json(false));
    if (!body["content"].is_string() || !add_special.is_boolean()) {
      Throw(ErrorKind::kInput, "expected a text \"content\", and \"add_special\" true or false");
    }
    return std::pair(body["content"].get<std::string>(), add_special.get<bool>());
  });
  SendJson(*work.reply, {{"tokens", work.engine().Tokenize(text, special)}});
}

void Api::Detokenize(const Work& work) const {
  const auto tokens = ReadBody(work, [&](const Json& body) {
    CheckFields(body, {"tokens", "model"});
    const Json& list = body["tokens"];
    const auto is_token = [&](const Json& token) {
      return token.is_number_unsigned() &&
             token.get<uint64_t>() < static_cast<uint64_t>(work.engine().vocab_size());
    };
    if (!list.is_array() || !std::ranges::all_of(list, is_token)) {
      Throw(ErrorKind::kInput, "expected \"tokens\", a list of numbers below {}",
            work.engine().vocab_size());
    }
    return list.get<std::vector<int32_t>>();
  });
  SendJson(*work.reply, {{"content", work.engine().Detokenize(tokens)}});
}

void Api::ApplyTemplate(const Work& work) const {
  const auto request = ReadBody(work, [&](const Json& body) {
    CheckFields(body,
                {"messages", "chat_template_kwargs", "tools", "tool_choice", "reasoning_effort",
                 "continue_final_message", "add_generation_prompt", "model"});
    return chat::ParseCompletionRequest(body, work.defaults());
  });
  SendJson(*work.reply, {{"prompt", Rendered(work.engine(), request)}});
}

}  // namespace godwit::server
