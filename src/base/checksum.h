// XXH3: the same numbers on every machine, as fast as memory is read. Finds damage; whoever means
// harm can make two texts with one number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace godwit {

uint64_t Checksum(std::span<const std::byte> bytes);

// Of all parts and where each ends, 32 hexadecimal digits: a name for what they say.
std::string ContentName(std::initializer_list<std::span<const std::byte>> parts);

}  // namespace godwit
