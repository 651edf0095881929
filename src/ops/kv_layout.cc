#include "ops/kv_layout.h"

#include "base/checked.h"

namespace godwit {

int64_t KvLayout::BytesFor(int64_t tokens) const {
  return CheckedMul(PagesFor(tokens), layers * page_bytes()).value_or(INT64_MAX);
}

}  // namespace godwit
