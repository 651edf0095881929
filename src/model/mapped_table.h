// Tables of rows that are looked up in the mapped checkpoint.
#pragma once

#include <memory>

#include "base/mapped_file.h"
#include "tensor/weight.h"
#include "weights/weight_source.h"

namespace godwit {

// The matrix as it lies in its file, from which a step reads the rows of its tokens. Blocks are
// decoded then. The table has a copy where there is no file, or where its numbers are not aligned.
// file: WeightSource::FileOf(tensor).
Table MapTable(const TensorInfo& tensor, std::shared_ptr<const MappedFile> file);

}  // namespace godwit
