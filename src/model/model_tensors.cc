#include "model/model_tensors.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/problem_list.h"
#include "base/quote.h"

namespace godwit {
namespace {

// Finds what the spec asks for and collects what is wrong with the checkpoint.
class Resolver {
 public:
  Resolver(const DecoderSpec& spec, const WeightSource& source) : spec_(spec), source_(source) {}

  ModelTensors Resolve();
  // Looks for everything without a word about what is missing: name -> shape.
  std::map<std::string, std::vector<int64_t>, std::less<>> Wanted();

 private:
  ModelTensors FindAll();
  const TensorInfo* Want(const std::string& name, const std::vector<int64_t>& shape);
  LinearTensors Linear(const std::vector<std::pair<std::string, int64_t>>& parts, int64_t inputs,
                       bool bias);
  NormTensors Norm(const std::string& module, int64_t size, bool bias);
  LayerTensors Layer(int64_t index);
  void ReportUnexpected();

  const DecoderSpec& spec_;
  const WeightSource& source_;
  // All of a checkpoint's: they are looked for in it by name.
  ProblemList problems_{10000};
  std::map<std::string, std::vector<int64_t>, std::less<>> wanted_;
};

bool IsFloat(const TensorInfo& tensor) {
  return tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
}

const TensorInfo* Resolver::Want(const std::string& name, const std::vector<int64_t>& shape) {
  wanted_.emplace(name, shape);
  const TensorInfo* tensor = source_.Find(name);
  if (tensor == nullptr) {
    problems_.Add("missing tensor {}, expected [{}]", name, fmt::join(shape, ", "));
    return nullptr;
  }
  if (!IsFloat(*tensor)) {
    problems_.Add("tensor {} has type {}, expected F32, F16 or BF16", name, tensor->dtype_name);
  }
  if (tensor->shape != shape) {
    problems_.Add("tensor {} has shape [{}], expected [{}]", name, fmt::join(tensor->shape, ", "),
                  fmt::join(shape, ", "));
  }
  return tensor;
}

LinearTensors Resolver::Linear(const std::vector<std::pair<std::string, int64_t>>& parts,
                               int64_t inputs, bool bias) {
  LinearTensors linear;
  for (const auto& [module, outputs] : parts) {
    linear.parts.push_back(Want(module + ".weight", {outputs, inputs}));
    if (bias) linear.biases.push_back(Want(module + ".bias", {outputs}));
    const TensorInfo* first = linear.parts.front();
    const TensorInfo* part = linear.parts.back();
    if (first != nullptr && part != nullptr && first->dtype != part->dtype) {
      problems_.Add("tensor {} has type {}, expected {} like {}, with which it is fused",
                    part->name, part->dtype_name, first->dtype_name, first->name);
    }
  }
  return linear;
}

NormTensors Resolver::Norm(const std::string& module, int64_t size, bool bias) {
  return {.weight = Want(module + ".weight", {size}),
          .bias = bias ? Want(module + ".bias", {size}) : nullptr};
}

LayerTensors Resolver::Layer(int64_t index) {
  const auto name = [index](const std::string& pattern) {
    return fmt::format(fmt::runtime(pattern), index);
  };
  const ModuleNames& names = spec_.names;
  const int64_t q_rows = spec_.heads * spec_.head_dim;
  const int64_t kv_rows = spec_.kv_heads * spec_.head_dim;
  const int64_t hidden = spec_.hidden_size;
  const int64_t intermediate = spec_.mlp.intermediate;

  LayerTensors layer;
  layer.attention_norm = Norm(name(names.attention_norm), hidden, spec_.norm_bias);
  if (spec_.topology != Topology::kParallelSharedNorm) {
    layer.mlp_norm = Norm(name(names.mlp_norm), hidden, spec_.norm_bias);
  }
  if (spec_.qkv_layout == QkvLayout::kSeparate) {
    layer.qkv =
        Linear({{name(names.q), q_rows}, {name(names.k), kv_rows}, {name(names.v), kv_rows}},
               hidden, spec_.qkv_bias);
  } else {
    layer.qkv = Linear({{name(names.qkv), q_rows + 2 * kv_rows}}, hidden, spec_.qkv_bias);
    layer.qkv.grouped = spec_.qkv_layout == QkvLayout::kGrouped;
  }
  if (spec_.qk_norm) {
    layer.q_norm = Norm(name(names.q_norm), spec_.head_dim, false);
    layer.k_norm = Norm(name(names.k_norm), spec_.head_dim, false);
  }
  layer.attention_out =
      Linear({{name(names.attention_out), hidden}}, q_rows, spec_.attention_out_bias);
  std::vector<std::pair<std::string, int64_t>> up;
  if (spec_.mlp.gated) up.emplace_back(name(names.gate), intermediate);
  up.emplace_back(name(names.up), intermediate);
  layer.up = Linear(up, hidden, spec_.mlp.bias);
  layer.down = Linear({{name(names.down), hidden}}, intermediate, spec_.mlp.bias);
  return layer;
}

ModelTensors Resolver::FindAll() {
  ModelTensors tensors;
  const std::string& head = spec_.tied_head ? spec_.names.embedding : spec_.names.head;
  tensors.head = Linear({{head, spec_.vocab_size}}, spec_.hidden_size, false);
  tensors.embedding = spec_.tied_head ? nullptr
                                      : Want(spec_.names.embedding + ".weight",
                                             {spec_.vocab_size, spec_.hidden_size});
  for (int64_t i = 0; i < spec_.layers; ++i) tensors.layers.push_back(Layer(i));
  tensors.final_norm = Norm(spec_.names.final_norm, spec_.hidden_size, spec_.norm_bias);
  return tensors;
}

std::map<std::string, std::vector<int64_t>, std::less<>> Resolver::Wanted() {
  FindAll();
  return std::move(wanted_);
}

ModelTensors Resolver::Resolve() {
  ModelTensors tensors = FindAll();
  ReportUnexpected();
  problems_.ThrowIfAny(ErrorKind::kFormat,
                       fmt::format("this checkpoint is not a {} model as its config.json "
                                   "describes it",
                                   spec_.family));
  for (const auto& [name, shape] : wanted_) {
    tensors.bytes += static_cast<int64_t>(source_.Find(name)->bytes.size());
  }
  return tensors;
}

void Resolver::ReportUnexpected() {
  std::vector<std::string> harmless = spec_.names.harmless;
  // Saved by some tools although the head is the embedding.
  if (spec_.tied_head) harmless.push_back(spec_.names.head + ".weight");
  for (const std::string& name : source_.Names()) {
    if (wanted_.contains(name)) continue;
    const bool known = std::any_of(harmless.begin(), harmless.end(),
                                   [&](const std::string& end) { return name.ends_with(end); });
    if (!known) {
      problems_.Add("unexpected tensor {}, {}", Quote(name), source_.Find(name)->Describe());
    }
  }
}

class NoWeights : public WeightSource {
 public:
  const TensorInfo* Find(std::string_view) const override { return nullptr; }
  const std::vector<std::string>& Names() const override { return names_; }
  const std::map<std::string, std::string, std::less<>>& Metadata() const override {
    return metadata_;
  }
  void Release(const TensorInfo&) const override {}

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace

std::vector<WantedTensor> WantedTensors(const DecoderSpec& spec) {
  const NoWeights none;
  std::vector<WantedTensor> tensors;
  for (auto& [name, shape] : Resolver(spec, none).Wanted()) {
    tensors.push_back({.name = name, .shape = std::move(shape)});
  }
  return tensors;
}

ModelTensors ResolveTensors(const DecoderSpec& spec, const WeightSource& source) {
  return Resolver(spec, source).Resolve();
}

}  // namespace godwit
