#include "model/eagle3_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "model/loaded_storage.h"
#include "ops/pack_weight.h"
#include "tensor/float_bytes.h"
#include "weights/open_weights.h"

namespace godwit {
namespace {

int64_t OutputsOf(const std::vector<const TensorInfo*>& parts) {
  int64_t outputs = 0;
  for (const TensorInfo* part : parts) outputs += part->shape[0];
  return outputs;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

Eagle3Folder::Eagle3Folder(const std::filesystem::path& folder, const DecoderSpec& model)
    : folder_(folder),
      spec_(ReadEagle3(HfConfig::Load(folder / "config.json"), model)),
      source_(OpenWeights(folder)),
      tensors_(FindTensors()),
      tokens_(ReadTokens()) {
  CheckKnownTokens(tokens_);
  RefuseOthers();
}

void Eagle3Folder::Refuse(const std::string& name, const std::string& expected,
                          const TensorInfo* found) const {
  Throw(ErrorKind::kFormat, "{}: tensor {} of the EAGLE-3 head: expected {}, found {}",
        QuoteUnlessPlain(folder_.native()), QuoteUnlessPlain(name), expected,
        found == nullptr ? "none" : found->Describe());
}

const TensorInfo* Eagle3Folder::Want(const std::string& name, const std::vector<int64_t>& shape) {
  known_.push_back(name);
  const TensorInfo* tensor = source_->Find(name);
  if (tensor == nullptr || !tensor->dtype || !IsFloat(*tensor->dtype) || tensor->shape != shape) {
    Refuse(name, fmt::format("floats [{}]", fmt::join(shape, ", ")), tensor);
  }
  return tensor;
}

Eagle3Folder::Tensors Eagle3Folder::FindTensors() {
  const int64_t hidden = spec_.hidden, inner = spec_.intermediate;
  const int64_t q = spec_.heads * spec_.head_dim, kv = spec_.kv_heads * spec_.head_dim;
  // Heads of vLLM's and NVIDIA's tools call the layer otherwise.
  const bool numbered = source_->Find("layers.0.self_attn.q_proj.weight") != nullptr;
  const auto of_layer = [&](std::string_view name) {
    return fmt::format("{}{}.weight", numbered ? "layers.0." : "midlayer.", name);
  };
  const auto linear = [&](std::string_view name, int64_t outputs, int64_t inputs) {
    return Want(of_layer(name), {outputs, inputs});
  };
  Tensors tensors{
      .reduce = {Want("fc.weight", {hidden, Eagle3Spec::kStates * spec_.model_hidden})},
      .query = {linear("self_attn.q_proj", q, 2 * hidden)},
      .kv = {linear("self_attn.k_proj", kv, 2 * hidden),
             linear("self_attn.v_proj", kv, 2 * hidden)},
      .out = {linear("self_attn.o_proj", hidden, q)},
      .gate_up = {linear("mlp.gate_proj", inner, hidden), linear("mlp.up_proj", inner, hidden)},
      .down = {linear("mlp.down_proj", hidden, inner)},
      .head = {Want("lm_head.weight", {spec_.draft_vocab, hidden})},
      .embedding_norm = Want(of_layer("input_layernorm"), {hidden}),
      .state_norm = Want(of_layer("hidden_norm"), {hidden}),
      .mlp_norm = Want(of_layer("post_attention_layernorm"), {hidden}),
      .norm = Want("norm.weight", {hidden})};
  // A head as wide as its model may leave the embedding out.
  const std::string embedding = "embed_tokens.weight";
  if (hidden != spec_.model_hidden || source_->Find(embedding) != nullptr) {
    tensors.embedding = Want(embedding, {spec_.vocab, hidden});
  }
  for (const Parts* parts : {&tensors.kv, &tensors.gate_up}) {
    if (parts->front()->dtype == parts->back()->dtype) continue;
    Refuse(parts->back()->name, "the type of " + parts->front()->name, parts->back());
  }
  return tensors;
}

// d2t has for each token of the head the difference of the model's number for it.
std::vector<int32_t> Eagle3Folder::ReadTokens() {
  known_.emplace_back("d2t");
  const TensorInfo* tensor = source_->Find("d2t");
  if (tensor == nullptr && spec_.draft_vocab == spec_.vocab) return {};
  const bool wide = tensor != nullptr && tensor->dtype_name == "I64";
  if (tensor == nullptr || (!wide && tensor->dtype_name != "I32") ||
      tensor->shape != std::vector{spec_.draft_vocab}) {
    Refuse("d2t", fmt::format("whole numbers (I64 or I32) [{}]", spec_.draft_vocab), tensor);
  }
  std::vector<int32_t> tokens;
  std::vector<bool> taken(static_cast<size_t>(spec_.vocab));
  for (int64_t draft = 0; draft < spec_.draft_vocab; ++draft) {
    int64_t difference = 0;
    int32_t narrow = 0;
    if (wide) {
      std::memcpy(&difference, &tensor->bytes[draft * sizeof(difference)], sizeof(difference));
    } else {
      std::memcpy(&narrow, &tensor->bytes[draft * sizeof(narrow)], sizeof(narrow));
      difference = narrow;
    }
    const bool inside = -draft <= difference && difference < spec_.vocab - draft;
    if (!inside || taken[draft + difference]) {
      Throw(ErrorKind::kFormat,
            "{}: tensor d2t of the EAGLE-3 head: expected for token {} a token of the model's {} "
            "that no other has, found a difference of {}",
            QuoteUnlessPlain(folder_.native()), draft, spec_.vocab, difference);
    }
    taken[draft + difference] = true;
    tokens.push_back(static_cast<int32_t>(draft + difference));
  }
  return tokens;
}

// t2d says the same of the model's tokens, whether the head knows them. It may be left out.
void Eagle3Folder::CheckKnownTokens(const std::vector<int32_t>& tokens) {
  known_.emplace_back("t2d");
  const TensorInfo* tensor = source_->Find("t2d");
  if (tensor == nullptr) return;
  if (tensor->dtype_name != "BOOL" || tensor->shape != std::vector{spec_.vocab}) {
    Refuse("t2d", fmt::format("BOOL [{}]", spec_.vocab), tensor);
  }
  std::vector<bool> known(static_cast<size_t>(spec_.vocab), tokens.empty());
  for (const int32_t token : tokens) known[token] = true;
  for (int64_t token = 0; token < spec_.vocab; ++token) {
    if ((tensor->bytes[token] != std::byte{0}) == known[token]) continue;
    Throw(ErrorKind::kFormat,
          "{}: tensors t2d and d2t of the EAGLE-3 head: expected to agree on the tokens that it "
          "knows, found token {} in one alone",
          QuoteUnlessPlain(folder_.native()), token);
  }
}

void Eagle3Folder::RefuseOthers() const {
  for (const std::string& name : source_->Names()) {
    if (std::ranges::count(known_, name) > 0 || name.ends_with(".rotary_emb.inv_freq")) continue;
    Refuse(name, "no such tensor", source_->Find(name));
  }
}

int64_t Eagle3Folder::LoadedBytes(std::optional<DType> storage) const {
  int64_t bytes = 0;
  const auto add = [&](const Parts& parts, std::optional<DType> as) {
    bytes += ops::PackedBytes(as.value_or(*parts.front()->dtype), OutputsOf(parts),
                              parts.front()->shape[1]);
  };
  for (const Parts* parts : {&tensors_.reduce, &tensors_.query, &tensors_.kv, &tensors_.out,
                             &tensors_.gate_up, &tensors_.down}) {
    add(*parts, storage);
  }
  add(tensors_.head, HeadStorage(storage));
  return bytes;
}

Weight Eagle3Folder::Pack(ThreadPool& pool, const Parts& parts,
                          std::optional<DType> storage) const {
  const DType dtype = *parts.front()->dtype;
  const int64_t inputs = parts.front()->shape[1];
  const int64_t row_bytes = inputs * static_cast<int64_t>(SizeOf(dtype));
  const auto row = [&](int64_t output) -> const void* {
    size_t part = 0;
    while (output >= parts[part]->shape[0]) output -= parts[part++]->shape[0];
    return parts[part]->bytes.data() + output * row_bytes;
  };
  Weight weight =
      ops::PackWeight(pool, dtype, OutputsOf(parts), inputs, row, storage.value_or(dtype));
  weight.name = "the EAGLE-3 head's " + parts.front()->name;
  for (const TensorInfo* part : parts) source_->Release(*part);
  return weight;
}

ops::NormWeights Eagle3Folder::Norm(const TensorInfo& gains) const {
  ops::NormWeights norm{.kind = ops::NormKind::kRms,
                        .epsilon = spec_.norm_epsilon,
                        .weight = std::vector<float>(static_cast<size_t>(spec_.hidden)),
                        .bias = {}};
  ReadFloats(*gains.dtype, gains.bytes.data(), norm.weight);
  return norm;
}

Table Eagle3Folder::Rows(const TensorInfo& tensor) const {
  Table table{.dtype = *tensor.dtype, .rows = tensor.shape[0], .cols = tensor.shape[1], .data = {}};
  auto file = source_->FileOf(tensor);
  const auto address = reinterpret_cast<uintptr_t>(tensor.bytes.data());
  if (file != nullptr && address % SizeOf(table.dtype) == 0) {
    table.data = Buffer(std::move(file), tensor.bytes);
  } else {
    table.data = Buffer(std::ssize(tensor.bytes));
    std::memcpy(table.data.data(), tensor.bytes.data(), tensor.bytes.size());
  }
  return table;
}

std::unique_ptr<const Eagle3Head> Eagle3Folder::Load(ThreadPool& pool,
                                                     std::optional<DType> storage) const {
  RequireMemory(LoadedBytes(storage), "the weights of the EAGLE-3 head take");
  Eagle3Weights weights{.reduce = Pack(pool, tensors_.reduce, storage),
                        .query = Pack(pool, tensors_.query, storage),
                        .kv = Pack(pool, tensors_.kv, storage),
                        .out = Pack(pool, tensors_.out, storage),
                        .gate_up = Pack(pool, tensors_.gate_up, storage),
                        .down = Pack(pool, tensors_.down, storage),
                        .head = Pack(pool, tensors_.head, HeadStorage(storage)),
                        .embedding_norm = Norm(*tensors_.embedding_norm),
                        .state_norm = Norm(*tensors_.state_norm),
                        .mlp_norm = Norm(*tensors_.mlp_norm),
                        .norm = Norm(*tensors_.norm),
                        .embedding = {},
                        .tokens = tokens_};
  if (tensors_.embedding != nullptr) weights.embedding = Rows(*tensors_.embedding);
  return std::make_unique<const Eagle3Head>(spec_, std::move(weights));
}

}  // namespace godwit
