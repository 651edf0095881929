#include "lab/compared_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/make_policy.h"
#include "base/error.h"
#include "base/fnv.h"
#include "cli/options/find_model.h"
#include "cli/options/kv_options.h"
#include "cli/options/recompute_spec.h"
#include "console/options/parse_value.h"
#include "console/terminal/format.h"

namespace godwit::lab {
namespace {

// The policy's own spelling of its name: "blocks:" is "blocks".
std::string KvName(const std::string& kv) {
  return cli::RecomputeWindow(kv) ? kv : PolicyFactsOf(kv).name;
}

}  // namespace

void AddSeedFlag(console::CommandLine& line, ComparedOptions& options, const std::string& help) {
  line.Add({.names = "-s,--seed",
            .value = "N",
            .help = help,
            .fallback = fmt::format("{}", options.seed),
            .is_verbs_own = true},
           [&options](const std::string& value) {
             options.seed = static_cast<uint64_t>(console::ParseInt(value, 0, INT64_MAX));
           });
}

void AddComparedFlags(console::CommandLine& line, ComparedOptions& options,
                      const std::string& shown, const std::string& asked, bool takes_recompute) {
  line.Group("Output");
  line.AddInt({.names = "--show",
               .value = "N",
               .help = fmt::format("print {} and end, without asking the model", shown)},
              options.show, 0);
  line.Add({.names = "-o,--output",
            .value = "FILE",
            .help = "also write every answer to a file at once, one JSON object on each line; "
                    "questions with an answer in the file are not asked again"},
           options.output);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.RefusePlot();
  cli::AddComparedKvFlags(line, options.session, options.model.kv_memory, options.kvs,
                          takes_recompute);
  cli::AddPrefillFlags(line, options.session, options.query_tokens, asked);
}

void FinishCompared(ComparedOptions& options, std::vector<console::NamedFile> inputs) {
  if (options.kvs.empty()) options.kvs = {options.session.kv};
  if (options.query_tokens > 0) {
    cli::RequireUseOfQueryTokens(std::span(&options.session.prefill, 1), options.kvs);
  }
  std::vector<std::string> names;
  for (const std::string& kv : options.kvs) {
    names.push_back(KvName(kv));
    if (std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1) {
      Throw(ErrorKind::kInput, "--kv: {} is named twice", names.back());
    }
  }
  cli::ChooseModel(options.model);
  inputs.push_back({"-m", options.model.folder});
  console::CheckResultFiles({{.flag = "-o", .path = options.output, .appended = true}}, inputs);
}

Session NewSession(const Engine& engine, const ComparedOptions& options, const std::string& kv) {
  SessionOptions session = options.session;
  session.kv = kv;
  return engine.NewSession(session);
}

std::string SettingsText(const ComparedOptions& options) {
  const SessionOptions& session = options.session;
  std::string how = fmt::format("{}, weights {}, kv {}", cli::ModelName(options.model.folder),
                                options.model.weights, session.kv_type);
  if (session.int8_attention) {
    how += fmt::format(", int8 attention {}", *session.int8_attention ? "on" : "off");
  }
  const std::string question = options.query_tokens > 0
                                   ? "the last " + console::Plural(options.query_tokens, "token")
                                   : "the question";
  const auto asks_apart = [](const std::string& kv) {
    return !cli::RecomputeWindow(kv) && PolicyFactsOf(kv).separates_question;
  };
  if (!session.prefill.empty()) {
    how += fmt::format(", all but {} read by {}", question, session.prefill);
  } else if (std::ranges::any_of(options.kvs, asks_apart)) {
    how += fmt::format(", asked by {}", question);
  }
  return how;
}

std::string Fingerprint(std::span<const int32_t> tokens, int64_t max_new_tokens) {
  return fmt::format("{:016x}",
                     Fnv1a(std::as_bytes(tokens)) + static_cast<uint64_t>(max_new_tokens));
}

}  // namespace godwit::lab
