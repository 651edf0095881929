// FNV-1a, 64 bits: the same number on every machine, for things that need no secrecy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace godwit {

inline uint64_t Fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace godwit
