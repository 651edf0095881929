#include "engine/memory_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {

int64_t LargestContext(const KvLayout& layout, int64_t free_bytes) {
  const int64_t pages = std::max<int64_t>(0, free_bytes) / layout.BytesFor(1);
  return pages * kernels::kTileTokens;
}

void CheckKvFits(const KvLayout& layout, int64_t tokens, int64_t budget_bytes) {
  const int64_t bytes = layout.BytesFor(tokens);
  if (bytes <= budget_bytes) return;
  Throw(ErrorKind::kMemory,
        "the KV cache of {} tokens in {} takes {}, and {} are there for KV caches, enough for {} "
        "tokens",
        tokens, Name(layout.dtype), FormatBytes(bytes), FormatBytes(budget_bytes),
        LargestContext(layout, budget_bytes));
}

}  // namespace godwit
