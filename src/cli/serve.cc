// godwit serve: answers requests over HTTP.

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/options/completion_defaults.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/served_models.h"
#include "console/exit_code.h"
#include "console/options/parse_value.h"
#include "console/terminal/format.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/output.h"
#include "dist/mpi.h"
#include "engine/prompt_share.h"
#include "journal/folder.h"
#include "server/api.h"
#include "server/http_server.h"
#include "server/loading.h"
#include "server/models.h"
#include "server/page.h"

namespace godwit::cli {
namespace {

struct ServeOptions {
  ModelOptions model;
  ServedModelFlags models;
  server::HttpOptions http;
  std::string keys_file;
  int64_t parallel = 0;  // 0: as memory allows
  int64_t queue = 64;
  bool log_json = false;
  std::string journal;  // a folder; empty: none
  journal::FolderLimits journal_limits;
  int64_t grace_s = -1;  // -1: by --journal
  CompletionFlags completion;
};

constexpr int64_t kGraceOfJournal = 60;

void ParseServe(std::span<const std::string> arguments, ServeOptions& options) {
  options.model.prompt_slowdown = 2;
  console::CommandLine line(
      "serve", "[-m MODEL ...] [--host ADDRESS] [--port N] [flags]",
      "Answers HTTP requests. Paths of OpenAI's API: /v1/chat/completions, /v1/completions, "
      "/v1/responses, /v1/models; of Anthropic's API: /v1/messages; others: /infill, /tokenize, "
      "/detokenize, /apply-template, /health and /ready, and / is a page to chat in a browser. "
      "Flags set the defaults of requests. Ctrl-C or SIGTERM ends the server after running "
      "requests have finished; a second one ends it at once.");
  AddModelsFlag(line, options.models);
  AddLoadedFlag(line, options.models);
  AddComputeFlags(line, options.model);
  line.Group("Requests");
  line.Add({.names = "--host",
            .value = "ADDRESS",
            .help = "the address to listen on; 0.0.0.0 or :: also lets other machines connect",
            .fallback = options.http.host},
           [&options](const std::string& address) {
             server::CheckAddress(address);
             options.http.host = address;
           });
  line.AddInt({.names = "--port", .value = "N", .help = "the port to listen on (0: any free port)"},
              options.http.port, 0, 65535);
  line.Add(
      {.names = "--api-key-file",
       .value = "FILE",
       .help = "a file of keys, one on each line; every request must send one of them "
               "(Authorization: Bearer KEY). Only requests with the same key share cached text",
       .fallback = "no key: everybody who reaches the address may send requests"},
      options.keys_file);
  line.AddInt(
      {.names = "-np,--parallel",
       .value = "N",
       .help = "the most requests that run at a time; a request waits while memory is short",
       .fallback = "the number of texts of 4096 tokens that memory holds, up to 32",
       .is_verbs_own = true},
      options.parallel, 1, 1024);
  line.AddInt({.names = "--queue",
               .value = "N",
               .help = "the most requests that wait; further ones get status 429"},
              options.queue, 0, 1 << 20);
  line.Add({.names = "--log-json", .value = "", .help = "log each request as a line of JSON"},
           options.log_json);
  line.AddInt({.names = "--grace",
               .value = "SECONDS",
               .help = "let a streamed answer go on for so long after its client has gone; the "
                       "client may come back for the rest (Last-Event-ID)",
               .fallback = "0; 60 with --journal",
               .is_verbs_own = true},
              options.grace_s, 0, 1 << 24);
  line.Add({.names = "--journal",
            .value = "FOLDER",
            .help = "write streamed answers and those in the background down, so that they go on "
                    "after the server was killed. The folder holds texts of requests and answers "
                    "and is for this user alone (mode 700)",
            .fallback = "nothing is written down"},
           options.journal);
  line.Add({.names = "--journal-size",
            .value = "BYTES",
            .help = "the limit of disk space for the journal; the oldest answers go first",
            .fallback = "1G"},
           [&options](const std::string& value) {
             options.journal_limits.bytes = console::ParseBytes(value);
           });
  line.Add({.names = "--journal-hours",
            .value = "N",
            .help = "the time after which an answer is removed from the journal",
            .fallback = "24"},
           [&options](const std::string& value) {
             constexpr double kSecondsOfHour = 3600;
             options.journal_limits.age_s = kSecondsOfHour * console::ParseFloat(value);
           });
  line.Needs("--journal-size", {"--journal"});
  line.Needs("--journal-hours", {"--journal"});
  line.Add({.names = "--allow-origin",
            .value = "ORIGIN",
            .help = "a site, such as https://chat.example, whose pages may send requests from a "
                    "browser; may be repeated",
            .repeats = true},
           [&options](const std::string& origin) {
             server::CheckOrigin(origin);
             options.http.origins.push_back(origin);
           });
  line.Add({.names = "--prompt-slowdown",
            .value = "X",
            .help = "while a prompt is processed, let the other requests write tokens at most X "
                    "times slower on average, 1.1 to 100 (0: prompts come first)",
            .fallback = "2"},
           [&options](const std::string& value) {
             options.model.prompt_slowdown = console::ParseFloat(value);
             CheckPromptSlowdown(options.model.prompt_slowdown);
           });
  AddCompletionFlags(line, options.model, options.completion);
  AddRankFlags(line, options.model);
  line.Parse(arguments);
}

// "2026-11-24T23:35:17Z"
std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[sizeof "2026-11-24T23:35:17Z"];
  return {text, std::strftime(text, sizeof text, "%FT%TZ", &utc)};
}

// Raises the limit of open files. A connection is one, and many systems allow only 1,024 by
// default.
void AllowManyFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 16);
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<std::string> ReadKeys(const std::string& file) {
  if (file.empty()) return {};
  constexpr size_t kMaxBytes = 1 << 20;
  const std::string text = ReadTextFile(file, kMaxBytes);
  std::vector<std::string> keys;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string key = text.substr(begin, end - begin);
    begin = end + 1;
    while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.pop_back();
    if (!key.empty() && key.front() != '#') keys.push_back(std::move(key));
  }
  if (keys.empty()) {
    Throw(ErrorKind::kInput, "{}: expected keys, one on each line, found no key",
          QuoteUnlessPlain(file));
  }
  return keys;
}

// Writes the same for programs: an object on a line.
void SayJson(const server::ServedRequest& served) {
  const server::CompletionOutcome& came = served.completion;
  nlohmann::ordered_json json{{"time", UtcNow()},
                              {"method", served.method},
                              {"path", served.path},
                              {"status", served.status},
                              {"ms", std::round(served.ms * 1000) / 1000}};
  if (!served.model.empty()) json["model"] = served.model;
  if (came.prompt_tokens > 0) {
    json["prompt_tokens"] = came.prompt_tokens;
    json["cached_tokens"] = came.cached_tokens;
    json["disk_tokens"] = came.disk_tokens;
    json["output_tokens"] = came.output_tokens;
    json["first_token_ms"] = std::round(came.first_token_ms * 1000) / 1000;
    json["token_ms"] = std::round(came.token_ms * 1000) / 1000;
  }
  if (served.gone) json["gone"] = true;
  if (!served.error.empty()) json["error"] = served.error;
  console::WriteNotice(json.dump() + "\n");
}

void SayServed(const server::ServedRequest& served) {
  const server::CompletionOutcome& came = served.completion;
  std::string tokens;
  if (came.prompt_tokens > 0) {
    tokens =
        fmt::format(", {} in ({} cached), {} out", console::Plural(came.prompt_tokens, "token"),
                    came.cached_tokens, came.output_tokens);
  }
  const std::string model = served.model.empty() ? "" : " by " + served.model;
  console::WriteNotice(fmt::format("{} {} {}{} in {:.2f} s{}{}\n", served.method, served.path,
                                   served.status, model, served.ms / 1000, tokens,
                                   served.gone ? ", the client left before the end" : ""));
  if (!served.error.empty()) console::WriteNotice("godwit: " + served.error + "\n");
}

// The next signal that ends the program. Null: none came in time.
std::optional<int> NextEnd(console::SignalNotes& notes, int wait_ms) {
  pollfd file{.fd = notes.file(), .events = POLLIN, .revents = 0};
  poll(&file, 1, wait_ms);
  while (const int signal = notes.Take()) {
    if (signal == SIGTSTP) raise(SIGSTOP);
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) return signal;
  }
  return std::nullopt;
}

// From here on the next signal ends the process at once. No thread takes part, because each could
// be stuck, this one in its output.
void LetSignalsEndIt(console::SignalNotes& notes) {
  notes.Stop();
  if (const auto signal = NextEnd(notes, /*wait_ms=*/0)) raise(*signal);  // it came before
}

// Serves as a rank beside rank 0, which ends it. Signals reach all ranks, and rank 0 first finishes
// its requests.
int FollowRankZero(const ServeOptions& options) {
  const Engine engine = LoadEngine(options.model, options.completion.session);
  console::SignalNotes notes;
  notes.NoteAll(true);
  engine.FollowRankZero();
  return console::kExitOk;
}

std::string AddressOf(const server::HttpOptions& http, uint16_t port) {
  return http.host.find(':') != std::string::npos ? fmt::format("http://[{}]:{}", http.host, port)
                                                  : fmt::format("http://{}:{}", http.host, port);
}

// TextsAtOnce of the model that takes the most memory for a text.
int64_t TextsOfEach(const server::Models& models, const SessionOptions& session) {
  int64_t texts = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < models.size(); ++i) {
    const auto loaded = models.status(i).loaded;
    if (loaded != nullptr) texts = std::min(texts, TextsAtOnce(*loaded->engine, session));
  }
  return texts;
}

// "tiny answers", "the server of tiny and small answers"
std::string WhoAnswers(const server::Models& models) {
  constexpr int64_t kShown = 8;
  const std::string names = FirstNames(models.Names(), kShown);
  return models.size() == 1 ? names + " answers" : "the server of " + names + " answers";
}

// Tells which models wait for their first request.
void SayLoaded(const server::Models& models) {
  for (size_t i = 0; i < models.size(); ++i) {
    if (models.status(i).loaded != nullptr) continue;
    console::WriteNotice(
        fmt::format("godwit: {} will be loaded by its first request\n", models.facts(i).name));
  }
}

}  // namespace

int Serve(std::span<const std::string> arguments) {
  ServeOptions options;
  ParseServe(arguments, options);
  options.model.gpu_window_texts = std::max<int64_t>(1, options.parallel);
  ChooseModels(options.models, options.model);
  if (MpiRank() > 0) {
    options.model.folder = options.models.models.front().place;
    return FollowRankZero(options);
  }
  const GenerateOptions generate = MakeGenerateOptions(options.completion);
  server::ApiOptions asked;
  asked.session = options.completion.session;
  asked.parallel = options.parallel;
  asked.queue = options.queue;
  asked.origins = options.http.origins;
  asked.keys = ReadKeys(options.keys_file);
  asked.grace_ms = 1000.0 * static_cast<double>(options.grace_s);
  if (options.grace_s < 0) {
    asked.grace_ms = options.journal.empty() ? 0 : 1000.0 * kGraceOfJournal;
  }
  std::optional<journal::Folder> journal;
  if (!options.journal.empty()) {
    journal.emplace(options.journal, options.journal_limits, [](const std::string& message) {
      console::WriteNotice("godwit: journal: " + message + "\n");
    });
    asked.journal = &*journal;
  }
  asked.on_served = options.log_json ? SayJson : SayServed;
  AllowManyFiles();
  // The server listens before a model is loaded, so that a taken port is reported at once. It is
  // destroyed first.
  server::Loading loading;
  std::optional<server::Models> models;
  std::optional<server::Api> api;
  std::atomic<server::Api*> ready = nullptr;
  server::HttpServer server(
      options.http, [&](server::HttpRequest request, std::shared_ptr<server::HttpReply> reply) {
        if (server::AnswerPage(request, *reply)) return;
        server::Api* const answers = ready;
        if (answers == nullptr) return loading.Answer(*reply);
        answers->Handle(std::move(request), std::move(reply));
      });
  if (options.models.models.size() > 1) options.model.group = NewGroup(options.model);
  models.emplace(ModelSources(options.models, options.model, options.completion, generate),
                 LimitsOfModels(options.models, options.model));
  models->LoadThoseThatFit([&](int64_t done, int64_t total) { loading.Note(done, total); });
  if (asked.parallel == 0) asked.parallel = TextsOfEach(*models, asked.session);
  if (asked.keys.empty() && !server.is_local()) {
    console::WriteNotice(
        "godwit: warning: everybody who reaches this address may send requests; --api-key-file "
        "FILE demands a key\n");
  }
  asked.local = server.is_local();
  api.emplace(*models, std::move(asked));
  console::SignalNotes notes;
  notes.NoteAll(true);
  api->GoOnInBackground();
  ready = &*api;
  SayLoaded(*models);
  console::WriteStatus(fmt::format("godwit: {} at {}\n", WhoAnswers(*models),
                                   AddressOf(options.http, server.port())));
  while (!NextEnd(notes, /*wait_ms=*/500)) {
    if (!models->ranks_ended()) continue;
    Throw(ErrorKind::kIo, "another rank has ended, and no request can be answered without it");
  }
  LetSignalsEndIt(notes);
  console::WriteNotice("godwit: finishing the running requests; a second signal ends at once\n");
  server.StopListening();
  api->Drain();
  return console::kExitOk;
}

}  // namespace godwit::cli
