// SuffixIndex: earlier places in a text that match its end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace godwit {

class SuffixIndex {
 public:
  struct Match {
    int32_t position;  // of the token that matches the text's last one
    int32_t tokens;    // matching tokens up to there, kLongest at most
  };
  static constexpr int32_t kLongest = 32;

  // Indexes all of a text that has grown; another text begins the index anew. 36 bytes a token at
  // most.
  void Extend(std::span<const int32_t> text);
  // Finds up to `most` earlier places, the longer matches rather than the shorter, and the later
  // rather than the earlier. In time that does not depend on the length of the text.
  void Find(std::span<const int32_t> text, size_t most, std::vector<Match>& matches) const;

 private:
  // Places that end with the same `gram` tokens, linked from the latest to the first. A hash table
  // has the latest; its collisions are found by comparing.
  struct Chain {
    int32_t gram;
    std::vector<int32_t> latest;  // a power of two, -1: none
    std::vector<int32_t> before;  // the place before each place, -1: none
  };
  static uint32_t Hash(std::span<const int32_t> text, int64_t end, int32_t gram);
  static void Link(Chain& chain, std::span<const int32_t> text, int64_t place);

  std::vector<Chain> chains_ = {{8, {}, {}}, {3, {}, {}}, {1, {}, {}}};
  int64_t indexed_ = 0;  // places that a token follows
};

}  // namespace godwit
