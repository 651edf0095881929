#include "cli/model_facts.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "engine/memory_plan.h"
#include "kernels/packing.h"
#include "model/archs/all.h"
#include "model/model_tensors.h"
#include "text/load_tokenizer.h"
#include "weights/hf_config.h"
#include "weights/open.h"

namespace godwit::cli {
namespace {

TextFacts ReadTextFacts(const std::filesystem::path& folder) {
  TextFacts text{.config = ReadTokenizerConfig(folder), .tokenizer = nullptr, .special = {}};
  text.special = {.bos_id = text.config.bos_id, .eos_ids = text.config.eos_ids};
  if (!std::filesystem::exists(folder / "tokenizer.json")) return text;
  text.tokenizer = LoadTokenizer(folder);
  text.special = FindSpecialTokens(text.config, *text.tokenizer);
  return text;
}

int64_t PackedBytes(const LinearTensors& linear) {
  if (linear.parts.empty()) return 0;
  int64_t outputs = 0;
  for (const TensorInfo* part : linear.parts) outputs += part->shape[0];
  const TensorInfo& first = *linear.parts.front();
  return kernels::PanelCount(outputs) * kernels::PanelBytes(*first.dtype, first.shape[1]);
}

int64_t PackedBytes(const MlpTensors& mlp) { return PackedBytes(mlp.up) + PackedBytes(mlp.down); }

int64_t PackedBytes(const ModelTensors& tensors) {
  int64_t bytes = PackedBytes(tensors.head) + PackedBytes(tensors.project_in) +
                  PackedBytes(tensors.project_out);
  for (const TensorInfo* table : {tensors.embedding, tensors.positions}) {
    if (table != nullptr) bytes += static_cast<int64_t>(table->bytes.size());
  }
  for (const LayerTensors& layer : tensors.layers) {
    bytes += PackedBytes(layer.qkv) + PackedBytes(layer.attention_out) + PackedBytes(layer.mlp);
    if (layer.experts.empty()) continue;
    const std::vector<int64_t>& router = layer.router.parts.front()->shape;
    bytes += kernels::PanelCount(router[0]) * kernels::PanelBytes(DType::kF32, router[1]);
    for (const MlpTensors& expert : layer.experts) bytes += PackedBytes(expert);
  }
  return bytes;
}

// "model.layers.12.mlp.weight" -> "model.layers.*.mlp.weight"
std::string WithoutNumbers(const std::string& name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    pattern += (begin == 0 ? "" : ".") + (number ? "*" : part);
    begin = end + 1;
  }
  return pattern;
}

}  // namespace

ModelFacts ReadModelFacts(const std::string& folder) {
  ModelFacts facts;
  facts.folder = folder;
  const std::filesystem::path path = folder;
  if (!std::filesystem::is_directory(path)) {
    const bool exists = std::filesystem::exists(path);
    Throw(exists ? ErrorKind::kInput : ErrorKind::kIo, "{}: {}, expected the folder of a model",
          folder, exists ? "not a folder" : "no such folder");
  }
  facts.spec = DescribeModel(HfConfig::Load(path / "config.json"));
  facts.text = ReadTextFacts(path);
  facts.source = OpenWeights(path);
  for (const std::string& name : facts.source->Names()) {
    const TensorInfo& tensor = *facts.source->Find(name);
    facts.parameters += tensor.NumElements();
    facts.file_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  try {
    facts.weight_bytes = PackedBytes(ResolveTensors(facts.spec, *facts.source));
  } catch (const Error& error) {
    facts.problem = error.what();
  }
  return facts;
}

std::vector<TensorGroup> GroupTensors(const WeightSource& source) {
  std::vector<TensorGroup> groups;
  std::map<std::tuple<std::string, std::string, std::vector<int64_t>>, size_t> index;
  for (const std::string& name : source.Names()) {
    const TensorInfo& tensor = *source.Find(name);
    const auto key = std::make_tuple(WithoutNumbers(name), tensor.dtype_name, tensor.shape);
    const auto [found, is_new] = index.emplace(key, groups.size());
    if (is_new) groups.push_back({.name = std::get<0>(key), .first = &tensor, .count = 0});
    ++groups[found->second].count;
  }
  for (TensorGroup& group : groups) {
    if (group.count == 1) group.name = group.first->name;
  }
  return groups;
}

int64_t LargestContextBeside(const ModelFacts& facts, DType kv_type, int64_t available_bytes) {
  return LargestContext(Geometry(facts.spec), kv_type,
                        available_bytes - facts.weight_bytes.value_or(facts.file_bytes));
}

}  // namespace godwit::cli
