// Lists of whole numbers as llama-bench takes them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace godwit::console {

// "512,1024", "0-64+16" (0, 16, 32, 48, 64), "1024-16384*2" (1024, 2048, ...), "1-4" (1, 2, 3, 4),
// and any of them with commas between. Throws Error(kInput) for anything else, for numbers outside
// [min, max], and for lists that are too long to be meant.
std::vector<int64_t> ParseIntList(std::string_view text, int64_t min, int64_t max);

}  // namespace godwit::console
