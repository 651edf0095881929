// Pages of one text, for tests of operations that store and read them. Only *_test.cc files include
// it.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ops/kv_view.h"
#include "tensor/buffer.h"

namespace godwit::ops {

class TestPages {
 public:
  // Pages for all layers of the first `tokens` positions, full of zeros.
  TestPages(const KvLayout& layout, int64_t tokens)
      : layout_(layout), memory_(PagesFor(tokens) * layout.layers * layout.page_bytes()) {
    std::memset(memory_.data(), 0, static_cast<size_t>(memory_.bytes()));
    for (int64_t at = 0; at < memory_.bytes(); at += layout.page_bytes()) {
      pages_.emplace_back(memory_.data() + at);
    }
  }

  KvView View(int64_t layer) const { return ViewOf(layout_, PagesOf(layer)); }
  KvView IndexView(int64_t layer) const {
    KvPages pages = PagesOf(layer);
    pages.page_offset += layout_.index_offset();
    return ViewOf(layout_.Index(), pages);
  }
  std::span<const std::byte> bytes() const {
    return {memory_.data(), static_cast<size_t>(memory_.bytes())};
  }

 private:
  KvPages PagesOf(int64_t layer) const {
    return {.pages = pages_.data() + layer,
            .page_stride = layout_.layers,
            .slots = std::ssize(pages_) / layout_.layers};
  }

  KvLayout layout_;
  Buffer memory_;
  std::vector<PageData> pages_;
};

}  // namespace godwit::ops
