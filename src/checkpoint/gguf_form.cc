#include "checkpoint/gguf_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "checkpoint/gguf_model_keys.h"
#include "checkpoint/gguf_text_keys.h"
#include "checkpoint/spec_difference.h"
#include "model/archs/all.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_config.h"
#include "model/gguf_row_orders.h"
#include "weights/tensor_rows.h"

namespace godwit {
namespace {

std::vector<const GgufFamily*> FamiliesOf(const std::string& model_type) {
  std::vector<const GgufFamily*> families;
  for (const GgufFamily* family : AllGgufFamilies()) {
    // InternLM2's own files have other tensors than the model that its name in GGUF stands for.
    if (family->architecture == "internlm2") continue;
    const auto& others = family->other_types;
    if (family->model_type == model_type || std::ranges::find(others, model_type) != others.end()) {
      families.push_back(family);
    }
  }
  return families;
}

// A matrix that loading cuts into heads, so blocks would not do.
constexpr std::string_view kSplitByHeads = "attn_kv_b";

// Whether one tensor in GGUF holds several of Hugging Face's.
bool IsMerged(const GgufName& name) {
  return name.rows == GgufRows::kExperts || name.rows == GgufRows::kHeads ||
         name.rows == GgufRows::kHeadMatrices;
}

// The tensors of a model under the names that a family gives them in GGUF.
class Naming {
 public:
  Naming(const ModelFolder& model, const GgufFamily& family)
      : spec_(model.spec()), source_(model.weights()), family_(family) {
    shape_ = {.vocab_size = spec_.vocab_size,
              .heads = spec_.heads,
              .kv_heads = spec_.kv_heads,
              .head_dim = spec_.head_dim};
    const std::string embedding = spec_.names.embedding + ".weight";
    stripped_ = source_.Find(embedding) == nullptr && embedding.starts_with(spec_.names.prefix) &&
                source_.Find(embedding.substr(spec_.names.prefix.size())) != nullptr;
  }

  std::vector<GgufPart> Take() {
    for (const GgufName& name : family_.whole) Add(name, name.gguf, 0);
    for (int64_t layer = 0; layer < spec_.layers; ++layer) {
      for (const GgufName& name : family_.layers) {
        Add(name, fmt::format("blk.{}.{}", layer, name.gguf), layer);
      }
    }
    return std::move(parts_);
  }

  // Keys that hold numbers of all layers, which are tensors in the model.
  std::vector<std::pair<std::string, std::vector<float>>> TakeLists() {
    std::vector<std::pair<std::string, std::vector<float>>> lists;
    for (const GgufName& name : family_.lists) {
      std::vector<float> numbers;
      for (int64_t layer = 0; layer < spec_.layers; ++layer) {
        const TensorInfo* tensor = Find(fmt::format(fmt::runtime(name.hf), layer));
        if (tensor != nullptr) numbers.push_back(ReadAllRows(*tensor).front());
      }
      lists.emplace_back(name.gguf, std::move(numbers));
    }
    return lists;
  }

  // A tensor of the model that has no name in GGUF. Empty: all have one.
  std::string Left() const {
    for (const std::string& name : source_.Names()) {
      if (taken_.contains(name)) continue;
      const bool harmless = std::ranges::any_of(
          spec_.names.harmless, [&](const std::string& ending) { return name.ends_with(ending); });
      const bool other = std::ranges::any_of(
          spec_.names.others, [&](const std::string& begin) { return name.starts_with(begin); });
      if (harmless || other || (spec_.tied_head && name == spec_.names.head + ".weight")) continue;
      return name;
    }
    return "";
  }

 private:
  const TensorInfo* Find(const std::string& name) {
    const bool strip = stripped_ && name.starts_with(spec_.names.prefix);
    const TensorInfo* tensor = source_.Find(strip ? name.substr(spec_.names.prefix.size()) : name);
    if (tensor != nullptr) taken_.insert(tensor->name);
    return tensor;
  }

  void Add(const GgufName& name, std::string_view gguf, int64_t layer) {
    if (spec_.tied_head && gguf == "output") return;
    // Gate and up are written apart.
    if (name.rows == GgufRows::kFirstHalves || name.rows == GgufRows::kSecondHalves) return;
    if (!name.only_ending.empty()) return AddEnding(name, gguf, name.only_ending, "", layer);
    for (const char* ending : {".weight", ".bias"}) AddEnding(name, gguf, ending, ending, layer);
  }

  // ending, own_ending: of the name in GGUF and in Hugging Face's files.
  void AddEnding(const GgufName& name, std::string_view gguf, std::string_view ending,
                 const std::string& own_ending, int64_t layer) {
    const bool several = IsMerged(name);
    GgufPart part{.name = fmt::format("{}{}", gguf, ending)};
    for (int64_t i = 0; i == 0 || (several && !part.sources.empty()); ++i) {
      const TensorInfo* tensor = Find(fmt::format(fmt::runtime(name.hf), layer, i) + own_ending);
      if (tensor == nullptr) break;
      part.sources.push_back(tensor);
    }
    if (!part.sources.empty()) Complete(name, std::move(part));
  }

  void Complete(const GgufName& name, GgufPart part) {
    const TensorInfo& first = *part.sources.front();
    part.shape = first.shape;
    // ERNIE's bias of the choice of experts is a matrix of one row.
    const bool taps = name.rows == GgufRows::kTaps;
    if (taps || !name.only_ending.empty()) std::erase(part.shape, 1);
    if (IsMerged(name)) {
      part.shape.insert(part.shape.begin(), std::ssize(part.sources));
    } else if (!first.shape.empty()) {
      part.rows = GgufRowOrder(name.rows, shape_, first.shape[0]);
    }
    const bool norm = name.gguf.find("norm") != std::string_view::npos;
    if (norm && spec_.norm_gain_less_one && part.name.ends_with(".weight")) part.added = 1;
    // A router's choices are not continuous, so its matrix stays as it is.
    part.matrix = part.shape.size() >= 2 && !norm && !taps && !part.name.ends_with(".bias") &&
                  name.gguf != "ffn_gate_inp" && name.gguf != kSplitByHeads;
    part.outer = !part.name.starts_with("blk.");
    parts_.push_back(std::move(part));
  }

  const DecoderSpec& spec_;
  const WeightSource& source_;
  const GgufFamily& family_;
  GgufShape shape_;
  bool stripped_ = false;
  std::set<std::string, std::less<>> taken_;
  std::vector<GgufPart> parts_;
};

// The first property of the model that a reader of the keys would get wrong.
std::optional<std::string> Difference(const DecoderSpec& spec, const GgufForm& form) {
  const std::string header = GgufHeader(form.keys, {});
  const auto bytes = std::as_bytes(std::span(header.data(), header.size()));
  GgufFiles files{.files = {},
                  .metadata = GgufMetadata(ParseGguf(bytes, "GGUF").values, "GGUF"),
                  .tensors = {}};
  for (const GgufPart& part : form.tensors) {
    files.tensors.push_back({.name = part.name,
                             .dtype = DType::kF32,
                             .dtype_name = "F32",
                             .shape = part.shape,
                             .bytes = std::as_bytes(std::span(part.values))});
  }
  const GgufFamily& family = FindGgufFamily(files.metadata, HasSecondAttentionNorm(files));
  const std::string config = GgufConfig(files, ShapeOf(files, family), family);
  return SpecDifference(spec, DescribeModel(HfConfig::Parse(config, "GGUF")));
}

[[noreturn]] void RefuseForm(const ModelFolder& model, std::string_view why) {
  Throw(ErrorKind::kUnsupported, "{}: this model cannot be written as GGUF: {}",
        QuoteUnlessPlain(model.path()), why);
}

// Whether a tensor of the folder holds the matrices of all experts of a layer.
bool HasStackedExperts(const ModelFolder& model) {
  const DecoderSpec& spec = model.spec();
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const MlpSpec& mlp = KindOf(spec, layer).mlp;
    if (mlp.experts == 0 || !mlp.stacked) continue;
    const std::string down = fmt::format(fmt::runtime(spec.names.per_expert_down), layer, 0);
    return model.weights().Find(down + ".weight") == nullptr;
  }
  return false;
}

// Returns the families whose form the model may have.
std::vector<const GgufFamily*> FamiliesToWrite(const ModelFolder& model) {
  std::vector<const GgufFamily*> families = FamiliesOf(model.config().model_type());
  if (families.empty()) {
    std::set<std::string_view> known;
    for (const GgufFamily* each : AllGgufFamilies()) {
      if (!each->read_only.empty()) continue;
      known.insert(each->model_type);
      known.insert(each->other_types.begin(), each->other_types.end());
    }
    known.erase(std::string_view());
    RefuseForm(model, fmt::format("expected one of the families {}, found {}",
                                  fmt::join(known, ", "), Quote(model.config().model_type())));
  }
  const std::string_view read_only = families.front()->read_only;
  std::erase_if(families, [](const GgufFamily* family) { return !family->read_only.empty(); });
  if (families.empty()) RefuseForm(model, read_only);
  if (HasStackedExperts(model)) {
    RefuseForm(
        model,
        "a tensor of this folder holds all experts of a layer, and only experts with tensors "
        "of their own are written");
  }
  return families;
}

}  // namespace

GgufForm GgufFormOf(const ModelFolder& model) {
  const DecoderSpec& spec = model.spec();
  const std::vector<const GgufFamily*> families = FamiliesToWrite(model);
  (void)model.tensors();  // throws for all faults of the tensors
  std::string left;
  const GgufFamily* family = nullptr;
  std::vector<GgufPart> tensors;
  std::vector<std::pair<std::string, std::vector<float>>> lists;
  for (const GgufFamily* candidate : families) {
    Naming naming(model, *candidate);
    tensors = naming.Take();
    lists = naming.TakeLists();
    left = naming.Left();
    family = candidate;
    if (left.empty()) break;
  }
  if (!left.empty())
    RefuseForm(model, fmt::format("GGUF has no name for its tensor {}", Quote(left)));

  std::optional<std::string> difference;
  for (const bool says_windows : {false, true}) {
    GgufForm form;
    PutModelKeys(model, family->architecture, says_windows, form.keys);
    for (const auto& [key, numbers] : lists) form.keys.F32s(key, numbers);
    form.tensors = tensors;
    for (auto& [name, values] : RopeFactorTensors(spec)) {
      form.tensors.push_back({.name = name,
                              .shape = {std::ssize(values)},
                              .sources = {},
                              .rows = {},
                              .values = std::move(values)});
    }
    try {
      difference = Difference(spec, form);
    } catch (const Error& error) {
      // The form is refused because our own reader would refuse it.
      RefuseForm(model, error.what());
    }
    if (difference) continue;
    form.warnings = PutTextKeys(model, form.keys);
    if (HasPrediction(spec, model.weights())) {
      form.warnings.push_back("its layer that predicts tokens is left out");
    }
    return form;
  }
  RefuseForm(model, "no GGUF key holds " + *difference);
}

}  // namespace godwit
