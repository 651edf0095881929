#include "model/loader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "model/model_tensors.h"
#include "ops/pack_weight.h"

namespace godwit {
namespace {

template <typename T>
bool HasNan(const std::byte* bytes, int64_t n, T exponent, T sign) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) {
    T bits;
    std::memcpy(&bits, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    found |= static_cast<T>(bits & static_cast<T>(~sign)) > exponent;
  }
  return found;
}

bool HasNan(DType dtype, const std::byte* bytes, int64_t n) {
  switch (dtype) {
    case DType::kF16:
      return HasNan<uint16_t>(bytes, n, 0x7c00, 0x8000);
    case DType::kBF16:
      return HasNan<uint16_t>(bytes, n, 0x7f80, 0x8000);
    default:
      return HasNan<uint32_t>(bytes, n, 0x7f800000, 0x80000000);
  }
}

float ReadFloat(DType dtype, const std::byte* element) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, element, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, element, sizeof(bits));
  return dtype == DType::kF16 ? ToFloat(F16{bits}) : ToFloat(BF16{bits});
}

// The system would promise more than it has and take the process down later. Held to all of the
// memory, not to what is free: page caches, the checkpoint's own among them, give way.
void CheckWeightsFit(int64_t bytes) {
  const int64_t total = ReadMachineMemory().total_bytes;
  if (bytes > total) {
    Throw(ErrorKind::kMemory, "the weights take {}, and this machine has {}", FormatBytes(bytes),
          FormatBytes(total));
  }
}

std::vector<float> SinkLogits(const DecoderSpec& spec) {
  if (spec.attention_sink == AttentionSink::kNone) return {};
  return std::vector<float>(static_cast<size_t>(spec.heads), 0.0f);
}

// Packs what the resolver found.
class Packer {
 public:
  Packer(const DecoderSpec& spec, const WeightSource& source, ThreadPool& pool,
         const LoadHooks& hooks, std::optional<DType> storage,
         const ops::SimulatedScheme* simulated)
      : spec_(spec),
        source_(source),
        pool_(pool),
        hooks_(hooks),
        storage_(storage),
        simulated_(simulated) {}

  DecoderWeights Pack(const ModelTensors& tensors);

 private:
  DecoderLayer Layer(const LayerTensors& tensors);
  Weight Linear(const LinearTensors& tensors);
  // Of a block: those that quantization schemes are about.
  Weight BlockLinear(const LinearTensors& tensors);
  Weight RouterIn32Bits(const LinearTensors& tensors);
  std::vector<ops::Expert> Experts(const std::vector<MlpTensors>& experts);
  // Which row of all parts' rows the packed output is.
  int64_t SourceRow(const LinearTensors& tensors, int64_t output) const;
  Table Rows(const TensorInfo& tensor);
  ops::NormWeights Norm(const NormTensors& tensors);
  std::vector<float> Floats(const TensorInfo& tensor);
  void Done(const TensorInfo& tensor, bool has_nan);
  void WarnIfUntied(const TensorInfo& embedding) const;

  const DecoderSpec& spec_;
  const WeightSource& source_;
  ThreadPool& pool_;
  const LoadHooks& hooks_;
  std::optional<DType> storage_;
  const ops::SimulatedScheme* simulated_;
  int64_t done_bytes_ = 0;
  int64_t total_bytes_ = 0;
};

int64_t Packer::SourceRow(const LinearTensors& tensors, int64_t output) const {
  const int64_t dim = spec_.head_dim;
  if (tensors.interleaved && output < (spec_.heads + spec_.kv_heads) * dim) {
    const int64_t half = spec_.rotary.rotary_dim / 2;
    const int64_t d = output % dim;
    if (d < 2 * half) output += (d < half ? 2 * d : 2 * (d - half) + 1) - d;
  }
  if (!tensors.grouped) return output;
  const int64_t group = spec_.heads / spec_.kv_heads;
  const int64_t head = output / dim;
  int64_t kv_head = head / group;
  int64_t place = head % group;  // in its group: query heads, key, value
  if (head >= spec_.heads) {
    kv_head = (head - spec_.heads) % spec_.kv_heads;
    place = group + (head - spec_.heads) / spec_.kv_heads;
  }
  return (kv_head * (group + 2) + place) * dim + output % dim;
}

Weight Packer::Linear(const LinearTensors& tensors) {
  if (tensors.parts.empty()) return {};
  const TensorInfo& first = *tensors.parts.front();
  const int64_t inputs = first.shape[1];
  const int64_t row_bytes = inputs * static_cast<int64_t>(SizeOf(*first.dtype));
  std::vector<int64_t> ends;  // of every part, in outputs
  for (const TensorInfo* part : tensors.parts) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + part->shape[0]);
  }
  std::vector<std::atomic<bool>> nan(tensors.parts.size());
  const auto row = [&](int64_t output) -> const void* {
    const int64_t source = SourceRow(tensors, output);
    const auto part =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), source) - ends.begin());
    const int64_t begin = part == 0 ? 0 : ends[part - 1];
    const std::byte* bytes = tensors.parts[part]->bytes.data() + (source - begin) * row_bytes;
    if (HasNan(*first.dtype, bytes, inputs)) nan[part] = true;
    return bytes;
  };
  Weight weight = ops::PackWeight(pool_, *first.dtype, ends.back(), inputs, row,
                                  storage_.value_or(*first.dtype));
  weight.name = first.name.substr(0, first.name.rfind(".weight"));
  for (size_t i = 0; i < tensors.parts.size(); ++i) Done(*tensors.parts[i], nan[i]);

  std::vector<float> bias;
  for (const TensorInfo* part : tensors.biases) {
    const std::vector<float> values = Floats(*part);
    bias.insert(bias.end(), values.begin(), values.end());
  }
  weight.bias.resize(bias.size());
  for (size_t i = 0; i < bias.size(); ++i) {
    weight.bias[i] = bias[static_cast<size_t>(SourceRow(tensors, static_cast<int64_t>(i)))];
  }
  return weight;
}

Weight Packer::BlockLinear(const LinearTensors& tensors) {
  if (simulated_ == nullptr || tensors.parts.empty()) return Linear(tensors);
  std::vector<int64_t> outputs;
  for (const TensorInfo* part : tensors.parts) outputs.push_back(part->shape[0]);
  return ops::Simulate(pool_, *simulated_, outputs, Linear(tensors));
}

// Narrow weights would have the activations rounded, and the router's scores with them.
Weight Packer::RouterIn32Bits(const LinearTensors& tensors) {
  const TensorInfo& router = *tensors.parts.front();
  const int64_t inputs = router.shape[1];
  const std::vector<float> values = Floats(router);
  return ops::PackWeight(
      pool_, DType::kF32, router.shape[0], inputs,
      [&](int64_t output) -> const void* { return values.data() + output * inputs; }, DType::kF32);
}

std::vector<ops::Expert> Packer::Experts(const std::vector<MlpTensors>& experts) {
  std::vector<ops::Expert> packed;
  for (const MlpTensors& expert : experts) {
    packed.push_back({.up = BlockLinear(expert.up), .down = BlockLinear(expert.down)});
  }
  return packed;
}

Table Packer::Rows(const TensorInfo& tensor) {
  Table table{.dtype = *tensor.dtype,
              .rows = tensor.shape[0],
              .cols = tensor.shape[1],
              .data = Buffer(static_cast<int64_t>(tensor.bytes.size()))};
  std::memcpy(table.data.data(), tensor.bytes.data(), tensor.bytes.size());
  Done(tensor, HasNan(*tensor.dtype, table.data.data(), tensor.NumElements()));
  return table;
}

ops::NormWeights Packer::Norm(const NormTensors& tensors) {
  ops::NormWeights norm{
      .kind = spec_.norm, .epsilon = spec_.norm_epsilon, .weight = {}, .bias = {}};
  norm.weight.assign(static_cast<size_t>(tensors.size), 1.0f);  // DecoderSpec::norm_gain
  if (tensors.weight != nullptr) norm.weight = Floats(*tensors.weight);
  if (tensors.bias != nullptr) norm.bias = Floats(*tensors.bias);
  return norm;
}

std::vector<float> Packer::Floats(const TensorInfo& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.NumElements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ReadFloat(*tensor.dtype, tensor.bytes.data() + i * SizeOf(*tensor.dtype));
  }
  Done(tensor, HasNan(*tensor.dtype, tensor.bytes.data(), tensor.NumElements()));
  return values;
}

void Packer::Done(const TensorInfo& tensor, bool has_nan) {
  if (has_nan && hooks_.warn) hooks_.warn(fmt::format("tensor {} holds NaN", tensor.name));
  source_.Release(tensor);
  done_bytes_ += static_cast<int64_t>(tensor.bytes.size());
  if (hooks_.progress) hooks_.progress(done_bytes_, total_bytes_);
  if (hooks_.cancel != nullptr) hooks_.cancel->ThrowIfCancelled();
}

// Some tools store the head of a tied model too. If it differs, one of the two files lies.
void Packer::WarnIfUntied(const TensorInfo& embedding) const {
  const TensorInfo* head = source_.Find(spec_.names.head + ".weight");
  if (!spec_.tied_head || head == nullptr || !hooks_.warn) return;
  if (!std::ranges::equal(head->bytes, embedding.bytes)) {
    hooks_.warn(fmt::format(
        "tensor {} differs from {}, but config.json ties them: the latter is used for both",
        head->name, embedding.name));
  }
  source_.Release(*head);
}

DecoderLayer Packer::Layer(const LayerTensors& tensors) {
  DecoderLayer layer;
  layer.attention_norm = Norm(tensors.attention_norm);
  layer.qkv = BlockLinear(tensors.qkv);
  layer.q_norm = Norm(tensors.q_norm);
  layer.k_norm = Norm(tensors.k_norm);
  layer.sink_logits = SinkLogits(spec_);
  layer.attention_out = BlockLinear(tensors.attention_out);
  layer.attention_out_norm = Norm(tensors.attention_out_norm);
  layer.mlp_norm = Norm(tensors.mlp_norm);
  layer.up = BlockLinear(tensors.mlp.up);
  layer.down = BlockLinear(tensors.mlp.down);
  layer.mlp_out_norm = Norm(tensors.mlp_out_norm);
  if (!tensors.experts.empty()) {
    layer.moe.router = RouterIn32Bits(tensors.router);
    layer.moe.experts = Experts(tensors.experts);
  }
  return layer;
}

DecoderWeights Packer::Pack(const ModelTensors& tensors) {
  WarnIfUntied(*tensors.head.parts[0]);
  total_bytes_ = tensors.bytes;
  DecoderWeights weights;
  if (tensors.embedding != nullptr) weights.embedding = Rows(*tensors.embedding);
  if (tensors.positions != nullptr) weights.positions = Rows(*tensors.positions);
  weights.embedding_norm = Norm(tensors.embedding_norm);
  weights.project_in = Linear(tensors.project_in);
  weights.project_out = Linear(tensors.project_out);
  for (const LayerTensors& layer : tensors.layers) {
    weights.layers.push_back(Layer(layer));
  }
  weights.final_norm = Norm(tensors.final_norm);
  weights.head = Linear(tensors.head);
  return weights;
}

}  // namespace

int64_t LoadedBytes(const ModelTensors& tensors, std::optional<DType> storage) {
  const auto packed = [&](const LinearTensors& linear) -> int64_t {
    if (linear.parts.empty()) return 0;
    int64_t outputs = 0;
    for (const TensorInfo* part : linear.parts) outputs += part->shape[0];
    const TensorInfo& first = *linear.parts.front();
    return ops::PackedBytes(storage.value_or(*first.dtype), outputs, first.shape[1]);
  };
  const auto packed_mlp = [&](const MlpTensors& mlp) { return packed(mlp.up) + packed(mlp.down); };
  int64_t bytes = packed(tensors.head) + packed(tensors.project_in) + packed(tensors.project_out);
  for (const TensorInfo* table : {tensors.embedding, tensors.positions}) {
    if (table != nullptr) bytes += static_cast<int64_t>(table->bytes.size());
  }
  for (const LayerTensors& layer : tensors.layers) {
    bytes += packed(layer.qkv) + packed(layer.attention_out) + packed_mlp(layer.mlp);
    if (layer.experts.empty()) continue;
    const std::vector<int64_t>& router = layer.router.parts.front()->shape;
    bytes += ops::PackedBytes(DType::kF32, router[0], router[1]);
    for (const MlpTensors& expert : layer.experts) bytes += packed_mlp(expert);
  }
  return bytes;
}

std::unique_ptr<Decoder> LoadDecoder(const DecoderSpec& spec, const WeightSource& source,
                                     ThreadPool& pool, const LoadHooks& hooks,
                                     std::optional<DType> storage,
                                     const ops::SimulatedScheme* simulated) {
  if (simulated != nullptr) storage = DType::kF32;
  const ModelTensors tensors = ResolveTensors(spec, source);
  CheckWeightsFit(LoadedBytes(tensors, storage));
  return std::make_unique<Decoder>(
      spec, Packer(spec, source, pool, hooks, storage, simulated).Pack(tensors));
}

}  // namespace godwit
