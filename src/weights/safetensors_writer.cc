#include "weights/safetensors_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

namespace godwit {
namespace {

namespace fs = std::filesystem;

FileDescriptor Create(const fs::path& path) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) ThrowErrno(path, "create");
  return file;
}

void WriteAt(int file, const fs::path& path, std::span<const std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) ThrowErrno(path, "write");
    bytes = bytes.subspan(done);
    offset += done;
  }
}

std::string Quoted(const std::string& name) { return nlohmann::json(name).dump(); }

// The header: eight bytes of its length, the JSON, and blanks up to a multiple of eight.
std::string Header(std::span<const NewTensor* const> tensors,
                   std::map<std::string, std::string> metadata = {}) {
  // transformers requires a format, and takes "pt" for weights in PyTorch's layout.
  metadata["format"] = "pt";
  std::string json = R"({"__metadata__":)" + nlohmann::json(metadata).dump();
  int64_t offset = 0;
  for (const NewTensor* tensor : tensors) {
    json += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        Quoted(tensor->name), Name(tensor->dtype), fmt::join(tensor->shape, ","),
                        offset, offset + tensor->bytes());
    offset += tensor->bytes();
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string header;
  for (int i = 0; i < 8; ++i) header += static_cast<char>(json.size() >> (8 * i));
  return header + json;
}

// Cuts the tensors, in their order, into shards of at most max_bytes.
std::vector<std::vector<const NewTensor*>> CutIntoShards(const std::vector<NewTensor>& tensors,
                                                         int64_t max_bytes) {
  std::vector<std::vector<const NewTensor*>> shards(1);
  int64_t bytes = 0;
  for (const NewTensor& tensor : tensors) {
    if (!shards.back().empty() && bytes + tensor.bytes() > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(&tensor);
    bytes += tensor.bytes();
  }
  return shards;
}

}  // namespace

int64_t NewTensor::bytes() const {
  auto bytes = static_cast<int64_t>(SizeOf(dtype));
  for (const int64_t size : shape) bytes *= size;
  return bytes;
}

SafetensorsWriter::SafetensorsWriter(const fs::path& folder, const std::vector<NewTensor>& tensors,
                                     int64_t max_shard_bytes) {
  const auto shards = CutIntoShards(tensors, max_shard_bytes);
  if (shards.size() == 1) {
    AddShard(folder / "model.safetensors", shards.front());
    return;
  }
  int64_t total_bytes = 0;
  std::map<std::string, std::string> shard_of;  // sorted, as in Hugging Face's files
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    AddShard(folder / name, shards[i]);
    for (const NewTensor* tensor : shards[i]) {
      shard_of[tensor->name] = name;
      total_bytes += tensor->bytes();
    }
  }
  nlohmann::ordered_json index;
  index["metadata"]["total_size"] = total_bytes;
  index["weight_map"] = shard_of;
  const std::string text = index.dump(2) + "\n";
  const fs::path path = folder / "model.safetensors.index.json";
  WriteAt(Create(path).get(), path, std::as_bytes(std::span(text)), 0);
}

void SafetensorsWriter::AddShard(const fs::path& path, std::vector<const NewTensor*> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const NewTensor* a, const NewTensor* b) {
    return SizeOf(a->dtype) > SizeOf(b->dtype);
  });
  const std::string header = Header(tensors);
  shards_.push_back({.path = path, .file = Create(path)});
  WriteAt(shards_.back().file.get(), path, std::as_bytes(std::span(header)), 0);
  auto offset = static_cast<int64_t>(header.size());
  for (const NewTensor* tensor : tensors) {
    [[maybe_unused]] const bool is_new =
        places_
            .emplace(tensor->name,
                     Place{.shard = shards_.size() - 1, .offset = offset, .bytes = tensor->bytes()})
            .second;
    assert(is_new);
    offset += tensor->bytes();
  }
}

std::string SafetensorsBytes(std::span<const FileTensor> tensors,
                             const std::map<std::string, std::string>& metadata) {
  std::vector<const FileTensor*> files;
  for (const FileTensor& file : tensors) files.push_back(&file);
  std::ranges::stable_sort(files, std::greater(),
                           [](const FileTensor* file) { return SizeOf(file->tensor.dtype); });
  std::vector<const NewTensor*> order;
  for (const FileTensor* file : files) order.push_back(&file->tensor);
  std::string bytes = Header(order, metadata);
  for (const FileTensor* file : files) {
    assert(std::ssize(file->bytes) == file->tensor.bytes());
    bytes.append(reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size());
  }
  return bytes;
}

void SafetensorsWriter::Write(std::string_view name, std::span<const std::byte> bytes) {
  const auto place = places_.find(name);
  assert(place != places_.end() && place->second.bytes == std::ssize(bytes));
  const Shard& shard = shards_[place->second.shard];
  WriteAt(shard.file.get(), shard.path, bytes, place->second.offset);
  places_.erase(place);
}

}  // namespace godwit
