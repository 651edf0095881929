#include "weights/safetensors_source.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/mapped_file.h"
#include "base/problem_list.h"
#include "base/quote.h"
#include "weights/mapped_source.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"

namespace godwit {
namespace {

constexpr size_t kMaxIndexBytes = 100'000'000;

using TextMap = std::map<std::string, std::string, std::less<>>;

// Indents a message of several lines inside a list of problems.
std::string Indented(std::string text) {
  for (size_t i = text.find('\n'); i != std::string::npos; i = text.find('\n', i + 1)) {
    text.insert(i + 1, "  ");
  }
  return text;
}

// Reads the shards and compares each with the index.
class ShardReader {
 public:
  ShardReader(const std::filesystem::path& index_path, ShardIndex index)
      : index_path_(index_path), index_(std::move(index)) {}

  std::unique_ptr<WeightSource> Read() {
    std::map<std::string, size_t> shards;  // -> number of tensors that the index expects there
    for (const auto& [name, shard] : index_) ++shards[shard];
    for (const auto& [shard, tensor_count] : shards) {
      try {
        ReadShard(shard);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kIo) ++unreadable_;
        problems_.Add("shard of {} tensors: {}", tensor_count, Indented(error.what()));
        broken_.insert(shard);
      }
    }
    for (const auto& [name, shard] : index_) {
      if (!found_in_.contains(name) && !broken_.contains(shard)) {
        problems_.Add("tensor {}: expected in {} by the index, found in no shard", Quote(name),
                      Quote(shard));
      }
    }
    // Unreadable shards alone are an I/O error, as for an unreadable single file.
    const bool unreadable = unreadable_ == problems_.count();
    problems_.ThrowIfAny(unreadable ? ErrorKind::kIo : ErrorKind::kFormat, index_path_.string());
    return MakeMappedSource(std::move(files_), std::move(tensors_), std::move(metadata_));
  }

 private:
  void ReadShard(const std::string& shard) {
    MappedFile file(index_path_.parent_path() / shard);
    SafetensorsContents contents = ParseSafetensors(file.Span(), file.path());
    for (TensorInfo& tensor : contents.tensors) {
      CheckPlace(tensor.name, shard);
      tensors_.push_back(std::move(tensor));
    }
    metadata_.merge(contents.metadata);
    files_.push_back(std::move(file));
  }

  void CheckPlace(const std::string& name, const std::string& shard) {
    const auto [other, is_new] = found_in_.emplace(name, shard);
    if (!is_new) {
      problems_.Add("tensor {}: expected in one shard, found in {} and {}", Quote(name),
                    Quote(other->second), Quote(shard));
      return;
    }
    const auto place = index_.find(name);
    if (place == index_.end()) {
      problems_.Add("tensor {}: expected in the index, found only in {}", Quote(name),
                    Quote(shard));
    } else if (place->second != shard) {
      problems_.Add("tensor {}: expected in {} by the index, found in {}", Quote(name),
                    Quote(place->second), Quote(shard));
    }
  }

  const std::filesystem::path index_path_;
  const ShardIndex index_;
  ProblemList problems_;
  size_t unreadable_ = 0;  // unreadable shards among the problems
  std::set<std::string> broken_;
  std::map<std::string, std::string> found_in_;  // tensor -> the first shard that holds it
  std::vector<MappedFile> files_;
  std::vector<TensorInfo> tensors_;
  TextMap metadata_;
};

}  // namespace

std::unique_ptr<WeightSource> OpenSafetensors(const std::filesystem::path& path) {
  std::vector<MappedFile> files;
  files.emplace_back(path);
  SafetensorsContents contents = ParseSafetensors(files[0].Span(), files[0].path());
  return MakeMappedSource(std::move(files), std::move(contents.tensors),
                          std::move(contents.metadata));
}

std::unique_ptr<WeightSource> OpenShardedSafetensors(const std::filesystem::path& index) {
  const std::string text = ReadTextFile(index, kMaxIndexBytes);
  return ShardReader(index, ParseShardIndex(text, index.string())).Read();
}

}  // namespace godwit
