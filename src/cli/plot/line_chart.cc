#include "cli/plot/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace godwit::cli {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 70, kRight = 170, kTop = 40, kBottom = 50;

// Told apart by people who see colours differently, too (Okabe and Ito).
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#7f7f7f"};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

// One axis: values to pixels.
class Axis {
 public:
  Axis(std::vector<double> ticks, double from, double to, bool log)
      : ticks_(std::move(ticks)), from_(from), to_(to), log_(log) {}

  const std::vector<double>& ticks() const { return ticks_; }
  double At(double value) const {
    const double low = Scale(ticks_.front()), high = Scale(ticks_.back());
    return from_ + (Scale(value) - low) / (high - low) * (to_ - from_);
  }

 private:
  double Scale(double value) const { return log_ ? std::log10(value) : value; }

  std::vector<double> ticks_;
  double from_, to_;
  bool log_;
};

struct Range {
  double low = INFINITY;
  double high = -INFINITY;
  void Cover(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string Text(double x, double y, const char* anchor, const std::string& text,
                 const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, Escaped(text));
}

}  // namespace

std::vector<double> LinearTicks(double low, double high, int most) {
  if (!(low < high)) {
    const double around = std::max(1.0, std::fabs(low) / 10);
    low -= around;
    high += around;
  }
  const double rough = (high - low) / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step), last = std::ceil(high / step);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> LogTicks(double low, double high) {
  std::vector<double> ticks;
  const double first = std::floor(std::log10(low));
  const double last = std::max(first + 1, std::ceil(std::log10(high)));
  for (double power = first; power <= last; ++power) ticks.push_back(std::pow(10, power));
  return ticks;
}

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

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  svg += Text((kLeft + kWidth - kRight) / 2, 22, "middle", title, " font-size=\"15\"");
  svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", x_label);
  svg += Text(
      0, 0, "middle", y_label,
      fmt::format(" transform=\"translate(16 {}) rotate(-90)\"", (kTop + kHeight - kBottom) / 2)
          .c_str());
  for (const double tick : x.ticks()) {
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#e5e5e5\"/>\n", x.At(tick), kTop,
                       kHeight - kBottom);
    svg += Text(x.At(tick), kHeight - kBottom + 17, "middle", fmt::format("{:.6g}", tick));
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format("<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#e5e5e5\"/>\n", kLeft, y.At(tick),
                       kWidth - kRight);
    svg += Text(kLeft - 6, y.At(tick) + 4, "end", fmt::format("{:.6g}", tick));
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
    svg += Text(kWidth - kRight + 36, row, "start", lines[i].name);
  }
  return svg + "</svg>\n";
}

}  // namespace godwit::cli
