// XXH3: the same numbers on every machine, as fast as memory is read. It finds damage, not malice:
// two texts with one number can be made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace godwit {

uint64_t Checksum(std::span<const std::byte> bytes);

// A name for the content: 32 hexadecimal digits of all parts and where each ends.
std::string ContentName(std::initializer_list<std::span<const std::byte>> parts);

}  // namespace godwit
