// How long the rest of a prompt takes to read, from how long its chunks took so far.
//
// With attention to everything before, a token costs more the further behind it stands. The cost
// of one at a position is taken to be a + b * position: a line through the chunks by least squares,
// each with the weight of its tokens. Where reading is bounded by a window, b comes out near zero.
// The first chunk counts only while it is alone: it finds caches cold and memory untouched, took
// twice the time of the second on a model of 0.5 B, and would hide that the others rise.
#pragma once

#include <cstdint>
#include <optional>

namespace godwit {

class ReadingPace {
 public:
  // So many tokens of the text are read, at that time. Where the next chunk does not begin where
  // the last one ended, as after a pause, it is measured from here, and what is behind stays known.
  void BeginAt(int64_t tokens, double ms);

  // So many are read now: a chunk ends.
  void EndAt(int64_t tokens, double ms);

  // From the end of the last chunk until `total` are read. Nothing where no chunk was measured, or
  // where one or two would have to tell of more than four times their length.
  std::optional<double> LeftMs(int64_t total) const;

 private:
  // Over chunks, by their tokens: of 1, the middle position, its square, the cost of a token, and
  // that times the middle position.
  struct Sums {
    double weight = 0, position = 0, square = 0, cost = 0, product = 0;
  };

  int64_t tokens_ = -1;  // of the text, where the last chunk ended
  double ms_ = 0;
  int chunks_ = 0;
  double read_ = 0;  // tokens of all chunks
  Sums sums_;
};

}  // namespace godwit
