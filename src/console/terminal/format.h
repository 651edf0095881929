// Numbers in a form for people.
#pragma once

#include <cstdint>
#include <string>

namespace godwit::console {

std::string FormatDuration(double seconds);                  // "0:07", "1:02:03"
std::string FormatRate(double per_second);                   // three digits: "3.42", "51.3", "1280"
std::string FormatCount(int64_t count);                      // "812", "118 K", "8.03 B"
std::string Plural(int64_t count, const std::string& noun);  // "1 token", "12 tokens"

}  // namespace godwit::console
