#include "cli/plot/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/plot/axis.h"
#include "cli/plot/svg.h"

namespace godwit::cli {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 70, kRight = 170, kTop = 40, kBottom = 50;

struct Range {
  double low = INFINITY;
  double high = -INFINITY;
  void Cover(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

}  // namespace

std::string LineChart::Svg() const {
  const auto drawn = [&](const std::pair<double, double>& point) {
    return std::isfinite(point.first) && std::isfinite(point.second) &&
           (!log_y || point.second > 0);
  };
  Range xs, ys;
  for (const ChartLine& line : lines) {
    for (const auto& point : line.points) {
      if (!drawn(point)) continue;
      xs.Cover(point.first);
      ys.Cover(point.second);
    }
  }
  if (xs.low > xs.high) xs = ys = {1, 10};  // nothing to draw: empty axes
  const Axis x(LinearTicks(xs.low, xs.high, 8), kLeft, kWidth - kRight, false);
  const Axis y(log_y ? LogTicks(ys.low, ys.high) : LinearTicks(ys.low, ys.high, 6),
               kHeight - kBottom, kTop, log_y);

  std::string svg = SvgStart(kWidth, kHeight);
  svg += SvgText((kLeft + kWidth - kRight) / 2, 22, "middle", title, " font-size=\"15\"");
  svg += SvgText((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", x_label);
  svg += SvgText(
      0, 0, "middle", y_label,
      fmt::format(" transform=\"translate(16 {}) rotate(-90)\"", (kTop + kHeight - kBottom) / 2)
          .c_str());
  for (const double tick : x.ticks()) {
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#e5e5e5\"/>\n", x.At(tick), kTop,
                       kHeight - kBottom);
    svg += SvgText(x.At(tick), kHeight - kBottom + 17, "middle", fmt::format("{:.6g}", tick));
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format("<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#e5e5e5\"/>\n", kLeft, y.At(tick),
                       kWidth - kRight);
    svg += SvgText(kLeft - 6, y.At(tick) + 4, "end", fmt::format("{:.6g}", tick));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    std::string path;
    bool pen_is_down = false;
    for (const auto& point : lines[i].points) {
      if (drawn(point)) {
        path += fmt::format("{}{:.1f} {:.1f}", pen_is_down ? 'L' : 'M', x.At(point.first),
                            y.At(point.second));
      }
      pen_is_down = drawn(point);
    }
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", path,
                       colour);
    const double row = kTop + 10 + 20 * static_cast<double>(i);
    svg += fmt::format("<path d=\"M{} {}h18\" stroke=\"{}\" stroke-width=\"3\"/>\n",
                       kWidth - kRight + 12, row - 4, colour);
    svg += SvgText(kWidth - kRight + 36, row, "start", lines[i].name);
  }
  return svg + "</svg>\n";
}

}  // namespace godwit::cli
