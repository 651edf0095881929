// Rows of small panels, each of which shows thousands of values as one filled outline of steps:
// outliers stand out of it, whatever their number.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace godwit::cli {

struct StepPanel {
  std::vector<float> values;  // not negative; empty: only the note
  std::string note;           // above the panel
};

// What is compared: side by side, on the same logarithmic axis.
using StepPair = std::array<StepPanel, 2>;

struct StepRow {
  std::string name;
  std::vector<StepPair> pairs;
};

struct StepPanels {
  std::string title;
  std::vector<std::string> columns;  // above the panels, two for each pair
  std::vector<StepRow> rows;

  // A panel has one path of steps, and never more of them than pixels: each shows the largest of
  // the values that fall into it. What is under a ten-thousandth of a pair's largest is shown as
  // nothing.
  std::string Svg() const;
};

}  // namespace godwit::cli
