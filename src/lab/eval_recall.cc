// godwit eval recall: the share that cache policies show of the tokens that get the most weight in
// dense attention.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/core/recall.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "base/quote.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/options/text_input.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/table.h"
#include "engine/policy_options.h"
#include "engine/storage_types.h"
#include "lab/commands.h"
#include "lab/model_run.h"
#include "model/loader.h"

namespace godwit::lab {
namespace {

struct RecallOptions {
  cli::ModelOptions model;
  SessionOptions session;
  std::vector<std::string> kvs;
  std::vector<std::string> files;
  bool lossy = false;
  int64_t max_tokens = INT64_MAX;
  int64_t query_tokens = 64;
  bool json = false;
};

RecallOptions ParseRecall(std::span<const std::string> arguments) {
  RecallOptions options;
  console::CommandLine line(
      "eval recall", "[-m MODEL] -f FILE [--kv SPEC ...] [flags]",
      "Measures the recall of each --kv. A text is read by full attention. For its last tokens, in "
      "every layer and head, the recall is the share of the heaviest 10, 64 and 1,024 tokens that "
      "the policy would show. The heads that see least of the heaviest 64 are listed by layer and "
      "KV head, both counted from 0.");
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  line.Group("Text");
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "the text (-: standard input); several files, a folder or a pattern are read "
                    "one after the other",
            .takes_list = true},
           options.files);
  console::AddLossyFlag(line, options.lossy);
  line.AddInt({.names = "--max-tokens",
               .value = "N",
               .help = "read the first N tokens only",
               .fallback = "all"},
              options.max_tokens, 2);
  line.AddInt({.names = "--query-tokens",
               .value = "N",
               .help = "measure for the last N tokens, which policies treat as a question"},
              options.query_tokens, 1);
  line.Group("Context");
  cli::AddKvMemoryFlags(line, options.model.kv_memory);
  cli::AddComparedKvCacheFlags(line, options.session, options.kvs);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Parse(arguments);
  if (options.files.empty()) Throw(ErrorKind::kInput, "a text is needed: give it with -f FILE");
  if (options.kvs.empty()) options.kvs.push_back(options.session.kv);
  return options;
}

std::vector<int32_t> ReadTokens(const ModelFolder& model, const RecallOptions& options) {
  auto tokens = model.tokenizer()->Encode(console::ReadJoinedFiles(options.files, options.lossy),
                                          /*add_special_tokens=*/true, options.max_tokens);
  const auto sink = model.spec().sink_token;
  if (sink && !tokens.empty() && tokens.front() != *sink) tokens.insert(tokens.begin(), *sink);
  if (std::ssize(tokens) > options.max_tokens) {
    tokens.resize(options.max_tokens);
  }
  const std::string text = console::NamesOf(options.files);
  const int64_t context = DefaultContext(model.spec());
  if (std::ssize(tokens) <= options.query_tokens) {
    Throw(ErrorKind::kInput,
          "{} has {} tokens, and --query-tokens {} leaves none before the question: give a longer "
          "text",
          text, tokens.size(), options.query_tokens);
  }
  if (std::ssize(tokens) > context) {
    Throw(ErrorKind::kInput,
          "{} has {} tokens, and the model reads up to {}: shorten it with --max-tokens", text,
          tokens.size(), context);
  }
  return tokens;
}

// Recalls of every policy, by one dense reading.
std::vector<Recall> MeasureRecalls(const RecallOptions& options, const ModelFolder& model,
                                   std::span<const int32_t> tokens) {
  const CalibrationRun run(options.model);
  const auto storage = ParseWeightType(options.model.weights);
  const AttentionGeometry geometry = Geometry(model.spec());
  PolicyOptions policy =
      PolicyOptionsOf(options.session, model.spec(), LoadedTypes(model.tensors(), storage));
  policy.spec = "dense";
  policy.prefill.clear();
  policy.context = std::ssize(tokens);
  auto dense = MakePolicy(geometry, policy);
  std::vector<Recall> recalls(options.kvs.size());
  std::vector<MeasuredPolicy> measured;
  for (size_t i = 0; i < recalls.size(); ++i) {
    policy.spec = options.kvs[i];
    measured.push_back({MakePolicy(geometry, policy), &recalls[i]});
  }
  const auto decoder = LoadAsAsked(model, options.model, run.exec().pool,
                                   {.warn = run.hooks().warn, .cancel = run.exec().cancel});
  const KvLayout layout = LayoutOf(geometry, policy.kv_type);
  auto pool = PoolOf(options.model.kv_memory, layout);
  if (pool == nullptr) pool = std::make_shared<KvPool>(layout);
  // A lack of memory is reported before hours of reading, not after them.
  pool->Require(PagesFor(policy.context) * layout.layers);
  TextCache cache(geometry, MakeRecallPolicy(geometry, std::move(dense), std::move(measured)),
                  std::move(pool), policy.context, policy.int8_products);
  const int64_t asked = policy.context - options.query_tokens;
  cache.SetQuestion(asked);
  console::ProgressLine progress("reading the text", console::ProgressUnit::kTokens);
  while (cache.length() < policy.context) {
    const int64_t begin = cache.length();
    // Measured tokens come one by one, so that sums add up in one order.
    const int64_t count = begin < asked ? std::min(options.session.chunk_tokens, asked - begin) : 1;
    Workspace::Scope scope(run.exec().workspace);
    const auto hidden = run.exec().workspace.Matrix<float>(count, decoder->hidden_size());
    const Segment segment{.tokens = tokens.subspan(begin, count), .text = &cache};
    decoder->Forward(run.exec(), {&segment, 1}, hidden);
    progress.Update(cache.length(), policy.context);
  }
  return recalls;
}

template <typename Sum>
double Mean(Sum sum, int64_t count) {
  return static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, count));
}

// Heads that the report names for each policy, by the KV head that their queries share.
constexpr size_t kWorst = 5;

// kvs: the policies' specs as given. Values are means over the tokens, layers and heads.
nlohmann::ordered_json RecallJson(std::span<const std::string> kvs, std::span<const Recall> recalls,
                                  int64_t kv_heads) {
  auto policies = nlohmann::ordered_json::array();
  for (size_t i = 0; i < recalls.size(); ++i) {
    const Recall& recall = recalls[i];
    nlohmann::ordered_json policy = {{"kv", kvs[i]}};
    for (size_t k = 0; k < recall.held.size(); ++k) {
      policy[fmt::format("recall_{}", Recall::kHeaviest[k])] = Mean(recall.held[k], recall.heads);
    }
    policy["weight"] = Mean(recall.weight, recall.heads);
    policy["error"] = Mean(recall.error, recall.heads);
    policy["seen_keys"] = Mean(recall.seen_keys, recall.heads);
    policy["index_bytes"] = Mean(recall.index_bytes, recall.tokens);
    const std::string share = fmt::format("recall_{}", Recall::kHeaviest[Recall::kNamed]);
    auto& worst = policy["worst_heads"] = nlohmann::ordered_json::array();
    for (const Recall::Named& head : recall.Worst(kv_heads, kWorst)) {
      worst.push_back({{"layer", head.layer}, {"kv_head", head.kv_head}, {share, head.held}});
    }
    auto& heads = policy["heads"] = nlohmann::ordered_json::array();
    for (const Recall::Named& head : recall.Groups(kv_heads)) {
      heads.push_back({{"layer", head.layer},
                       {"kv_head", head.kv_head},
                       {share, head.held},
                       {"weight", head.weight},
                       {"error", head.error}});
    }
    policies.push_back(std::move(policy));
  }
  return policies;
}

std::string RecallText(std::span<const std::string> kvs, std::span<const Recall> recalls,
                       int64_t kv_heads) {
  std::vector<console::Column> columns = {"<kv"};
  for (const int64_t heaviest : Recall::kHeaviest) {
    columns.emplace_back(fmt::format("heaviest {}", heaviest));
  }
  for (const char* heading : {"weight", "error", "keys", "index bytes"})
    columns.emplace_back(heading);
  console::Table table(columns);
  for (size_t i = 0; i < recalls.size(); ++i) {
    const Recall& recall = recalls[i];
    std::vector<std::string> cells = {kvs[i]};
    const auto add_share = [&](double sum) {
      cells.push_back(fmt::format("{:.3f}", Mean(sum, recall.heads)));
    };
    for (const double held : recall.held) add_share(held);
    add_share(recall.weight);
    add_share(recall.error);
    cells.push_back(fmt::format("{:.0f}", Mean(recall.seen_keys, recall.heads)));
    cells.push_back(fmt::format("{:.0f}", Mean(recall.index_bytes, recall.tokens)));
    table.AddRow(std::move(cells));
  }
  std::string text = table.Take();
  text += fmt::format("\nHeads that see least of the heaviest {}, by layer.KV head from 0.0 on:\n",
                      Recall::kHeaviest[Recall::kNamed]);
  for (size_t i = 0; i < recalls.size(); ++i) {
    text += fmt::format("  {}:", kvs[i]);
    for (const Recall::Named& head : recalls[i].Worst(kv_heads, kWorst)) {
      text += fmt::format("  {}.{} {:.3f}", head.layer, head.kv_head, head.held);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

int EvalRecall(std::span<const std::string> arguments) {
  RecallOptions options = ParseRecall(arguments);
  cli::ChooseModel(options.model);
  const ModelFolder model(options.model.folder);
  cli::WarnAboutSpec(model.spec());
  const std::vector<int32_t> tokens = ReadTokens(model, options);
  const std::vector<Recall> recalls = MeasureRecalls(options, model, tokens);
  const int64_t kv_heads = Geometry(model.spec()).shape.kv_heads;
  if (options.json) {
    console::WriteJson(
        {{"model", options.model.folder},
         {"text", options.files.size() == 1 ? nlohmann::ordered_json(options.files.front())
                                            : nlohmann::ordered_json(options.files)},
         {"tokens", tokens.size()},
         {"query_tokens", options.query_tokens},
         {"policies", RecallJson(options.kvs, recalls, kv_heads)}});
  } else {
    console::WriteOutput(RecallText(options.kvs, recalls, kv_heads));
  }
  return console::kExitOk;
}

}  // namespace godwit::lab
