// Answers by their ids: those that are being written, those that have ended lately, and those that
// an earlier process has written down.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/cancel.h"
#include "base/error.h"
#include "base/quote.h"
#include "chat/plans.h"
#include "chat/response_json.h"
#include "server/answer_shape.h"
#include "server/api.h"
#include "server/api_parts.h"
#include "server/error_body.h"

namespace godwit::server {
namespace {

using Json = nlohmann::ordered_json;

// Paths of requests whose answers come in events, with the beginning of their ids.
struct AnswerPath {
  std::string_view path, prefix;
};
constexpr AnswerPath kPaths[] = {{kChats, "chatcmpl-"},
                                 {"/v1/completions", "cmpl-"},
                                 {kResponses, "resp_"},
                                 {"/v1/messages", "msg_"},
                                 {"/infill", "infill-"}};
constexpr std::string_view kCancel = "/cancel";

// An answer in a path: "/v1/responses/resp_0123/cancel".
struct NamedAnswer {
  const AnswerPath* kind = nullptr;  // null: the path names none
  std::string name;
  bool cancels = false;
};

NamedAnswer NamedIn(std::string_view path) {
  for (const AnswerPath& kind : kPaths) {
    if (!path.starts_with(kind.path) || path.size() <= kind.path.size() + 1 ||
        path[kind.path.size()] != '/') {
      continue;
    }
    std::string_view id = path.substr(kind.path.size() + 1);
    const bool cancels = id.ends_with(kCancel);
    if (cancels) id.remove_suffix(kCancel.size());
    if (id.find('/') != id.npos) continue;
    if (!id.starts_with(kind.prefix)) continue;
    return {.kind = &kind, .name = std::string(id.substr(kind.prefix.size())), .cancels = cancels};
  }
  return {};
}

std::string_view PrefixOf(std::string_view path) {
  return std::ranges::find(kPaths, path, &AnswerPath::path)->prefix;
}

// A name that nobody guesses: without keys, it is all that protects an answer from other clients.
std::string NewName() {
  std::random_device random;
  std::string name;
  for (int i = 0; i < 4; ++i) name += fmt::format("{:08x}", random());
  return name;
}

// The value of a name in "a=1&b=2"; empty: it is missing.
std::string_view ValueIn(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    if (part.starts_with(name) && part.substr(name.size()).starts_with('=')) {
      return part.substr(name.size() + 1);
    }
    query.remove_prefix(std::min(query.size(), part.size() + 1));
  }
  return "";
}

// Takes what an earlier process has found for the answer.
void TakeBegun(const JournaledAnswer::Begun& begun, chat::CompletionRequest& request) {
  request.generate.sampler.seed = begun.seed;
  if (begun.kv) request.kv = begun.kv;
  if (begun.prefill) request.prefill = begun.prefill;
  request.more_usage = Json::parse(begun.more_usage);
  if (!request.more_usage.empty()) request.include_usage = request.stream;
}

// A reply that nobody reads.
class NoReply : public HttpReply {
 public:
  explicit NoReply(std::shared_ptr<KeptAnswer> kept) : kept_(std::move(kept)) {}
  void Send(int /*status*/, std::string_view /*type*/, std::string_view /*body*/,
            Headers /*headers*/) override {}
  void Begin(std::string_view /*content_type*/) override {}
  void Write(std::string_view /*piece*/) override {}
  void End() override {}
  const CancelToken& gone() const override { return kept_->cancel(); }

 private:
  std::shared_ptr<KeptAnswer> kept_;
};

// The body of an answer of /v1/responses that failed before it began.
std::string FailedBody(const KeptAnswer& kept, std::string_view message) {
  return DumpJson(Json{{"id", kept.about().id},
                       {"object", "response"},
                       {"status", "failed"},
                       {"error", {{"code", "server_error"}, {"message", message}}},
                       {"output", Json::array()}});
}

}  // namespace

std::function<void(double progress)> TellOfLoading(
    double every_ms, std::function<void(const std::string& comment)> tell) {
  return [every_ms, tell = std::move(tell), told = Stopwatch()](double progress) mutable {
    if (told.ms() < every_ms) return;
    told = Stopwatch();
    tell(fmt::format("loading the model, {:.0f} %", 100 * progress));
  };
}

bool IsStreamed(const HttpRequest& request) {
  const bool may_stream = std::ranges::find(kPaths, std::string_view(request.path),
                                            &AnswerPath::path) != std::end(kPaths);
  if (request.method != "POST" || !may_stream) return false;
  try {
    const Json body = ParseOrderedJson(request.body, "the body",
                                       {.max_values = kMaxValues, .quote_input = false});
    return body.is_object() && body.value("stream", Json()) == true;
  } catch (const Error&) {  // a worker tells the reason
    return false;
  }
}

const Api::Route Api::kAnswerRoutes[] = {
    {"GET", "/v1/chat/completions/{id}", nullptr, false, false, /*is_answer=*/true},
    {"GET", "/v1/completions/{id}", nullptr, false, false, /*is_answer=*/true},
    {"GET", "/v1/responses/{id}", nullptr, false, false, /*is_answer=*/true},
    {"GET", "/v1/messages/{id}", nullptr, false, false, /*is_answer=*/true},
    {"GET", "/infill/{id}", nullptr, false, false, /*is_answer=*/true},
    {"POST", "/v1/chat/completions/{id}/cancel", nullptr, false, false, /*is_answer=*/true},
    {"POST", "/v1/completions/{id}/cancel", nullptr, false, false, /*is_answer=*/true},
    {"POST", "/v1/responses/{id}/cancel", nullptr, false, false, /*is_answer=*/true},
    {"POST", "/v1/messages/{id}/cancel", nullptr, false, false, /*is_answer=*/true},
    {"POST", "/infill/{id}/cancel", nullptr, false, false, /*is_answer=*/true},
};

// Null: the path names no answer.
const Api::Route* Api::FindAnswerRoute(std::string_view path) {
  const NamedAnswer named = NamedIn(path);
  if (named.kind == nullptr) return nullptr;
  const std::string pattern =
      fmt::format("{}/{{id}}{}", named.kind->path, named.cancels ? kCancel : "");
  return std::ranges::find(kAnswerRoutes, std::string_view(pattern), &Route::path);
}

void Api::AddAnswerEndpoints(std::vector<Endpoint>& endpoints) {
  for (const Route& route : kAnswerRoutes) endpoints.push_back({route.method, route.path});
}

std::shared_ptr<KeptAnswer> Api::KeepAnswer(const chat::CompletionName& name,
                                            const std::string& path, const std::string& owner,
                                            int texts, bool background, bool* is_new) const {
  auto [kept, made] = kept_.FindOrBegin(
      {.id = std::string(PrefixOf(path)) + name.id,
       .name = name.id,
       .owner = owner,
       .path = path,
       .texts = texts,
       .has_body = path == kResponses,
       .background = background,
       .keeps = background || options_.grace_ms > 0 || options_.journal != nullptr});
  *is_new = made;
  return kept;
}

void Api::RefuseAnswer(Asked& asked) {
  Refuse(asked, 404,
         "the server has no such answer: it keeps answers in the background, and with --journal "
         "or --grace answers in events, for a while");
}

void Api::HandleAnswer(Asked asked) {
  const NamedAnswer named = NamedIn(asked.request->path);
  const auto kept = kept_.Find(named.name);
  if (kept != nullptr) {
    const bool is_theirs =
        kept->about().owner == asked.owner && kept->about().path == named.kind->path;
    return is_theirs ? TellAnswer(asked, kept) : RefuseAnswer(asked);
  }
  if (options_.journal == nullptr || !journal::Folder::IsName(named.name)) {
    return RefuseAnswer(asked);
  }
  if (draining_) return Refuse(asked, 503, kEnding, {&kLater, 1});
  choosers_.Take(
      [this, asked, name = named.name]() mutable { FindInJournal(std::move(asked), name); });
}

void Api::FindInJournal(Asked asked, const std::string& name) {
  auto answer = ReadAnswer(*options_.journal, name);
  if (!answer || answer->owner != DigestOf(asked.owner) ||
      answer->path != NamedIn(asked.request->path).kind->path) {
    return RefuseAnswer(asked);
  }
  if (asked.request->method == "DELETE") return RemoveAnswer(asked, name);
  const auto names = models_.Names();
  const auto model = std::ranges::find(names, answer->name.model);
  if (model == names.end()) {
    return Refuse(asked, 409,
                  fmt::format("this answer was begun by the model {}, which the server does not "
                              "have",
                              Quote(answer->name.model)));
  }
  bool is_new = false;
  const auto kept = KeepAnswer(answer->name, answer->path, asked.owner, answer->texts,
                               answer->background, &is_new);
  if (!is_new) return TellAnswer(asked, kept);
  kept->Touch();  // a reader without success is one that has gone
  if (answer->end) kept->SetBody(ResponseIn(*answer->end));
  auto task = std::make_shared<Task>();
  task->kept = kept;
  task->answer = std::move(*answer);
  task->goes_on = true;
  TellAnswer(asked, kept);
  if (EnqueueTask(task, static_cast<size_t>(model - names.begin()))) return;
  kept->Refuse(429, ErrorBody(429, kTooMany));
  kept_.Remove(name);
}

// Tells a client of an answer in memory.
void Api::TellAnswer(Asked& asked, const std::shared_ptr<KeptAnswer>& kept) {
  const HttpRequest& wants = *asked.request;
  const auto done = [&] {
    asked.served.status = 200;
    asked.served.ms = asked.watch.ms();
    ReportServed(asked.served);
  };
  const auto body = [&] {
    Json json{{"id", kept->about().id}, {"status", kept->ended() ? "completed" : "in_progress"}};
    const Json told = Json::parse(kept->body(), nullptr, /*allow_exceptions=*/false);
    return told.is_object() ? told : json;
  };
  if (wants.method == "DELETE") return RemoveAnswer(asked, kept->about().name);
  if (wants.method == "POST") {
    Json json = body();
    if (!kept->ended()) json["status"] = "cancelled";
    kept->Cancel();
    SendJson(*asked.reply, json);
    return done();
  }
  const bool streams = kept->about().path != kResponses || !wants.last_event_id.empty() ||
                       ValueIn(wants.query, "stream") == "true";
  if (!streams) {
    kept->Touch();
    SendJson(*asked.reply, body());
    return done();
  }
  EventCounts has;
  std::string_view position = ValueIn(wants.query, "starting_after");
  if (!wants.last_event_id.empty()) {
    const std::string_view id = wants.last_event_id;
    const size_t colon = id.rfind(':');
    position = colon == id.npos ? "-" : id.substr(colon + 1);
    if (id.substr(0, colon) != kept->about().id) position = "-";
  }
  if (!position.empty()) {
    const auto counts = kept->CountsOf(position);
    if (!counts) {
      return Refuse(asked, 400,
                    "expected the id of an event of this answer in Last-Event-ID, or its number in "
                    "\"starting_after\"");
    }
    has = *counts;
  }
  if (!kept->keeps()) return RefuseAnswer(asked);
  kept->Attach(asked.reply, std::move(has));
  done();
}

void Api::RemoveAnswer(Asked& asked, const std::string& name) {
  if (const auto kept = kept_.Find(name)) kept->Cancel();
  kept_.Remove(name);
  if (options_.journal != nullptr) options_.journal->Remove(name);
  const NamedAnswer named = NamedIn(asked.request->path);
  SendJson(*asked.reply, {{"id", std::string(named.kind->prefix) + name},
                          {"object", named.kind->path == kResponses ? "response" : "answer"},
                          {"deleted", true}});
  asked.served.status = 200;
  asked.served.ms = asked.watch.ms();
  ReportServed(asked.served);
}

void Api::BeginInBackground(Asked asked) {
  const HttpRequest& wants = *asked.request;
  Json body;
  try {
    body = ParseOrderedJson(wants.body, "the body",
                            {.reject_duplicate_keys = true,
                             .max_values = kMaxValues,
                             .quote_input = false,
                             .cancel = &asked.reply->gone()});
  } catch (const Error&) {
    return Choose(std::move(asked));  // a worker tells the reason
  }
  const Json wanted = body.is_object() ? body.value("background", Json()) : Json();
  const Json named = body.is_object() ? body.value("model", Json("")) : Json();
  if (wanted != true || !(named.is_string() || named.is_null())) return Choose(std::move(asked));
  const std::string model_name = named.is_string() ? named.get<std::string>() : "";
  const auto model = models_.Find(model_name);
  if (!model) return RefuseModel(asked, model_name);
  auto task = std::make_shared<Task>();
  chat::ResponseRequest request;
  try {
    request = chat::ParseResponseRequest(body, DefaultsOf(*model));
  } catch (const Error& error) {
    return Refuse(asked, StatusOf(error), MessageFor(error, *model, asked.served));
  }
  JournaledAnswer& answer = task->answer;
  answer.name = {.id = NewName(), .model = models_.facts(*model).name};
  answer.name.calls = answer.name.id;
  answer.path = wants.path;
  answer.body = wants.body;
  answer.owner = DigestOf(asked.owner);
  answer.background = true;
  bool is_new = false;
  task->kept = KeepAnswer(answer.name, answer.path, asked.owner, /*texts=*/1,
                          /*background=*/true, &is_new);
  task->journal = std::make_unique<AnswerJournal>(options_.journal, answer);
  Json queued = chat::ResponseEvents(request, answer.name).First()[0]["response"];
  queued["status"] = "queued";
  task->kept->SetBody(DumpJson(queued));
  task->journal->WaitForDisk();
  if (request.completion.stream) task->kept->Attach(asked.reply);
  const auto kept = task->kept;
  if (!EnqueueTask(task, *model)) {
    kept_.Remove(answer.name.id);
    task->journal->Remove();
    if (!request.completion.stream) return Refuse(asked, 429, kTooMany, {&kLater, 1});
    return kept->Refuse(429, ErrorBody(429, kTooMany));
  }
  if (!request.completion.stream) SendJson(*asked.reply, queued);
  asked.served.status = 200;
  asked.served.ms = asked.watch.ms();
  ReportServed(asked.served);
}

void Api::GoOnInBackground() {
  if (options_.journal == nullptr) return;
  const auto names = models_.Names();
  for (const std::string& name : options_.journal->Unfinished()) {
    auto answer = ReadAnswer(*options_.journal, name);
    if (!answer || !answer->background || answer->end) continue;
    const auto model = std::ranges::find(names, answer->name.model);
    if (model == names.end()) continue;
    // The owner is known by the digest alone.
    std::string owner;
    for (const std::string& key : options_.keys) {
      if (DigestOf(key) == answer->owner) owner = key;
    }
    if (DigestOf(owner) != answer->owner) continue;
    bool is_new = false;
    const auto kept = KeepAnswer(answer->name, answer->path, owner, /*texts=*/1,
                                 /*background=*/true, &is_new);
    if (!is_new) continue;
    auto task = std::make_shared<Task>();
    task->kept = kept;
    task->answer = std::move(*answer);
    task->goes_on = true;
    if (!EnqueueTask(task, static_cast<size_t>(model - names.begin()))) kept_.Remove(name);
  }
}

bool Api::EnqueueTask(std::shared_ptr<Task> task, size_t model) {
  return desks_[model]->workers.Take(
      [this, task = std::move(task), model] { RunTask(*task, model); });
}

void Api::RunTask(Task& task, size_t model) {
  const KeptAnswer& kept = *task.kept;
  const std::shared_ptr<HttpReply> reply = std::make_shared<NoReply>(task.kept);
  const HttpRequest request{.method = "POST", .path = task.answer.path, .body = task.answer.body};
  ServedRequest served{.method = "POST", .path = task.answer.path, .status = 200};
  if (models_.size() > 1) served.model = models_.facts(model).name;
  const Stopwatch watch;
  const auto fail = [&](int status, const std::string& message) {
    served.status = status;
    if (task.answer.path == kResponses) task.kept->SetBody(FailedBody(kept, message));
    task.kept->Refuse(status, ErrorBody(status, message));
    // An answer that goes on later stays written down.
    if (!task.answer.background || task.goes_on) kept_.Remove(kept.about().name);
    if (task.journal != nullptr) task.journal->Remove();
  };
  const CancelScope scope(reply->gone());
  try {
    Work work{request, kept.about().owner, reply, served, model, /*loaded=*/nullptr, &task};
    const auto tell = [&](const std::string& comment) { task.kept->Tell(": " + comment + "\n\n"); };
    const Models::Use use =
        models_.Take(model, reply->gone(), TellOfLoading(options_.comment_ms, tell));
    work.loaded = &*use;
    (this->*FindRoute(request.path)->answer)(work);
  } catch (const AnswerDiffers& error) {
    fail(409, error.what());
  } catch (const Error& error) {
    const bool cancelled = error.kind() == ErrorKind::kCancelled && kept.cancel().cancelled();
    if (!cancelled || !EndUnbegun(task, model)) {
      fail(StatusOf(error), MessageFor(error, model, served));
    }
  } catch (const std::bad_alloc&) {
    fail(503, "out of memory");
  } catch (const std::exception&) {
    fail(500, "the server failed to answer this request");
  }
  kept_.Tidy();
  served.ms = watch.ms();
  ReportServed(served);
}

bool Api::EndUnbegun(Task& task, size_t model) const {
  if (task.goes_on || task.answer.path != kResponses) return false;
  chat::ResponseRequest request;
  try {
    request = chat::ParseResponseRequest(ParseOrderedJson(task.answer.body, "the body"),
                                         DefaultsOf(model));
  } catch (const Error&) {  // the model would refuse it
    return false;
  }
  const auto shape = ResponseShape(request, task.answer.name);
  shape->Begin({});
  GenerateResult nothing;
  nothing.finish_reason = FinishReason::kCancelled;
  const std::string first = shape->First(), last = shape->Last({&nothing, 1});
  if (task.journal != nullptr) task.journal->End(last);
  PutEvents(*task.kept, /*lane=*/0, first + last);
  task.kept->End();
  return true;
}

// Chooses how the request is answered, and adds to its usage. False: no way keeps its time, and the
// reply says so.
bool Api::PrepareAnswer(const Work& work, const SessionOptions& session,
                        const chat::MessageFor& message_for,
                        chat::CompletionRequest& request) const {
  if (request.explain_cache) RequireOwnTexts();
  try {
    chat::PrepareRequest(work.engine(), work.loaded->session, session, work.defaults(), message_for,
                         request);
    return true;
  } catch (const chat::LateFirstToken& late) {
    if (work.task != nullptr) throw;  // its reply goes to nobody
    work.served.status = 400;
    const ErrorWords words = WordsOf(work.request.path);
    Json body = ErrorJson(400, late.what(), "first_token_too_late", words);
    body["error"]["plan"] = late.plans();
    work.reply->Send(400, kJson, DumpJson(body));
    return false;
  }
}

void Api::Answer(
    const Work& work, chat::CompletionRequest& request,
    FunctionRef<std::unique_ptr<AnswerShape>(const chat::CompletionName&)> shape_of) const {
  Task* const task = work.task;
  SessionOptions session = options_.session;
  session.owner = work.owner;
  const auto message_for = [&](const Error& error) {
    return MessageFor(error, work.model, work.served);
  };
  if (task != nullptr && task->answer.begun) {
    TakeBegun(*task->answer.begun, request);
  } else if (!PrepareAnswer(work, session, message_for, request)) {
    return;
  }
  const int64_t number = next_id_++;
  chat::CompletionName name;
  if (task != nullptr) {
    name = task->answer.name;
  } else {
    name = {.id = NewName(), .model = models_.facts(work.model).name};
    name.calls = name.id;
  }
  const std::unique_ptr<AnswerShape> shape = shape_of(name);
  std::shared_ptr<KeptAnswer> kept = task != nullptr ? task->kept : nullptr;
  std::unique_ptr<AnswerJournal> journal;
  if (task != nullptr) {
    journal = task->goes_on ? std::make_unique<AnswerJournal>(*options_.journal, task->answer,
                                                              task->answer.records)
                            : std::move(task->journal);
  } else if (request.stream) {
    bool is_new = false;
    kept = KeepAnswer(name, work.request.path, work.owner, request.answers(),
                      /*background=*/false, &is_new);
    kept->Attach(work.reply);
    journal = std::make_unique<AnswerJournal>(options_.journal,
                                              JournaledAnswer{.name = name,
                                                              .path = work.request.path,
                                                              .body = work.request.body,
                                                              .owner = DigestOf(work.owner),
                                                              .texts = request.answers()});
  }
  Slots::Taken slot(desks_[work.model]->slots, number);
  try {
    work.served.completion =
        AnswerCompletion({.engine = work.engine(),
                          .session = work.loaded->session,
                          .options = session,
                          .slot = slot,
                          .message_for = message_for,
                          .kept = kept.get(),
                          .journal = options_.journal == nullptr ? nullptr : journal.get(),
                          .before = task != nullptr && task->goes_on ? &task->answer : nullptr},
                         request, *shape, *work.reply);
  } catch (...) {
    if (task == nullptr && kept != nullptr) {
      kept->Drop();
      kept_.Remove(name.id);
      journal->Remove();
    }
    throw;
  }
  if (kept == nullptr) return;
  if (kept->is_lost()) {
    journal->WaitForDisk();
    kept_.Remove(name.id);
  }
  if (task == nullptr) kept_.Tidy();
}

}  // namespace godwit::server
