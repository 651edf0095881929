// Parsers for values of flags: strict, so that no part of a value is ignored.
//
// All throw Error(kInput) that says what was expected and found; CommandLine puts the flag's name
// in front.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::console {

int64_t ParseInt(std::string_view text, int64_t min, int64_t max);
float ParseFloat(std::string_view text);
// Parses "8G", "1.5GiB", "512Mi", "65536": units of 1024, as memory is counted.
int64_t ParseBytes(std::string_view text);
bool ParseBool(std::string_view text);  // an environment variable: 1, true, yes, on, 0, ...

// SplitAt (base/split_text.h) for lists. Never throws.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

// Parses "1,2,3"; blanks and the brackets of a JSON list are allowed.
std::vector<int32_t> ParseTokens(std::string_view text);

// Adds "15043+1", "15043-0.5", "15043-inf", or several with commas between, to `biases`.
void ParseLogitBias(std::string_view text, std::map<int32_t, float>& biases);

// Parses "512,1024", "0-64+16" (0, 16, 32, 48, 64), "1024-16384*2" (1024, 2048, ...), "1-4" (1, 2,
// 3, 4), and several of them with commas between. Throws Error(kInput) for anything else, for
// numbers outside [min, max], and for lists too long to be meant.
std::vector<int64_t> ParseIntList(std::string_view text, int64_t min, int64_t max);

}  // namespace godwit::console
