#include "ops/kv_view.h"

namespace godwit::ops {

KvView ViewOf(const KvLayout& layout, const KvPages& pages) {
  return {.dtype = kernels::WidenedType(layout.dtype),
          .pages = pages.pages,
          .page_stride = pages.page_stride,
          .slots = pages.slots,
          .dropped_begin = pages.dropped_begin,
          .dropped_end = pages.dropped_end,
          .head_bytes = layout.head_bytes(),
          .value_offset = layout.key_bytes(),
          .scale_offset = layout.key_bytes() + layout.value_bytes(),
          .hadamard = layout.hadamard(),
          .narrow_keys = kernels::HasNarrowKeys(layout.dtype),
          .narrow_values = kernels::HasNarrowValues(layout.dtype),
          .centre_offset = layout.centred ? layout.centre_offset() : 0,
          .page_offset = pages.page_offset,
          .stamps = pages.stamps,
          .length = pages.length};
}

}  // namespace godwit::ops
