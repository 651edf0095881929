// Passages of a text with one fact in each, and a question about each fact. A retrieval system puts
// such passages in front of a question.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::eval {

struct FactPassage {
  std::string text;
  std::string question;
  std::string answer;  // stands in no other passage, in upper or lower case
};

struct FactPassageOptions {
  int64_t count = 20;    // of passages, at most kMostFactPassages
  int64_t tokens = 400;  // of each, about
  // Whether all facts are of one form, "The secret code of the lantern is 4711.", so that they are
  // easily taken for each other. Else each has a form of its own.
  bool alike = false;
  uint64_t seed = 0;
};
inline constexpr int64_t kMostFactPassages = 24;

// Makes passages of a text, from stretches that do not overlap. Each begins and ends where a
// sentence or a line does. The same seed and text give the same passages. tokenize: adds no leading
// tokens. Throws Error(kInput) for a text that is too short.
std::vector<FactPassage> MakeFactPassages(
    std::string_view text, const FactPassageOptions& options,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize);

// The order of the passages of one question, which asks about the passage `asked`.
struct AskedOrder {
  std::vector<size_t> order;
  size_t asked;
};

// Draws the orders of questions. Each passage is asked about once before any is again.
std::vector<AskedOrder> DrawOrders(int64_t questions, int64_t passages, uint64_t seed);

}  // namespace godwit::eval
