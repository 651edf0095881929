// Names, numbers and identifiers that samples are made of. The originals take their words from
// lists of wonderwords; these are our own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/suites/draws.h"

namespace godwit::eval {

// "lantern": `count` different words out of kWords.
extern const int64_t kWords;
std::vector<std::string> DrawWords(Draws& draws, int64_t count);

// "brave-lantern": the pair `which` of kWordPairs.
extern const int64_t kWordPairs;
inline constexpr int64_t kMaxWordPairBytes = 20;  // bytes of one pair
std::string WordPair(int64_t which);
std::string DrawWordPair(Draws& draws);
// `count` different pairs. Throws Error(kInput) for more than there are.
std::vector<std::string> DrawWordPairs(Draws& draws, int64_t count);

std::string DrawCity(Draws& draws);

// `count` decimal digits; the first may be 0.
std::string DrawDigits(Draws& draws, int count);
// 1000000 to 9999999
std::string DrawNumber(Draws& draws);
// A UUID of version 4: "a54e2eed-e625-4570-9f74-3624e77d6684"
std::string DrawUuid(Draws& draws);

}  // namespace godwit::eval
