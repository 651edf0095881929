// A model's GGUF file, or the parts that it was split into, mapped.
#pragma once

#include <filesystem>
#include <vector>

#include "base/mapped_file.h"
#include "weights/gguf_metadata.h"

namespace godwit {

struct GgufFiles {
  std::vector<MappedFile> files;
  GgufMetadata metadata;            // of the first part, which has everything
  std::vector<TensorInfo> tensors;  // of all parts, in their order; names are distinct
};

// The files of the model that `file` is one of, by its name: NAME-00002-of-00005.gguf has five, any
// other is alone.
std::vector<std::filesystem::path> GgufParts(const std::filesystem::path& file);

// Any part of a split model opens all of them. Throws Error(kFormat) for
// files that are not GGUF, or are not parts of one model, and Error(kIo) for missing ones.
GgufFiles OpenGgufFiles(const std::filesystem::path& file);

// Whether a file begins as GGUF does. False where it cannot be read.
bool IsGguf(const std::filesystem::path& file);

// Throws Error(kFormat) for a file that begins otherwise, and Error(kIo) for one that is empty or
// cannot be read.
void RequireGguf(const std::filesystem::path& file);

}  // namespace godwit
