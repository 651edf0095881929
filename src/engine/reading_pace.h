// ReadingPace: the time that the rest of a prompt takes, from the times of its chunks so far.
//
// With attention to everything before, a token costs more the further behind it stands. The cost of
// one at a position is taken to be a + b * position. It is a line through the chunks by least
// squares, each with the weight of its tokens. Where reading is bounded by a window, b comes out
// near zero. The first chunk counts only while it is alone, since it finds caches cold and memory
// untouched. It took twice the time of the second on a model of 0.5 B, and would hide that the
// others rise.
#pragma once

#include <cstdint>
#include <optional>

namespace godwit {

class ReadingPace {
 public:
  // Begins at a time at which so many tokens of the text are read. If the next chunk does not begin
  // where the last one ended, as after a pause, it is measured from here. Earlier measurements
  // stay.
  void BeginAt(int64_t tokens, double ms);

  // Ends a chunk: so many tokens are read now.
  void EndAt(int64_t tokens, double ms);

  // The time from the end of the last chunk until `total` are read. Nothing if no chunk was
  // measured, or if one or two would have to tell of more than four times their length.
  std::optional<double> LeftMs(int64_t total) const;

 private:
  // Sums over chunks, weighted by their tokens: of 1, the middle position, its square, the cost of
  // a token, and that times the middle position.
  struct Sums {
    double weight = 0, position = 0, square = 0, cost = 0, product = 0;
  };

  int64_t tokens_ = -1;  // tokens of the text at the end of the last chunk
  double ms_ = 0;
  int chunks_ = 0;
  double read_ = 0;  // tokens of all chunks
  Sums sums_;
};

}  // namespace godwit
