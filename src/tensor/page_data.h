// PageData: the place of a page, such as one of cached keys and values, in the memory from which
// operations compute.
//
// Rooms above ops take, share and give back pages, and hand them to operations. They neither look
// inside nor count on an address, so that the memory may be another device's. Only files and
// messages between hosts need the bytes themselves (HostBytes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace godwit {

class PageData {
 public:
  PageData() = default;  // no page
  explicit PageData(std::byte* data) : data_(data) {}

  explicit operator bool() const { return data_ != nullptr; }
  bool operator==(const PageData&) const = default;
  // The place `bytes` further on, in the same block of memory.
  PageData Behind(int64_t bytes) const { return PageData(data_ + bytes); }

  // For operations: the address of the page.
  friend std::byte* HostPointer(PageData page) { return page.data_; }

 private:
  std::byte* data_ = nullptr;
};

// The first bytes of a page, for a file or a message.
inline std::span<std::byte> HostBytes(PageData page, int64_t bytes) {
  return {HostPointer(page), static_cast<size_t>(bytes)};
}

inline void CopyPage(PageData from, PageData to, int64_t bytes) {
  std::memcpy(HostPointer(to), HostPointer(from), static_cast<size_t>(bytes));
}

}  // namespace godwit
