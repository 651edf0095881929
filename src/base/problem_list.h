// Collects what is wrong with one input, so that a user learns of all kinds of it in one run.
// Not thread-safe. Memory and text are bounded: of many problems of one kind the first is kept, and
// the others are counted.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace godwit {

class ProblemList {
 public:
  static constexpr size_t kShown = 3;  // of a kind that has no more
  static constexpr size_t kKinds = 8;

  // Problems of one `format` are of one kind.
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    ++count_;
    const fmt::string_view name = format;
    Kind& kind = Find({name.data(), name.size()});
    if (++kind.count > kShown) return;
    kind.shown.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }

  // The list as text: one problem per line, indented under `heading`, kind after kind. A kind with
  // many problems has the first and their count. A single problem stands on the heading's line.
  std::string Text(std::string_view heading) const {
    if (count_ == 1) return fmt::format("{}: {}", heading, kinds_[0].shown[0]);
    std::string text = fmt::format("{}: {} problems", heading, count_);
    size_t told = 0;
    for (const Kind& kind : std::span(kinds_).first(std::min(kKinds, kinds_.size()))) {
      told += kind.count;
      if (kind.count > kShown) {
        text += fmt::format("\n  {}, and {} more like it", kind.shown[0], kind.count - 1);
        continue;
      }
      for (const std::string& problem : kind.shown) text += "\n  " + problem;
    }
    if (told < count_) text += fmt::format("\n  and {} of other kinds", count_ - told);
    return text;
  }

  void ThrowIfAny(ErrorKind kind, std::string_view heading) const {
    if (!empty()) throw Error(kind, Text(heading));
  }

 private:
  struct Kind {
    std::string_view format;  // a literal
    size_t count = 0;
    std::vector<std::string> shown;
  };

  Kind& Find(std::string_view format) {
    const auto found = std::ranges::find(kinds_, format, &Kind::format);
    return found != kinds_.end() ? *found
                                 : kinds_.emplace_back(Kind{.format = format, .shown = {}});
  }

  size_t count_ = 0;
  std::vector<Kind> kinds_;
};

}  // namespace godwit
