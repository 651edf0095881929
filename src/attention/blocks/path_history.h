// PathHistory: results for some of the last tokens of a text, for use by later tokens.
//
// The rows of a step are remembered as they come, and belong to the text when it has grown over
// them. A step that did not end, or the drafts of another path, leave nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace godwit {

template <class T>
class PathHistory {
 public:
  // Remembers a value for the row of a step (RowRun::RowAt) at that position; an older one is
  // replaced.
  void Put(int64_t position, int64_t row, T value) {
    for (Entry& entry : entries_) {
      if (entry.position != position || entry.row != row) continue;
      entry.value = std::move(value);
      return;
    }
    entries_.push_back({position, row, std::move(value)});
  }

  // Finds a value. Null: nothing is remembered. row: kOfText, or one of the step in progress.
  static constexpr int64_t kOfText = -1;
  const T* Find(int64_t position, int64_t row) const {
    const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
      return entry.position == position && (entry.row == row || row == kOfText);
    });
    return found == entries_.end() ? nullptr : &found->value;
  }

  // Keeps the rows of `path` among those of the last step, a tree. The text goes on from `length`
  // with them.
  void Accept(int64_t length, std::span<const int64_t> path) {
    std::erase_if(entries_, [&](const Entry& entry) {
      const int64_t place = entry.position - length;
      return place >= 0 && (place >= std::ssize(path) || path[place] != entry.row);
    });
  }

  int64_t size() const { return std::ssize(entries_); }

  // Forgets all but [begin, end).
  void Keep(int64_t begin, int64_t end) {
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.position < begin || entry.position >= end;
    });
  }

 private:
  struct Entry {
    int64_t position;
    int64_t row;
    T value;
  };
  std::vector<Entry> entries_;
};

}  // namespace godwit
