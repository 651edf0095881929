// Writing the weights of a model into a packed copy (packed_header.h), and reading them.
//
// Both ends go through a model in one order, that of the loader, and name each part. A reader takes
// only numbers from a copy. Their count, type and place follow from the model for which it is read,
// and a part that does not fit is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/new_file.h"
#include "base/thread_pool.h"
#include "model/packed_header.h"
#include "tensor/weight.h"

namespace godwit {

// Not thread-safe. Throws Error(kIo), as NewFile does.
class PackedWriter {
 public:
  explicit PackedWriter(NewFile& file);

  void Write(const Weight& weight);
  void Write(std::string_view name, const Table& table);
  void Write(std::string_view name, std::span<const float> values);

  // Writes the end of the file. Commit is up to the caller.
  void Finish(PackedInfo info);

 private:
  void WritePart(std::string name, std::span<const std::byte> bytes);

  NewFile& file_;
  std::vector<PackedPart> parts_;
};

// A packed copy, mapped. Immutable; thread-safe.
class PackedFile {
 public:
  // Throws Error(kIo), and as ParsePackedHeader does.
  explicit PackedFile(const std::filesystem::path& path);

  const std::string& path() const { return file_->path(); }
  const PackedInfo& info() const { return header_.info; }
  std::span<const PackedPart> parts() const { return header_.parts; }

  // The bytes of a part, which keep the file mapped.
  Buffer Part(const PackedPart& part) const;

  // Reads and maps all of it, on large pages where the file system has them: a token would, but
  // page by page. Throws Error(kIo) where the disk fails, which later ends the process. Throws
  // Error(kFormat) that names the first part whose checksum differs.
  void LoadIntoMemory(ThreadPool& pool) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  PackedHeader header_;
};

// Takes the parts of a file in order. Throws Error(kFormat) for any part that is not the requested
// one.
class PackedReader {
 public:
  explicit PackedReader(const PackedFile& file) : file_(file) {}

  // Reads the numbers of a weight. weight: everything else of it. The scale and zero point of a
  // static input, the scales of its outputs, row sums and a bias come from the copy, too.
  Weight Read(Weight weight, bool has_bias);
  Table Read(std::string_view name, Table table);
  std::vector<float> Read(std::string_view name, int64_t count);

  // Throws if something is left.
  void Finish() const;

 private:
  Buffer Take(std::string_view name, int64_t bytes);

  const PackedFile& file_;
  size_t next_ = 0;
};

}  // namespace godwit
