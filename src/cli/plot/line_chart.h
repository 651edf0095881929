// A chart of lines as an SVG file: no fonts, no scripts, readable in a browser and in a repository.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace godwit::cli {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>>
      points;  // x ascending; points that are not finite are gaps
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_y = false;  // values that are not positive are gaps then
  std::vector<ChartLine> lines;

  std::string Svg() const;
};

// Round numbers that cover [low, high] in at most `most` + 1 steps of 1, 2 or 5 times a power of
// ten.
std::vector<double> LinearTicks(double low, double high, int most);
// Powers of ten from the one at or below `low` to the one at or above `high`, both positive.
std::vector<double> LogTicks(double low, double high);

}  // namespace godwit::cli
