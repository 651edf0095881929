// SHA-256 (FIPS 180-4), by which others publish what their files hold. Checksum (checksum.h) is for
// files of our own, and many times as fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace godwit {

class Sha256 {
 public:
  void Add(std::span<const std::byte> bytes);

  // The digest of all that was added, 64 hexadecimal digits in small letters. More may be added
  // afterwards.
  std::string Hex() const;

 private:
  void AddBlock(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> begun_{};  // a block that is not whole yet
  uint64_t bytes_ = 0;
};

}  // namespace godwit
