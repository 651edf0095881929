// A WeightSource over mapped files, whatever their format.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "weights/weight_source.h"

namespace godwit {

// Makes a source of mapped files. The tensors' bytes are views into `files`, or into memory that
// lives as long; names are distinct.
std::unique_ptr<WeightSource> MakeMappedSource(
    std::vector<MappedFile> files, std::vector<TensorInfo> tensors,
    std::map<std::string, std::string, std::less<>> metadata);

}  // namespace godwit
