// godwit inspect: a model's properties, and the part of it that fits into this machine. `inspect
// --activations` belongs to godwit-lab.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "attention/make_policy.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "checkpoint/model_folder.h"
#include "checkpoint/weight_facts.h"
#include "cli/commands.h"
#include "cli/inspect_kv.h"
#include "cli/lab_program.h"
#include "cli/options/find_model.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"
#include "engine/draft_model.h"
#include "engine/memory_plan.h"
#include "engine/storage_types.h"
#include "kernels/dispatch.h"
#include "model/gpu_plan.h"
#include "model/model_tensors.h"
#include "model/synthetic_weights.h"
#include "text/chat_template.h"

namespace godwit::cli {
namespace {

struct Machine {
  MachineMemory memory;
  const kernels::Isa& isa;
  int threads;
};

// The element type of a checkpoint without weights, from its config.
DType StoredAs(const HfConfig& config) {
  const std::string type = config.StringOr("torch_dtype", config.StringOr("dtype", "bfloat16"));
  return type == "float32" ? DType::kF32 : type == "float16" ? DType::kF16 : DType::kBF16;
}

// The draft model of -md.
struct DraftFacts {
  std::string name;
  DecoderSpec spec;
  WeightFacts weights;

  int64_t weight_bytes() const { return weights.loaded_bytes.value_or(weights.file_bytes); }
  // A draft model stops to draft where its context ends.
  int64_t KvBytesOf(int64_t tokens, DType kv_type) const {
    const AttentionGeometry geometry = Geometry(spec);
    const KvLayout layout =
        LayoutOf(geometry, CanBeStored(geometry, kv_type) ? kv_type : DType::kBF16);
    return KvBytes(layout, /*policy=*/nullptr, std::min(tokens, DefaultContext(spec)));
  }
};

// The plan for a GPU of which --gpu-memory tells the size.
struct GpuFacts {
  int64_t limit_bytes = 0;
  GpuPlan plan;
  std::string problem;  // why no layer computes there; empty: some do
};

struct ModelFacts {
  explicit ModelFacts(const ModelOptions& options);

  // The longest context whose cache fits beside the weights, with that of a draft model.
  int64_t LargestContextIn(const Machine& machine, DType kv_type) const {
    const KvLayout layout = LayoutOf(Geometry(weights.spec), kv_type);
    int64_t free_bytes = machine.memory.available_bytes - WeightBytesHere();
    if (!draft) return LargestContext(layout, /*policy=*/nullptr, free_bytes);
    free_bytes -= draft->weight_bytes();
    int64_t fit = 0, beyond = LargestContext(layout, /*policy=*/nullptr, free_bytes) + 1;
    while (beyond - fit > 1) {
      const int64_t tokens = fit + (beyond - fit) / 2;
      const int64_t bytes = KvBytes(layout, nullptr, tokens) + draft->KvBytesOf(tokens, kv_type);
      (bytes <= free_bytes ? fit : beyond) = tokens;
    }
    return fit;
  }

  // The bytes of weights in this machine's memory, once a GPU has its part.
  int64_t WeightBytesHere() const {
    return weights.loaded_bytes.value_or(weights.file_bytes) - (gpu ? gpu->plan.freed_bytes : 0);
  }

  // Whether a layer that predicts tokens can be loaded.
  bool Predicts() const { return !folder.is_gguf() && HasPrediction(spec, source); }

  ModelFolder folder;
  const DecoderSpec& spec;
  SpecialTokens special;
  std::shared_ptr<const Tokenizer> tokenizer;  // null if there is none
  // The source of the chat template, or its fault. Empty: there is none.
  std::string chat_template;
  bool can_chat = false;
  bool has_weights;
  std::unique_ptr<const WeightSource> planned;  // from config.json, if there are no weights
  const WeightSource& source;
  int ranks;  // that share the weights: memory is that of one, which has most
  WeightFacts weights;
  std::optional<DraftFacts> draft;  // none: there is no -md
  std::optional<GpuFacts> gpu;      // none: there is no --gpu-memory
};

// Throws as loading a draft model does.
DraftFacts FactsOfDraft(const ModelFacts& model, const ModelOptions& options) {
  model.folder.RequireTokenizer();
  const ModelFolder folder =
      OpenDraftModel(FindModel(options.draft_model), *model.tokenizer, model.folder.path());
  return {.name = ModelName(folder.path()),
          .spec = folder.spec(),
          .weights = FactsOf(folder.spec(), folder.weights(), ParseWeightType(options.weights))};
}

GpuFacts FactsOfGpu(const ModelFacts& model, const ModelOptions& options) {
  GpuFacts facts{.limit_bytes = options.gpu_memory_bytes};
  try {
    if (model.ranks > 1) {
      Throw(ErrorKind::kUnsupported, "a GPU computes the layers of a whole model, not a rank's");
    }
    RequireGpuLayers(model.spec);
    GpuShapes shapes = GpuShapesOf(model.spec, ResolveTensors(model.spec, model.source),
                                   ParseWeightType(options.weights));
    AddGpuAttention(model.spec, options.gpu_attention, {.tokens = options.gpu_window}, shapes);
    facts.plan = PlanGpu(shapes, LoadOptions().step_tokens, "a GPU", options.gpu_memory_bytes);
  } catch (const Error& error) {
    facts.problem = error.what();
  }
  return facts;
}

ModelFacts::ModelFacts(const ModelOptions& options)
    : folder(options.folder),
      spec(folder.spec()),
      special(folder.special_tokens()),
      tokenizer(folder.has_tokenizer() ? folder.tokenizer() : nullptr),
      has_weights(folder.has_weights()),
      planned(has_weights ? nullptr : SyntheticWeights(spec, StoredAs(folder.config()))),
      source(has_weights ? folder.weights() : *planned),
      ranks(options.tensor_parallel),
      weights(FactsOf(spec, source, ParseWeightType(options.weights), ranks)) {
  if (!options.draft_model.empty()) draft = FactsOfDraft(*this, options);
  if (options.gpu_memory_bytes > 0 && weights.problem.empty()) gpu = FactsOfGpu(*this, options);
  if (tokenizer == nullptr) return;
  try {
    const auto found = folder.chat_template();
    if (!found) return;
    chat_template = found->what;
    (void)ChatTemplate(found->text, found->what, {});
    can_chat = true;
  } catch (const Error& error) {
    chat_template = error.what();
  }
}

std::vector<std::string> SupportedIsas() {
  std::vector<std::string> names;
  for (const kernels::Isa& isa : kernels::AllIsas()) {
    if (isa.supported()) names.emplace_back(isa.name);
  }
  return names;
}

std::string Spelling(const ModelFacts& facts, int32_t id) {
  const auto token = facts.tokenizer->IdToToken(id);
  return token ? fmt::format("{} {}", id, Quote(*token)) : fmt::format("{}", id);
}

std::string WhyThereIsNoTokenizer(const ModelFolder& folder) try {
  folder.RequireTokenizer();
  return "";
} catch (const Error& error) {
  return error.what();
}

// The tokens in front of a prompt, as `tokenize` shows them. A model may name a BOS that its
// tokenizer does not put there.
std::vector<int32_t> BeginningOf(const Tokenizer& tokenizer) {
  const auto text = tokenizer.Encode("a", /*add_special_tokens=*/false);
  auto framed = tokenizer.Encode("a", /*add_special_tokens=*/true);
  framed.erase(std::search(framed.begin(), framed.end(), text.begin(), text.end()), framed.end());
  return framed;
}

std::string DescribeBeginning(const ModelFacts& facts) {
  const std::vector<int32_t> ids = BeginningOf(*facts.tokenizer);
  if (ids.empty()) {
    if (!facts.special.bos_id) return "";
    return ", adds no leading token (its BOS is " + Spelling(facts, *facts.special.bos_id) + ")";
  }
  return ", begins with " + NameList(
                                ids, [&](int32_t id) { return Spelling(facts, id); }, " and ");
}

std::string DescribeText(const ModelFacts& facts) {
  if (facts.tokenizer == nullptr) return "none: " + WhyThereIsNoTokenizer(facts.folder);
  std::string line = console::Plural(facts.tokenizer->VocabSize(), "token");
  line += " of " + *facts.folder.tokenizer_file();
  line += DescribeBeginning(facts);
  for (size_t i = 0; i < facts.special.eos_ids.size(); ++i) {
    line += (i == 0 ? ", ends with " : " or ") + Spelling(facts, facts.special.eos_ids[i]);
  }
  return line;
}

// predicts: whether the checkpoint has the layer of DecoderSpec::prediction.
std::string DescribeSpec(const DecoderSpec& spec, bool predicts) {
  std::string line = fmt::format(
      "{}: {}, hidden size {}, {} of {} with {}, vocabulary of {}", spec.family,
      console::Plural(spec.layers, "layer"), spec.hidden_size, console::Plural(spec.heads, "head"),
      spec.head_dim, console::Plural(spec.kv_heads, "KV head"), spec.vocab_size);
  int64_t windowed = 0, window = 0, plain = 0, recurrent = 0, beside = 0, alone = 0;
  int64_t others = 0, readers = 0;  // layers with other heads than the usual, and without keys
  const LayerKind* other = nullptr;
  bool queries_grow = false;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const LayerKind& kind = KindOf(spec, layer);
    if (IsRecurrent(kind)) ++recurrent;
    if (kind.attention_beside) ++beside;
    if (kind.mixer == Mixer::kNone) ++alone;
    if (kind.window != 0) {
      ++windowed;
      window = kind.window;
    }
    if (kind.rotary.rotary_dim == 0 && spec.rotary.rotary_dim > 0) ++plain;
    if (HasAttention(kind) && kind.head_dim != spec.head_dim) {
      ++others;
      other = &kind;
    }
    if (HasAttention(kind) && !HasKeys(kind)) ++readers;
    if (kind.rotary.temperature.growth != 0) queries_grow = true;
  }
  if (windowed > 0) {
    line += fmt::format(", {} of {} in {}", spec.chunked ? "chunks" : "a window", window,
                        console::Plural(windowed, "layer"));
  }
  if (spec.mlp.experts > 0) {
    line += fmt::format(", {}, {} of them for a token", console::Plural(spec.mlp.experts, "expert"),
                        spec.mlp.experts_per_token);
    if (spec.shared_mlp.intermediate > 0) line += " and a shared one";
  }
  if (other != nullptr) {
    line +=
        fmt::format(", heads of {} with {} in {}", other->head_dim,
                    console::Plural(other->kv_heads, "KV head"), console::Plural(others, "layer"));
  }
  if (readers > 0) line += fmt::format(", {} of the layers read keys of others", readers);
  if (spec.layer_embedding) {
    line += fmt::format(", embeddings of {} for each layer", spec.layer_embedding->width);
  }
  if (plain > 0) line += fmt::format(", no positions in {}", console::Plural(plain, "layer"));
  if (queries_grow) line += ", queries scaled by their position";
  if (spec.latent) line += ", latent attention";
  if (recurrent > 0) line += fmt::format(", {} of the layers recurrent", recurrent);
  if (beside > 0) line += fmt::format(", {} of them with attention beside", beside);
  if (alone > 0) line += fmt::format(", {} of the layers without a mixer", alone);
  if (predicts) line += ", a layer that predicts tokens (--draft mtp)";
  if (spec.key_index) {
    line += fmt::format(", {} tokens that an index chooses", spec.key_index->best);
  }
  if (spec.first_learned_position) line += ", learned positions";
  if (spec.attention_sink == AttentionSink::kSoftmax1) line += ", SoftMax_1 attention";
  if (spec.attention_sink == AttentionSink::kLearned) line += ", learned attention sinks";
  if (spec.sink_token) line += fmt::format(", token {} as a sink", *spec.sink_token);
  return line;
}

std::string TensorTable(const WeightSource& source, bool all) {
  std::vector<TensorGroup> groups;
  if (all) {
    for (const std::string& name : source.Names()) {
      groups.push_back({.name = name, .first = source.Find(name), .count = 1});
    }
  } else {
    groups = GroupTensors(source);
  }
  console::Table table({"<", "<", "<", "", "<"}, /*indent=*/2);
  for (const TensorGroup& group : groups) {
    const TensorInfo& tensor = *group.first;
    const auto bytes = std::ssize(tensor.bytes);
    table.Add(group.name, tensor.dtype_name, fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
              FormatBytes(bytes),
              group.count > 1
                  ? fmt::format("x {} = {}", group.count, FormatBytes(bytes * group.count))
                  : "");
  }
  return table.Take();
}

std::string DescribeFiles(const ModelFacts& facts) {
  return fmt::format(
      "{} in {}, {} of files{}", console::FormatCount(facts.weights.parameters),
      console::Plural(std::ssize(facts.source.Names()), "tensor"),
      FormatBytes(facts.weights.file_bytes),
      facts.has_weights ? ""
                        : "; no file of weights is here, so these numbers follow from config.json");
}

// "llama "My model": Q4_K in 12 tensors, F32 in 5"
std::string DescribeGguf(const ModelFacts& facts) {
  const GgufMetadata& metadata = facts.folder.gguf_metadata();
  std::string line = metadata.String("general.architecture");
  if (metadata.Has("general.name")) line += " " + Quote(metadata.String("general.name"));
  const char* separator = ": ";
  for (const auto& [type, count] : CountTypes(facts.source)) {
    line += fmt::format("{}{} in {}", std::exchange(separator, ", "), type,
                        console::Plural(count, "tensor"));
  }
  return line;
}

std::string DescribeIsas(const Machine& machine) {
  std::string others;
  for (const std::string& name : SupportedIsas()) {
    if (name != machine.isa.name) others += (others.empty() ? "" : ", ") + name;
  }
  return fmt::format("{} ({}); this machine also has {}", machine.isa.name, machine.isa.description,
                     others.empty() ? "no other" : others);
}

std::string DescribeLoaded(const ModelFacts& facts, const Machine& machine) {
  const int64_t bytes = *facts.weights.loaded_bytes;
  return fmt::format("{} when loaded{}, in {}{}", FormatBytes(bytes),
                     facts.ranks == 1 ? "" : fmt::format(" on one of {} ranks", facts.ranks),
                     StorageName(*facts.weights.loaded_types),
                     bytes <= machine.memory.available_bytes
                         ? ""
                         : ", which does not fit into the available memory");
}

std::string DescribeGpu(const ModelFacts& facts) {
  const GpuFacts& gpu = *facts.gpu;
  if (!gpu.problem.empty()) return "nothing computes there: " + gpu.problem;
  const std::string window =
      gpu.plan.window_bytes == 0
          ? ""
          : fmt::format(", {} of keys and values", FormatBytes(gpu.plan.window_bytes));
  return fmt::format(
      "{} of {}{}{}: {} of weights{} and {} for a step, of {}; {} of weights stay here",
      gpu.plan.layers, console::Plural(facts.spec.layers, "layer"),
      DescribeHostMlps(gpu.plan.layers, gpu.plan.host_mlps, gpu.plan.shared_mlps),
      gpu.plan.head ? " and the output head" : "", FormatBytes(gpu.plan.weight_bytes), window,
      FormatBytes(gpu.plan.scratch_bytes), FormatBytes(gpu.limit_bytes),
      FormatBytes(facts.WeightBytesHere()));
}

console::Table KvTable(const ModelFacts& facts, const Machine& machine) {
  const int64_t context = facts.spec.max_context;
  console::Table table(
      {"<KV cache", "per token", {console::Plural(context, "token")}, "fits beside the weights"});
  for (const auto& [name, type] : kKvTypes) {
    const AttentionGeometry geometry = Geometry(facts.weights.spec);
    if (!CanBeStored(geometry, type)) continue;
    const KvLayout layout = LayoutOf(geometry, type);
    const int64_t per_token = layout.bytes_per_token();
    table.Add(name, FormatBytes(per_token),
              FormatBytes(per_token * context + layout.states.BytesFor(context)),
              console::Plural(facts.LargestContextIn(machine, type), "token"));
  }
  return table;
}

std::string DescribeDraft(const DraftFacts& draft) {
  const DType kv_type =
      draft.weights.loaded_types ? ChooseKvType("auto", *draft.weights.loaded_types) : DType::kBF16;
  const KvLayout layout = LayoutOf(Geometry(draft.spec), kv_type);
  return fmt::format("{}: {} when loaded, and {} a token in a {} KV cache, up to {}", draft.name,
                     FormatBytes(draft.weight_bytes()), FormatBytes(layout.bytes_per_token()),
                     StorageName(kv_type), console::Plural(DefaultContext(draft.spec), "token"));
}

std::string InspectText(const ModelFacts& facts, const Machine& machine, bool all_tensors) {
  console::Table model = console::Facts();
  model.Add("model", DescribeSpec(facts.spec, facts.Predicts()));
  model.Add("parameters", DescribeFiles(facts));
  if (facts.folder.is_gguf()) model.Add("GGUF", DescribeGguf(facts));
  for (const LayerQuantization& quantization : facts.spec.quantization.Distinct()) {
    model.Add("quantized", Describe(quantization));
  }
  model.Add("tokenizer", DescribeText(facts));
  model.Add("chat", facts.chat_template.empty() ? "no template" : facts.chat_template);
  model.Add("context", fmt::format("up to {} tokens", facts.spec.max_context));
  console::Table here = console::Facts();
  here.Add("computing", DescribeIsas(machine));
  here.Add("threads", machine.threads);
  here.Add("memory", fmt::format("{} of {} available", FormatBytes(machine.memory.available_bytes),
                                 FormatBytes(machine.memory.total_bytes)));
  if (facts.weights.loaded_bytes) here.Add("weights", DescribeLoaded(facts, machine));
  if (facts.gpu) here.Add("GPU", DescribeGpu(facts));
  for (const std::string& rounding : facts.weights.roundings) here.Add("rounded", rounding);
  if (facts.draft) here.Add("draft model", DescribeDraft(*facts.draft));
  return model.Take() + "\n" + here.Take() + "\n" + KvTable(facts, machine).Take() + "\ntensors\n" +
         TensorTable(facts.source, all_tensors);
}

nlohmann::ordered_json TextJson(const ModelFacts& facts) {
  if (facts.tokenizer == nullptr) return nullptr;
  nlohmann::ordered_json json;
  json["file"] = *facts.folder.tokenizer_file();
  json["vocab_size"] = facts.tokenizer->VocabSize();
  json["bos_id"] = nullptr;
  if (facts.special.bos_id) json["bos_id"] = *facts.special.bos_id;
  json["begins_with"] = BeginningOf(*facts.tokenizer);
  json["eos_ids"] = facts.special.eos_ids;
  json["chat_template"] = facts.can_chat;
  return json;
}

std::string InspectJson(const ModelFacts& facts, const Machine& machine) {
  nlohmann::ordered_json json;
  json["folder"] = facts.folder.path();
  json["family"] = facts.spec.family;
  json["format"] = facts.folder.is_gguf() ? "gguf" : "hf";
  json["parameters"] = facts.weights.parameters;
  json["layers"] = facts.spec.layers;
  json["predicts_tokens"] = facts.Predicts();
  json["hidden_size"] = facts.spec.hidden_size;
  json["heads"] = facts.spec.heads;
  json["kv_heads"] = facts.spec.kv_heads;
  json["head_dim"] = facts.spec.head_dim;
  json["vocab_size"] = facts.spec.vocab_size;
  json["max_context"] = facts.spec.max_context;
  json["experts"] = facts.spec.mlp.experts;
  json["experts_per_token"] = facts.spec.mlp.experts_per_token;
  json["attention_sink"] = nullptr;
  if (facts.spec.attention_sink == AttentionSink::kSoftmax1) json["attention_sink"] = "softmax1";
  if (facts.spec.attention_sink == AttentionSink::kLearned) json["attention_sink"] = "learned";
  json["sink_token_id"] = nullptr;
  if (facts.spec.sink_token) json["sink_token_id"] = *facts.spec.sink_token;
  json["quantization"] = nlohmann::ordered_json::array();
  for (const LayerQuantization& quantization : facts.spec.quantization.Distinct()) {
    json["quantization"].push_back(Describe(quantization));
  }
  json["tokenizer"] = TextJson(facts);
  json["weights"] = {{"present", facts.has_weights},
                     {"file_bytes", facts.weights.file_bytes},
                     {"loaded_bytes", nullptr},
                     {"type", nullptr},
                     {"rounded", facts.weights.roundings}};
  if (facts.weights.loaded_bytes) {
    json["weights"]["loaded_bytes"] = *facts.weights.loaded_bytes;
    json["weights"]["type"] = StorageName(*facts.weights.loaded_types);
  }
  if (facts.gpu) {
    const GpuPlan& plan = facts.gpu->plan;
    json["gpu"] = {{"memory_bytes", facts.gpu->limit_bytes},
                   {"layers", plan.layers},
                   {"host_mlps", plan.host_mlps},
                   {"shared_mlps", plan.shared_mlps},
                   {"head", plan.head},
                   {"weight_bytes", plan.weight_bytes},
                   {"step_bytes", plan.scratch_bytes},
                   {"window_bytes", plan.window_bytes},
                   {"host_weight_bytes", facts.WeightBytesHere()},
                   {"problem", facts.gpu->problem}};
  }
  if (facts.draft) {
    json["draft_model"] = {{"name", facts.draft->name},
                           {"loaded_bytes", facts.draft->weight_bytes()},
                           {"max_context", DefaultContext(facts.draft->spec)}};
  }
  for (const auto& [name, type] : kKvTypes) {
    const AttentionGeometry geometry = Geometry(facts.weights.spec);
    if (!CanBeStored(geometry, type)) continue;
    json["kv"][name] = {{"bytes_per_token", LayoutOf(geometry, type).bytes_per_token()},
                        {"largest_context", facts.LargestContextIn(machine, type)}};
  }
  json["memory"] = {{"total_bytes", machine.memory.total_bytes},
                    {"available_bytes", machine.memory.available_bytes}};
  json["isa"] = machine.isa.name;
  json["supported_isas"] = SupportedIsas();
  json["threads"] = machine.threads;
  json["tensors"] = nlohmann::ordered_json::array();
  for (const std::string& name : facts.source.Names()) {
    const TensorInfo& tensor = *facts.source.Find(name);
    json["tensors"].push_back({{"name", name},
                               {"dtype", tensor.dtype_name},
                               {"shape", tensor.shape},
                               {"bytes", tensor.bytes.size()}});
  }
  return console::JsonText(json);
}

}  // namespace

int Inspect(std::span<const std::string> arguments) {
  InspectOptions options = ParseInspect(arguments);
  if (!options.kvs.empty()) {
    ExplainKv(std::move(options));
    return console::kExitOk;
  }
  if (options.layers) {
    std::vector<std::string> words = {"inspect"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    ExecLab(words);
  }
  ChooseModel(options.model);
  const Machine machine{.memory = ReadMachineMemory(),
                        .isa = kernels::SelectIsa(options.model.isa),
                        .threads = ThreadsFor(options.model.threads)};
  const ModelFacts facts(options.model);
  WarnAboutSpec(facts.spec);
  for (const std::string& warning : facts.special.warnings) {
    console::WriteNotice("godwit: warning: " + warning + "\n");
  }
  console::WriteOutput(options.json ? InspectJson(facts, machine)
                                    : InspectText(facts, machine, options.tensors));
  if (!facts.weights.problem.empty()) throw Error(ErrorKind::kFormat, facts.weights.problem);
  return console::kExitOk;
}

}  // namespace godwit::cli
