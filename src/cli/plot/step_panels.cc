#include "cli/plot/step_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cli/plot/axis.h"
#include "cli/plot/svg.h"

namespace godwit::cli {
namespace {

constexpr double kMargin = 16, kTop = 66;      // of the picture
constexpr double kAxis = 36;                   // left of each pair, for the numbers
constexpr double kPanel = 180, kHeight = 100;  // of a panel
constexpr double kGap = 14;                    // between the panels of a pair
constexpr double kRow = kHeight + 66;          // with its name, its notes and what is below
constexpr double kDecades = 4;

// What is first in a pair is as it was found, what is second was made of it.
constexpr const char* kFirst = kColours[1];
constexpr const char* kSecond = kColours[0];

Axis LogAxis(const StepPair& pair, double top) {
  float high = 0, low = INFINITY;
  for (const StepPanel& panel : pair) {
    for (const float value : panel.values) {
      if (!(value > 0) || !std::isfinite(value)) continue;
      high = std::max(high, value);
      low = std::min(low, value);
    }
  }
  if (high == 0) high = low = 1;
  low = std::max(low, high * static_cast<float>(std::pow(10, -kDecades)));
  return {LogTicks(low, high), top + kHeight, top, /*log=*/true};
}

// One outline over the panel from `left` on, closed along its base.
std::string Steps(const std::vector<float>& values, double left, const Axis& y) {
  const double lowest = y.ticks().front(), highest = y.ticks().back();
  const int64_t count = std::ssize(values);
  const int64_t steps = std::min(count, static_cast<int64_t>(kPanel));
  std::string path = fmt::format("M{:.1f} {:.1f}", left, y.At(lowest));
  for (int64_t i = 0; i < steps; ++i) {
    const auto largest = *std::max_element(values.begin() + i * count / steps,
                                           values.begin() + (i + 1) * count / steps);
    path += fmt::format("V{:.1f}H{:.1f}",
                        y.At(std::clamp(static_cast<double>(largest), lowest, highest)),
                        left + kPanel * static_cast<double>(i + 1) / static_cast<double>(steps));
  }
  return path + fmt::format("V{:.1f}Z", y.At(lowest));
}

std::string DrawPanel(const StepPanel& panel, double left, const Axis& y, const char* colour) {
  const double bottom = y.At(y.ticks().front()), top = y.At(y.ticks().back());
  if (panel.values.empty()) {
    return SvgText(left + kPanel / 2, (top + bottom) / 2, "middle", panel.note, " fill=\"#888\"");
  }
  std::string svg = SvgText(left, top - 7, "start", panel.note, " font-size=\"11\"");
  for (const double tick : y.ticks()) {
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h{}\" stroke=\"#e5e5e5\"/>\n", left, y.At(tick),
                       kPanel);
  }
  svg += fmt::format("<path d=\"{}\" fill=\"{}\"/>\n", Steps(panel.values, left, y), colour);
  svg += SvgText(left, bottom + 13, "start", "0", " font-size=\"10\"");
  return svg + SvgText(left + kPanel, bottom + 13, "end",
                       fmt::format("{}", panel.values.size() - 1), " font-size=\"10\"");
}

// The left edge of a pair's panel.
double LeftOf(size_t pair, size_t panel) {
  const auto i = static_cast<double>(pair), j = static_cast<double>(panel);
  return kMargin + (i + 1) * kAxis + i * (2 * kPanel + kGap + kMargin) + j * (kPanel + kGap);
}

std::string DrawRow(const StepRow& row, double top) {
  std::string svg = SvgText(kMargin, top, "start", row.name, " font-weight=\"bold\"");
  for (size_t i = 0; i < row.pairs.size(); ++i) {
    const Axis y = LogAxis(row.pairs[i], top + 30);
    for (const double tick : y.ticks()) {
      svg += SvgText(LeftOf(i, 0) - 5, y.At(tick) + 4, "end", fmt::format("{:.6g}", tick),
                     " font-size=\"10\"");
    }
    for (size_t j = 0; j < row.pairs[i].size(); ++j) {
      svg += DrawPanel(row.pairs[i][j], LeftOf(i, j), y, j == 0 ? kFirst : kSecond);
    }
  }
  return svg;
}

}  // namespace

std::string StepPanels::Svg() const {
  const double width = LeftOf(columns.size() / 2, 0) - kAxis;
  std::string svg = SvgStart(width, kTop + kRow * static_cast<double>(rows.size()));
  svg += SvgText(width / 2, 24, "middle", title, " font-size=\"15\"");
  for (size_t i = 0; i < columns.size(); ++i) {
    svg += SvgText(LeftOf(i / 2, i % 2) + kPanel / 2, 48, "middle", columns[i]);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    svg += DrawRow(rows[i], kTop + 10 + kRow * static_cast<double>(i));
  }
  return svg + "</svg>\n";
}

}  // namespace godwit::cli
