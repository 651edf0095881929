// A matrix of a checkpoint that lies the other way.
#pragma once

#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "weights/weight_source.h"

namespace godwit {

// The elements of a matrix [rows, cols], whatever their type, as [cols, rows].
Buffer TransposedMatrix(ThreadPool& pool, const TensorInfo& matrix);

}  // namespace godwit
