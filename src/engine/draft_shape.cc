#include "engine/draft_shape.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "attention/core/token_count.h"
#include "base/error.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "generate/step_costs.h"

namespace godwit {
namespace {

int64_t Within(std::string_view text) {
  const auto number = ParseTokenCount(text);
  if (!number || *number < 1 || *number > StepCosts::kMaxRows) {
    Throw(ErrorKind::kInput, "the shape of a draft tree: expected 1 to {}, found {}",
          StepCosts::kMaxRows, Quote(text));
  }
  return *number;
}

DraftShape FixedShape(std::string_view text, char mark) {
  DraftShape shape;
  shape.rows = shape.depth = StepCosts::kMaxRows;
  for (const std::string_view children : SplitAt(mark, text)) {
    shape.fixed.push_back(Within(children));
  }
  return shape;
}

constexpr int64_t kHuge = 1'000'000;

// The rows of such a tree with the text's last token; kHuge stands for all above it.
int64_t RowsOf(const DraftShape& shape) {
  int64_t rows = 1, level = 1;
  for (const int64_t children : shape.fixed) {
    level = std::min(level * children, kHuge);
    rows = std::min(rows + level, kHuge);
  }
  return rows;
}

// Returns the shape. Refuses one that no step can read: its trees would be cut.
DraftShape Checked(DraftShape shape, std::string_view text) {
  const int64_t rows = RowsOf(shape);
  if (rows > StepCosts::kMaxRows) {
    Throw(ErrorKind::kInput,
          "the shape of a draft tree {} has {} rows with the text's last token, expected {} at the "
          "most, as many as a step reads",
          Quote(text), rows < kHuge ? std::to_string(rows) : "over a million", StepCosts::kMaxRows);
  }
  return shape;
}

}  // namespace

DraftShape ParseDraftShape(std::string_view text) {
  if (text.empty()) return {};
  if (text.find('=') == std::string_view::npos) {
    if (text.find(',') == std::string_view::npos) return Checked(FixedShape(text, 'x'), text);
    DraftShape shape = FixedShape(text, ',');
    if (shape.fixed.front() != 1) {
      Throw(ErrorKind::kInput,
            "the shape of a draft tree {} begins with {}, expected 1: the first token of a path is "
            "the text's last one, which is known",
            Quote(text), shape.fixed.front());
    }
    shape.fixed.erase(shape.fixed.begin());
    return Checked(std::move(shape), text);
  }
  DraftShape shape;
  for (const std::string_view item : SplitAt(',', text)) {
    const size_t at = std::min(item.find('='), item.size());
    const std::string_view key = item.substr(0, at);
    int64_t* const limit = key == "rows"       ? &shape.rows
                           : key == "depth"    ? &shape.depth
                           : key == "children" ? &shape.children
                                               : nullptr;
    if (limit == nullptr || at == item.size()) {
      Throw(ErrorKind::kInput, "expected rows=N, depth=N or children=N, found {}", Quote(item));
    }
    *limit = Within(item.substr(at + 1));
  }
  return shape;
}

}  // namespace godwit
