#include "cli/model_facts.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "bench/synthetic_weights.h"
#include "cli/options/find_model.h"
#include "engine/memory_plan.h"
#include "engine/storage_types.h"
#include "model/archs/all.h"
#include "model/loader.h"
#include "text/chat_template.h"
#include "text/load_tokenizer.h"
#include "weights/open.h"

namespace godwit::cli {
namespace {

void ReadChatFacts(const std::filesystem::path& folder, TextFacts& text) {
  try {
    const auto source = ReadChatTemplate(folder);
    if (!source) return;
    text.chat_template = source->what;
    (void)ChatTemplate(source->text, source->what, {});
    text.can_chat = true;
  } catch (const Error& error) {
    text.chat_template = error.what();
  }
}

TextFacts ReadTextFacts(const std::filesystem::path& folder, int64_t vocab_size) {
  TextFacts text;
  text.config = ReadTokenizerConfig(folder, vocab_size);
  text.special = {.bos_id = text.config.bos_id, .eos_ids = text.config.eos_ids};
  if (!std::filesystem::exists(folder / "tokenizer.json")) return text;
  text.tokenizer = LoadTokenizer(folder);
  text.special = FindSpecialTokens(text.config, *text.tokenizer);
  ReadChatFacts(folder, text);
  return text;
}

bool HasWeights(const std::filesystem::path& folder) {
  return std::ranges::any_of(
      std::filesystem::directory_iterator(folder),
      [](const std::filesystem::directory_entry& file) { return HoldsWeights(file.path()); });
}

// Of a checkpoint that is not there.
DType StoredAs(const HfConfig& config) {
  const std::string type = config.StringOr("torch_dtype", config.StringOr("dtype", "bfloat16"));
  return type == "float32" ? DType::kF32 : type == "float16" ? DType::kF16 : DType::kBF16;
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
  const HfConfig config = LoadConfig(folder);
  facts.spec = DescribeModel(config);
  facts.text = ReadTextFacts(path, facts.spec.vocab_size);
  facts.has_weights = HasWeights(path);
  facts.source =
      facts.has_weights ? OpenWeights(path) : bench::SyntheticWeights(facts.spec, StoredAs(config));
  for (const std::string& name : facts.source->Names()) {
    const TensorInfo& tensor = *facts.source->Find(name);
    facts.parameters += tensor.NumElements();
    facts.file_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  try {
    const ModelTensors tensors = ResolveTensors(facts.spec, *facts.source);
    const std::optional<DType> storage = ParseWeightType(weights);
    facts.weight_bytes = LoadedBytes(tensors, storage);
    facts.weight_types = LoadedTypes(tensors, storage);
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
