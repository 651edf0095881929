#include "eval/suites/draws.h"

#include <span>
#include <unordered_map>

#include "base/fnv.h"
#include "base/rng.h"

namespace godwit::eval {

Draws::Draws(uint64_t seed, int64_t index, std::string_view what)
    : seed_(seed),
      sequence_(Fnv1a(std::as_bytes(std::span(what))) + static_cast<uint64_t>(index)) {}

int64_t Draws::Below(int64_t count) {
  return static_cast<int64_t>(static_cast<double>(count) *
                              Uniform(seed_, sequence_, drawn_++, /*draw=*/0));
}

double Draws::Percent() { return 100 * Uniform(seed_, sequence_, drawn_++, /*draw=*/0); }

std::vector<size_t> Draws::Copies(const std::vector<int64_t>& times) {
  std::vector<size_t> copies;
  for (size_t i = 0; i < times.size(); ++i) {
    copies.insert(copies.end(), static_cast<size_t>(times[i]), i);
  }
  Shuffle(copies);
  return copies;
}

// The beginning of a shuffle, which stores only the moved numbers.
std::vector<int64_t> Draws::Different(int64_t chosen, int64_t count) {
  std::unordered_map<int64_t, int64_t> moved;
  const auto at = [&](int64_t i) {
    const auto found = moved.find(i);
    return found == moved.end() ? i : found->second;
  };
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < chosen; ++i) {
    const int64_t other = i + Below(count - i);
    numbers.push_back(at(other));
    moved[other] = at(i);
  }
  return numbers;
}

}  // namespace godwit::eval
