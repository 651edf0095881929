// Where the end of a text has stood before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace godwit {

class SuffixIndex {
 public:
  struct Match {
    int32_t position;  // of the token that stands where the text's last one does
    int32_t tokens;    // up to there that are those of the text's end, kLongest at most
  };
  static constexpr int32_t kLongest = 32;

  // All of a text that has grown; another text begins the index anew. 36 bytes a token at most.
  void Extend(std::span<const int32_t> text);
  // Up to `most` earlier places, the longer matches rather than the shorter, and the later rather
  // than the earlier. In time that does not depend on the length of the text.
  void Find(std::span<const int32_t> text, size_t most, std::vector<Match>& matches) const;

 private:
  // Places that end with the same `gram` tokens, linked from the latest to the first: a hash table
  // of the latest, whose collisions are found by comparing.
  struct Chain {
    int32_t gram;
    std::vector<int32_t> latest;  // a power of two, -1: none
    std::vector<int32_t> before;  // of each place, -1: none
  };
  static uint32_t Hash(std::span<const int32_t> text, int64_t end, int32_t gram);
  static void Link(Chain& chain, std::span<const int32_t> text, int64_t place);

  std::vector<Chain> chains_ = {{8, {}, {}}, {3, {}, {}}, {1, {}, {}}};
  int64_t indexed_ = 0;  // places that something follows
};

}  // namespace godwit
