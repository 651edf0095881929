#include "engine/memory_plan.h"

#include <algorithm>

#include "attention/kv_store.h"
#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {

int64_t LargestContext(const AttentionGeometry& geometry, DType kv_type, int64_t free_bytes) {
  return std::max<int64_t>(0, free_bytes) / KvBytesPerToken(geometry, kv_type);
}

void CheckKvFits(const AttentionGeometry& geometry, DType kv_type, int64_t tokens) {
  const int64_t available = ReadMachineMemory().available_bytes;
  const int64_t fits = LargestContext(geometry, kv_type, available);
  if (tokens <= fits) return;
  const auto per_token = static_cast<double>(KvBytesPerToken(geometry, kv_type));
  Throw(ErrorKind::kMemory,
        "the KV cache of {} more tokens in {} takes {:.1f} GiB, and {} are available: {} tokens "
        "would fit",
        tokens, Name(kv_type), per_token * static_cast<double>(tokens) / (int64_t{1} << 30),
        FormatBytes(available), fits);
}

}  // namespace godwit
