// Where the caches of a verb that drives models itself lie, as its flags say.
#pragma once

#include <memory>

#include "cli/options/kv_options.h"
#include "kv/kv_pool.h"

namespace godwit::lab {

// Null where nothing is said: as memory allows. Throws what KvFile does.
std::shared_ptr<KvPool> PoolOf(const cli::KvMemory& memory, const KvLayout& layout);

}  // namespace godwit::lab
