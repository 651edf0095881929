#include "checkpoint/weight_facts.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <tuple>

#include "base/error.h"
#include "model/loaded_storage.h"
#include "model/loader.h"
#include "model/model_tensors.h"
#include "model/packed_weights.h"
#include "model/weight_share.h"

namespace godwit {

namespace {

// The number of weights minus the elements of the tensors that hold them.
int64_t Unpacked(const PackedTensors& part) {
  int64_t more = part.weight.NumElements() - part.codes.NumElements() - part.scales.NumElements();
  if (part.zeros) more -= part.zeros->NumElements();
  for (const TensorInfo& other : part.others) more -= other.NumElements();
  return more;
}

}  // namespace

WeightFacts FactsOf(const DecoderSpec& spec, const WeightSource& source,
                    std::optional<DType> storage, int ranks) {
  WeightFacts facts{.spec = spec};
  for (const std::string& name : source.Names()) {
    const TensorInfo& tensor = *source.Find(name);
    facts.parameters += tensor.NumElements();
    facts.file_bytes += std::ssize(tensor.bytes);
  }
  std::optional<ModelTensors> found;
  try {
    found = ResolveTensors(spec, source);
  } catch (const Error& error) {
    facts.problem = error.what();
    return facts;
  }
  const ModelTensors& tensors = *found;
  for (int rank = 0; rank < ranks; ++rank) {
    WeightShare share = TakeShare(spec, tensors, rank, ranks);
    const int64_t bytes = LoadedBytes(share.tensors, storage);
    if (bytes <= facts.loaded_bytes.value_or(-1)) continue;
    facts.loaded_bytes = bytes;
    facts.spec = std::move(share.spec);
  }
  facts.loaded_types = LoadedTypes(tensors, storage);
  for (const PackedTensors* part : PackedPartsOf(tensors)) facts.parameters += Unpacked(*part);
  if (!LoadedStorage(tensors, storage)) facts.roundings = RoundingsOf(tensors);
  return facts;
}

std::vector<std::pair<std::string, int64_t>> CountTypes(const WeightSource& source) {
  std::map<std::string, int64_t> counts;
  for (const std::string& name : source.Names()) ++counts[source.Find(name)->dtype_name];
  std::vector<std::pair<std::string, int64_t>> types(counts.begin(), counts.end());
  std::ranges::stable_sort(types, std::greater(), &std::pair<std::string, int64_t>::second);
  return types;
}

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

}  // namespace godwit
