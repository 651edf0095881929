#include "kv/kv_budget.h"

#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {

void KvBudget::Refuse(int64_t bytes) const {
  Throw(ErrorKind::kMemory, "the KV cache needs another {}, and {} of its {} are taken",
        FormatBytes(bytes), FormatBytes(used()), FormatBytes(this->bytes()));
}

}  // namespace godwit
