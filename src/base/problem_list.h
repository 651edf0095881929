// Collects what is wrong with one input, so that a user learns of everything in one run.
// Not thread-safe. Memory is bounded: what is not shown is counted, not kept.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace godwit {

class ProblemList {
 public:
  // Shows the first `most` problems; of a file that anyone may have written, a screenful.
  explicit ProblemList(size_t most = 20) : most_(most) {}

  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    if (++count_ <= most_) shown_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // What `other` holds follows what this list holds; counts add up.
  void Append(const ProblemList& other) {
    for (const std::string& problem : other.shown_) {
      if (shown_.size() < most_) shown_.push_back(problem);
    }
    count_ += other.count_;
  }

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }

  // One problem per line, indented under `heading`; a single one stands on the heading's line.
  std::string Text(std::string_view heading) const {
    if (count_ == 1) return fmt::format("{}: {}", heading, shown_[0]);
    std::string text = fmt::format("{}: {} problems", heading, count_);
    for (const std::string& problem : shown_) text += "\n  " + problem;
    if (count_ > shown_.size()) text += fmt::format("\n  ... and {} more", count_ - shown_.size());
    return text;
  }

  void ThrowIfAny(ErrorKind kind, std::string_view heading) const {
    if (!empty()) throw Error(kind, Text(heading));
  }

 private:
  size_t most_;
  size_t count_ = 0;
  std::vector<std::string> shown_;
};

}  // namespace godwit
