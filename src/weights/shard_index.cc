#include "weights/shard_index.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/json_found.h"
#include "base/problem_list.h"
#include "base/quote.h"

namespace godwit {
namespace {

using nlohmann::json;

// Shard names are part of paths in messages, so they may have no character that needs an escape.
bool IsPlainFileName(const std::string& name) {
  constexpr size_t kMaxNameBytes = 255;
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         Quote(name, kMaxNameBytes) == '"' + name + '"';
}

}  // namespace

ShardIndex ParseShardIndex(std::string_view text, const std::string& file_name) {
  const json index = ParseJson(text, file_name, {.reject_duplicate_keys = true});
  const auto weight_map = index.is_object() ? index.find("weight_map") : index.end();
  if (weight_map == index.end() || !weight_map->is_object()) {
    Throw(ErrorKind::kFormat, "{}: expected an object \"weight_map\", found {}", file_name,
          weight_map == index.end() ? "none" : Found(*weight_map));
  }
  ShardIndex shards;
  ProblemList problems;
  for (const auto& [name, shard] : weight_map->items()) {
    if (shard.is_string() && IsPlainFileName(shard.get_ref<const std::string&>())) {
      shards.emplace(name, shard.get<std::string>());
    } else {
      problems.Add("tensor {}: expected the name of a file in the same folder, found {}",
                   Quote(name), Found(shard));
    }
  }
  problems.ThrowIfAny(ErrorKind::kFormat, file_name);
  return shards;
}

}  // namespace godwit
