#include "cli/inspect_kv.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "attention/core/kv_cost.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "checkpoint/model_folder.h"
#include "cli/options/find_model.h"
#include "cli/options/recompute_spec.h"
#include "console/options/help.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"
#include "engine/storage_types.h"
#include "model/loader.h"
#include "model/shapes.h"
#include "model/synthetic_weights.h"

namespace godwit::cli {
namespace {

// The model that policies serve.
struct Served {
  std::string name;
  DecoderSpec spec;
  AttentionGeometry geometry;
  KvLayout layout;
  WeightTypes weights;
  int64_t weight_bytes;  // read in each step
};

struct Cost {
  int64_t context;
  KvCost kv;

  int64_t memory_bytes() const { return kv.cache_bytes + kv.state_bytes + kv.index.held_bytes; }
  // The average bytes of the index that a step reads.
  int64_t index_bytes() const { return kv.index.read_bytes / kv.index.read_every_tokens; }
  int64_t read_bytes() const { return kv.seen_bytes + index_bytes(); }
};

struct Explanation {
  std::string kv;
  std::string words;
  bool recomputes;  // such a policy is bound by multiplying
  std::vector<Cost> costs;
};

Served OpenServed(InspectOptions& options) {
  Served served;
  std::optional<ModelFolder> folder;
  std::unique_ptr<const WeightSource> planned;
  if (options.shape) {
    served.name = *options.shape;
    served.spec = FindShape(*options.shape);
  } else {
    ChooseModel(options.model);
    served.name = ModelName(options.model.folder);
    served.spec = folder.emplace(options.model.folder).spec();
  }
  if (!folder || !folder->has_weights()) {
    planned = SyntheticWeights(served.spec, DType::kBF16);
  }
  const WeightSource& source = planned ? *planned : folder->weights();
  const ModelTensors tensors = ResolveTensors(served.spec, source);
  const auto storage = ParseWeightType(options.model.weights);
  served.weights = LoadedTypes(tensors, storage);
  served.weight_bytes = StepBytes(served.spec, tensors, storage);
  served.geometry = Geometry(served.spec);
  served.layout = LayoutOf(served.geometry, ChooseKvType(options.session.kv_type, served.weights));
  return served;
}

std::vector<int64_t> ContextsOf(const Served& served, const InspectOptions& options) {
  if (!options.contexts.empty()) return options.contexts;
  std::vector<int64_t> contexts = {4096, 16384, 131072, 1048576};
  const int64_t learned = served.geometry.learned_positions;
  if (learned == 0) return contexts;
  std::erase_if(contexts, [&](int64_t context) { return context >= learned; });
  contexts.push_back(learned);
  return contexts;
}

Explanation Explain(const Served& served, const std::string& kv,
                    const std::vector<int64_t>& contexts) {
  const std::optional<int64_t> window = RecomputeWindow(kv);
  const auto policy = MakePolicy(served.geometry, {.spec = window ? "dense" : kv,
                                                   .kv_type = served.layout.dtype,
                                                   .context = *std::ranges::max_element(contexts)});
  Explanation explanation{.kv = window ? kv : policy->facts().name,
                          .words = window ? ExplainRecompute(*window) : policy->facts().explanation,
                          .recomputes = window.has_value(),
                          .costs = {}};
  if (const std::string states = ExplainStates(served.geometry); !states.empty()) {
    explanation.words += " " + states;
  }
  for (const int64_t context : contexts) {
    const int64_t read = std::min(context, window.value_or(context));
    explanation.costs.push_back({context, CostAt(*policy, served.geometry, served.layout, read)});
  }
  return explanation;
}

std::string ExplanationText(const Served& served, const Explanation& explanation,
                            const Explanation& dense) {
  constexpr size_t kIndent = 2;
  const auto columns = static_cast<size_t>(console::OutputColumns());
  std::string text = "\n" + explanation.kv + "\n" + std::string(kIndent, ' ') +
                     console::Wrap(explanation.words, columns, kIndent) + "\n\n";
  const bool index = explanation.costs.back().kv.index.held_bytes > 0;
  std::vector<console::Column> headings = {"context", "memory", "per token", "step reads", "cache"};
  if (index) headings.emplace_back("index");
  headings.emplace_back("dense reads");
  console::Table table(headings, kIndent);
  for (size_t i = 0; i < explanation.costs.size(); ++i) {
    const Cost& cost = explanation.costs[i];
    const int64_t step = served.weight_bytes + cost.read_bytes();
    const int64_t of_dense = served.weight_bytes + dense.costs[i].read_bytes();
    std::vector<std::string> cells = {fmt::format("{}", cost.context),
                                      FormatBytes(cost.memory_bytes()),
                                      FormatBytes(cost.memory_bytes() / cost.context),
                                      FormatBytes(step), FormatBytes(cost.kv.seen_bytes)};
    if (index) cells.push_back(FormatBytes(cost.index_bytes()));
    const double ratio = static_cast<double>(of_dense) / static_cast<double>(step);
    cells.push_back(explanation.recomputes ? "-" : fmt::format("{:.2f} x", ratio));
    table.AddRow(cells);
  }
  return text + table.Take();
}

nlohmann::ordered_json ExplanationJson(const Served& served, const Explanation& explanation) {
  nlohmann::ordered_json json = {{"kv", explanation.kv}, {"explanation", explanation.words}};
  for (const Cost& cost : explanation.costs) {
    json["contexts"].push_back({{"context_tokens", cost.context},
                                {"cache_bytes", cost.kv.cache_bytes},
                                {"state_bytes", cost.kv.state_bytes},
                                {"index_bytes", cost.kv.index.held_bytes},
                                {"step_bytes", served.weight_bytes + cost.read_bytes()},
                                {"step_cache_bytes", cost.kv.seen_bytes},
                                {"step_index_bytes", cost.index_bytes()}});
  }
  return json;
}

}  // namespace

void ExplainKv(InspectOptions options) {
  const Served served = OpenServed(options);
  const std::vector<int64_t> contexts = ContextsOf(served, options);
  std::vector<Explanation> explanations;
  for (const std::string& kv : options.kvs) explanations.push_back(Explain(served, kv, contexts));
  const std::string kv_type = StorageName(served.layout.dtype);
  if (options.json) {
    nlohmann::ordered_json object = {{"model", served.name},
                                     {"weights", StorageName(served.weights)},
                                     {"step_weight_bytes", served.weight_bytes},
                                     {"kv_type", kv_type},
                                     {"bytes_per_token", served.layout.bytes_per_token()}};
    for (const Explanation& explanation : explanations) {
      object["policies"].push_back(ExplanationJson(served, explanation));
    }
    console::WriteJson(object);
    return;
  }
  console::Table facts = console::Facts();
  facts.Add("model", served.name);
  facts.Add("weights", fmt::format("{} in {}, read by every step", FormatBytes(served.weight_bytes),
                                   StorageName(served.weights)));
  facts.Add("cache", fmt::format("{} for each token kept, in {}",
                                 FormatBytes(served.layout.bytes_per_token()), kv_type));
  std::string text = facts.Take();
  const Explanation dense = Explain(served, "dense", contexts);
  for (const Explanation& explanation : explanations)
    text += ExplanationText(served, explanation, dense);
  console::WriteOutput(text);
}

}  // namespace godwit::cli
