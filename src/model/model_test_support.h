// Shared parts of this room's tests: a checkpoint in memory, made for a spec, that a test then
// damages; small specs; and a runner. Only *_test.cc files include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "attention/make_policy.h"
#include "base/rng.h"
#include "base/test_support.h"
#include "kernels/dispatch.h"
#include "model/archs/all.h"
#include "model/decoder.h"
#include "model/loader.h"

namespace godwit {

// The specs of small models, as their families describe them.
inline DecoderSpec SmallSpec(const std::string& fields) {
  return DescribeModel(HfConfig::Parse(
      R"({"vocab_size":11,"hidden_size":16,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("intermediate_size":10,"max_position_embeddings":64,)" +
          fields + "}",
      "config.json"));
}
inline DecoderSpec SmallSpecOf(const std::string& type, const std::string& fields = "") {
  return SmallSpec(
      fmt::format(R"("model_type":"{}"{}{})", type, fields.empty() ? "" : ",", fields));
}
inline DecoderSpec SmallLlama() {
  return SmallSpec(R"("model_type":"llama","num_key_value_heads":2,"attention_bias":true)");
}

// The window of each layer, the dimensions of a head that rotate in it, and its experts.
inline std::vector<int64_t> WindowsOf(const DecoderSpec& spec) {
  return OfEachLayer(spec, &LayerKind::window);
}
inline std::vector<int64_t> RotaryDimsOf(const DecoderSpec& spec) {
  return OfEachLayer(spec, [](const LayerKind& kind) { return kind.rotary.rotary_dim; });
}
inline std::vector<int64_t> ExpertsOf(const DecoderSpec& spec) {
  return OfEachLayer(spec, [](const LayerKind& kind) { return kind.mlp.experts; });
}

class FakeWeights : public WeightSource {
 public:
  FakeWeights() = default;
  // Every tensor of a spec with separate q, k and v, and random contents.
  explicit FakeWeights(const DecoderSpec& spec, DType dtype = DType::kF32) {
    const ModuleNames& names = spec.names;
    const int64_t hidden = spec.hidden_size, mlp = spec.mlp.intermediate;
    const int64_t q = spec.heads * spec.head_dim, kv = spec.kv_heads * spec.head_dim;
    Add(names.embedding + ".weight", dtype, {spec.vocab_size, hidden});
    if (!spec.tied_head) Add(names.head + ".weight", dtype, {spec.vocab_size, hidden});
    Add(names.final_norm + ".weight", dtype, {hidden});
    for (int64_t i = 0; i < spec.layers; ++i) {
      const auto name = [i](const std::string& pattern, const char* end = ".weight") {
        return fmt::format(fmt::runtime(pattern), i) + end;
      };
      Add(name(names.attention_norm), dtype, {hidden});
      Add(name(names.mlp_norm), dtype, {hidden});
      for (const auto& [module, rows] : {std::pair{names.q, q}, {names.k, kv}, {names.v, kv}}) {
        Add(name(module), dtype, {rows, hidden});
        if (spec.qkv_bias) Add(name(module, ".bias"), dtype, {rows});
      }
      Add(name(names.attention_out), dtype, {hidden, q});
      if (spec.attention_out_bias) Add(name(names.attention_out, ".bias"), dtype, {hidden});
      if (spec.mlp.experts > 0) Add(name(names.router), dtype, {spec.mlp.experts, hidden});
      if (spec.output_norms) {
        Add(name(names.attention_out_norm), dtype, {hidden});
        Add(name(names.mlp_out_norm), dtype, {hidden});
      }
      if (const int64_t shared = spec.shared_mlp.intermediate; shared > 0) {
        Add(name(names.shared_gate), dtype, {shared, hidden});
        Add(name(names.shared_up), dtype, {shared, hidden});
        Add(name(names.shared_down), dtype, {hidden, shared});
      }
      if (spec.shared_gated) Add(name(names.shared_share), dtype, {1, hidden});
      for (int64_t expert = 0; expert < std::max<int64_t>(1, spec.mlp.experts); ++expert) {
        const auto part = [&](const std::string& pattern) {
          return fmt::format(fmt::runtime(pattern), i, expert) + ".weight";
        };
        Add(part(names.gate), dtype, {mlp, hidden});
        Add(part(names.up), dtype, {mlp, hidden});
        Add(part(names.down), dtype, {hidden, mlp});
      }
    }
  }

  void Add(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
    Entry& entry = entries_[name];
    entry.info = {.name = name,
                  .dtype = dtype,
                  .dtype_name = std::string(Name(dtype)),
                  .shape = shape,
                  .file = "memory"};
    entry.bytes.resize(static_cast<size_t>(entry.info.NumElements()) * SizeOf(dtype));
    entry.info.bytes = entry.bytes;
    names_.push_back(name);
    for (int64_t i = 0; i < entry.info.NumElements(); ++i) {
      const double uniform = Uniform(std::hash<std::string>()(name), 0, i, 0);
      Set(name, i, static_cast<float>(uniform - 0.5));
    }
  }

  // Turns the F32 weight of a module into int8 with a scale for each output, 1/127 of its largest
  // weight.
  void Quantize(const std::string& module) {
    const TensorInfo weight = *Find(module + ".weight");
    const std::vector<std::byte> bytes = Bytes(module + ".weight");
    Remove(module + ".weight");
    Add(module + ".weight", DType::kI8, weight.shape);
    Add(module + ".weight_scale", DType::kF32, {weight.shape[0], 1});
    for (int64_t row = 0; row < weight.shape[0]; ++row) {
      const auto* x = reinterpret_cast<const float*>(bytes.data()) + row * weight.shape[1];
      float largest = 0;
      for (int64_t i = 0; i < weight.shape[1]; ++i) largest = std::max(largest, std::fabs(x[i]));
      const float scale = largest / 127;
      Set(module + ".weight_scale", row, scale);
      for (int64_t i = 0; i < weight.shape[1]; ++i) {
        Set(module + ".weight", row * weight.shape[1] + i, std::nearbyint(x[i] / scale));
      }
    }
  }

  void Remove(const std::string& name) {
    entries_.erase(name);
    std::erase(names_, name);
  }

  // A type of the file format that the engine does not compute with.
  void Retype(const std::string& name, const std::string& dtype_name) {
    entries_.at(name).info.dtype.reset();
    entries_.at(name).info.dtype_name = dtype_name;
  }

  // Says that the tensor is this large; it must not be read.
  void PretendSize(const std::string& name, size_t bytes) {
    TensorInfo& info = entries_.at(name).info;
    info.bytes = {info.bytes.data(), bytes};
  }

  // Element by element; other types than floats and I8 stay zero.
  void Set(const std::string& name, int64_t index, float value) {
    Entry& entry = entries_.at(name);
    const DType dtype = *entry.info.dtype;
    std::byte* to = entry.bytes.data() + static_cast<size_t>(index) * SizeOf(dtype);
    if (dtype == DType::kF32) std::memcpy(to, &value, sizeof(value));
    if (dtype == DType::kF16) *reinterpret_cast<F16*>(to) = ToF16(value);
    if (dtype == DType::kBF16) *reinterpret_cast<BF16*>(to) = ToBF16(value);
    if (dtype == DType::kI8) *reinterpret_cast<int8_t*>(to) = static_cast<int8_t>(value);
  }

  std::vector<std::byte>& Bytes(const std::string& name) { return entries_.at(name).bytes; }

  int64_t total_bytes() const {
    int64_t total = 0;
    for (const auto& [name, entry] : entries_) total += std::ssize(entry.bytes);
    return total;
  }
  const std::set<std::string>& released() const { return released_; }

  const TensorInfo* Find(std::string_view name) const override {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second.info;
  }
  const std::vector<std::string>& Names() const override { return names_; }
  const std::map<std::string, std::string, std::less<>>& Metadata() const override {
    return metadata_;
  }
  void Release(const TensorInfo& tensor) const override { released_.insert(tensor.name); }

 private:
  struct Entry {
    TensorInfo info;
    std::vector<std::byte> bytes;
  };

  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> names_;
  std::map<std::string, std::string, std::less<>> metadata_;
  mutable std::set<std::string> released_;
};

inline std::unique_ptr<Decoder> Load(const DecoderSpec& spec, const WeightSource& source,
                                     const LoadHooks& hooks = {},
                                     std::optional<DType> storage = std::nullopt) {
  ThreadPool pool(2);
  return LoadDecoder(spec, source, pool, hooks, storage);
}

inline std::unique_ptr<TextCache> DenseText(const DecoderSpec& spec, int64_t context = 64) {
  return MakeTextCache(Geometry(spec), {.kv_type = DType::kF32, .context = context});
}

// One step of all segments; the logits of every token.
inline std::vector<float> Step(const Decoder& decoder, const std::vector<Segment>& segments,
                               const CancelToken* cancel = nullptr,
                               const LinearObserver* observer = nullptr) {
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool,
                  .kernels = *kernels::SelectIsa("").table,
                  .workspace = workspace,
                  .cancel = cancel,
                  .observer = observer};
  int64_t rows = 0;
  for (const Segment& segment : segments) rows += std::ssize(segment.tokens);
  const int64_t hidden_size = decoder.hidden_size(), vocab = decoder.vocab_size();
  std::vector<float> hidden(rows * hidden_size);
  std::vector<float> logits(rows * vocab);
  decoder.Forward(exec, segments, {hidden.data(), rows, hidden_size, hidden_size});
  decoder.Logits(exec, {hidden.data(), rows, hidden_size, hidden_size},
                 {logits.data(), rows, vocab, vocab});
  return logits;
}

inline std::vector<float> LogitsOf(const Decoder& decoder, const std::vector<int32_t>& tokens) {
  const auto text = DenseText(decoder.spec());
  return Step(decoder, {{tokens, text.get()}});
}

}  // namespace godwit
