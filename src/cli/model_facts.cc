#include "cli/model_facts.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "engine/memory_plan.h"
#include "engine/storage_types.h"
#include "model/archs/all.h"
#include "model/loader.h"
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

}  // namespace

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

ModelFacts ReadModelFacts(const std::string& folder, const std::string& weights) {
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
    facts.weight_bytes =
        LoadedBytes(ResolveTensors(facts.spec, *facts.source), ParseWeightType(weights));
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
