// Writes the weights of a model folder: model.safetensors, or shards and their index.
//
// Sizes are known before the first byte. The headers come first. Then every tensor goes to its
// place, in any order, so that no more than one of them need be in memory. Within a file wider
// elements come first: every tensor is aligned to its elements, as readers that map the file
// expect. The same tensors give the same bytes. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/open_file.h"
#include "tensor/dtype.h"

namespace godwit {

struct NewTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t bytes() const;
};

class SafetensorsWriter {
 public:
  // The size at which Hugging Face cuts models.
  static constexpr int64_t kMaxShardBytes = 5'000'000'000;

  // Names are distinct. A shard ends before the tensor that would make its data larger than
  // max_shard_bytes; a larger tensor is a shard of its own. Throws Error(kIo), as Write does.
  SafetensorsWriter(const std::filesystem::path& folder, const std::vector<NewTensor>& tensors,
                    int64_t max_shard_bytes = kMaxShardBytes);

  // All bytes of one of the tensors. Each is written once.
  void Write(std::string_view name, std::span<const std::byte> bytes);

  // Whether every tensor has been written.
  bool complete() const { return places_.empty(); }

 private:
  struct Shard {
    std::filesystem::path path;
    FileDescriptor file;
  };
  struct Place {
    size_t shard;
    int64_t offset, bytes;
  };

  void AddShard(const std::filesystem::path& path, std::vector<const NewTensor*> tensors);

  std::vector<Shard> shards_;
  std::map<std::string, Place, std::less<>> places_;  // of what is still to be written
};

struct FileTensor {
  NewTensor tensor;
  std::vector<std::byte> bytes;  // NewTensor::bytes() of them
};

// The bytes of a file of such tensors, for a few that are in memory. Names are distinct.
std::string SafetensorsBytes(std::span<const FileTensor> tensors,
                             const std::map<std::string, std::string>& metadata);

}  // namespace godwit
