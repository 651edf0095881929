// A chart of lines as an SVG file.
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

}  // namespace godwit::cli
