// Rows of small panels, each of which shows thousands of values as one filled outline of steps:
// outliers stand out of it, whatever their number.
#pragma once

#include <string>
#include <vector>

namespace godwit::cli {

struct StepPanel {
  std::vector<float> values;  // not negative; empty: only the note
  std::string note;           // above the panel
};

// Panels that are compared: side by side, on the same logarithmic axis.
using StepPair = std::vector<StepPanel>;

struct StepRow {
  std::string name;
  std::vector<StepPair> pairs;
};

struct StepPanels {
  std::string title;
  std::vector<std::string> columns;  // above all panels that stand in one
  std::vector<StepRow> rows;         // each with a panel for every column

  // A panel has one path of steps, and never more of them than pixels: each shows the largest of
  // the values that fall into it. What is under a ten-thousandth of a pair's largest is shown as
  // nothing.
  std::string Svg() const;
};

}  // namespace godwit::cli
