// godwit probe: checks a server, through its API alone, for faults that servers have had.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/name_list.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "console/exit_code.h"
#include "console/options/command_line.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"
#include "http/url.h"
#include "lab/commands.h"
#include "lab/probe/checks.h"

namespace godwit::lab {
namespace {

struct ProbeOptions {
  std::string url;
  std::string model, key;
  std::vector<std::string> only;
  int clients = 8;
  int64_t timeout_s = 60;
  bool json = false;
};

void TakeChecks(const std::string& list, std::vector<std::string>& only) {
  const auto names = Names(probe::AllChecks(), &probe::Check::name);
  for (const std::string_view name : console::SplitAtCommas(list)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto nearest = Nearest(name, names);
      Throw(ErrorKind::kInput, "there is no check {}; {}", Quote(name),
            nearest ? fmt::format("did you mean {}?", *nearest)
                    : fmt::format("there are: {}", fmt::join(names, ", ")));
    }
    only.emplace_back(name);
  }
}

ProbeOptions ParseProbe(std::span<const std::string> arguments) {
  ProbeOptions options;
  std::string checks;
  for (const probe::Check& check : probe::AllChecks()) {
    checks += fmt::format(" {}: {}.", check.name, check.asks);
  }
  console::CommandLine line("probe", "URL [flags]",
                            "Tests a server with OpenAI's API for faults that real servers had, "
                            "and prints its findings. It needs no model. The checks are:" +
                                checks);
  line.Add({.names = "--model",
            .value = "NAME",
            .help = "the model to ask",
            .fallback = "the first one in the server's list",
            .is_verbs_own = true},
           options.model);
  line.Add({.names = "--api-key",
            .value = "KEY",
            .help = "the key for the server",
            .fallback = "the variable OPENAI_API_KEY"},
           options.key);
  line.Add({.names = "--only",
            .value = "NAMES",
            .help = "run these checks only, such as batch,cache",
            .choices = Names(probe::AllChecks(), &probe::Check::name),
            .repeats = true},
           [&options](const std::string& list) { TakeChecks(list, options.only); });
  line.AddInt({.names = "--clients", .value = "N", .help = "send requests from N clients at once"},
              options.clients, 1, 64);
  line.AddInt({.names = "--timeout",
               .value = "SECONDS",
               .help = "the longest wait for the next byte of an answer",
               .is_verbs_own = true},
              options.timeout_s, 1, 86'400);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Operand(options.url);
  line.Parse(arguments);
  if (options.key.empty()) {
    const char* const key = std::getenv("OPENAI_API_KEY");
    if (key != nullptr) options.key = key;
  }
  return options;
}

// "localhost:8080/v1/" -> "http://localhost:8080".
std::string RootOf(std::string url) {
  if (url.find("://") == url.npos) url = "http://" + url;
  while (url.ends_with('/')) url.pop_back();
  constexpr std::string_view kApi = "/v1";
  if (url.ends_with(kApi)) url.resize(url.size() - kApi.size());
  (void)OriginOf(url);  // refuses a URL without an origin
  return url;
}

std::optional<probe::Json> JsonIn(const HttpResponse& response) {
  if (response.status != 200) return std::nullopt;
  try {
    return ParseJson(response.body, response.url);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The first number of tokens found at one of these places.
std::optional<int64_t> NumberIn(const probe::Json& json,
                                std::initializer_list<const char*> places) {
  for (const char* const place : places) {
    const probe::Json::json_pointer pointer(place);
    if (!json.contains(pointer) || !json.at(pointer).is_number_integer()) continue;
    constexpr int64_t kMost = int64_t{1} << 40;
    const probe::Json& number = json.at(pointer);
    if (number >= 0 && number <= kMost) return number.get<int64_t>();
  }
  return std::nullopt;
}

// Asks the server for facts that the checks need. Throws if the checks cannot use this server.
void QueryServer(probe::Target& target) {
  probe::Client client(target);
  const HttpResponse listed = client.Get("/v1/models");
  if (listed.status == 401 || listed.status == 403) {
    Throw(ErrorKind::kInput, "{}: the server answers {}: give its key with --api-key", target.root,
          listed.status);
  }
  const auto models = JsonIn(listed).value_or(probe::Json());
  if (target.model.empty()) {
    const probe::Json::json_pointer first("/data/0/id");
    const probe::Json id = models.contains(first) ? models.at(first) : probe::Json();
    if (!id.is_string()) {
      Throw(ErrorKind::kFormat,
            "{}/v1/models: expected a list of models in the format of OpenAI's API, found status "
            "{}: check the address, or name a model with --model",
            target.root, listed.status);
    }
    target.model = id.get<std::string>();
  }
  if (const auto props = JsonIn(client.Get("/props"))) {
    target.context_tokens = NumberIn(*props, {"/n_ctx", "/default_generation_settings/n_ctx"});
  }
  if (!target.context_tokens) {
    target.context_tokens =
        NumberIn(models, {"/data/0/max_model_len", "/data/0/meta/n_ctx", "/data/0/context_length"});
  }
  const probe::Answer text = client.Ask("Hello", probe::Greedily(1));
  if (text.status == 200) return;
  target.chat = true;
  const probe::Answer chat = client.Ask("Hello", probe::Greedily(1));
  if (chat.status == 200) return;
  Throw(ErrorKind::kFormat,
        "{}: neither /v1/completions nor /v1/chat/completions answers with the model {}: {} and {}",
        target.root, Quote(target.model), probe::RefusalOf(text), probe::RefusalOf(chat));
}

struct Finding {
  const char* result;
  std::string seen;
};

Finding Run(const probe::Check& check, const probe::Target& target) {
  try {
    return {"ok", check.run(target)};
  } catch (const probe::Fault& fault) {
    return {"fault", fault.what()};
  } catch (const probe::Skip& skip) {
    return {"skipped", skip.what()};
  }
}

}  // namespace

int Probe(std::span<const std::string> arguments) {
  const ProbeOptions options = ParseProbe(arguments);
  CancelToken cancel;
  const console::CancelOnInterrupt on_interrupt(cancel, /*presses_to_exit=*/2);
  probe::Target target{.root = RootOf(options.url),
                       .model = options.model,
                       .key = options.key,
                       .timeout = std::chrono::seconds(options.timeout_s),
                       .clients = options.clients,
                       .context_tokens = {},
                       .cancel = &cancel};
  try {
    QueryServer(target);
  } catch (const probe::Fault& fault) {
    Throw(ErrorKind::kIo, "{}: {}", target.root, fault.what());
  }
  nlohmann::ordered_json json{{"url", target.root},
                              {"model", target.model},
                              {"asks", target.chat ? "chat" : "text"},
                              {"checks", nlohmann::ordered_json::array()}};
  console::Table table({{"<check"}, {"<result"}, {"<what was seen"}});
  for (const probe::Check& check : probe::AllChecks()) table.WidenFor({std::string(check.name)});
  table.WidenFor({"", "skipped"});
  int faults = 0;
  for (const probe::Check& check : probe::AllChecks()) {
    const auto& only = options.only;
    if (!only.empty() && std::find(only.begin(), only.end(), check.name) == only.end()) continue;
    const auto [result, seen] = Run(check, target);
    faults += result == std::string_view("fault");
    if (!options.json) {
      table.Add(check.name, result, seen);
      console::WriteOutput(table.Take());
    }
    json["checks"].push_back({{"check", check.name}, {"result", result}, {"seen", seen}});
  }
  json["faults"] = faults;
  if (options.json) console::WriteJson(json);
  return faults == 0 ? console::kExitOk : console::kExitSomeFailed;
}

}  // namespace godwit::lab
