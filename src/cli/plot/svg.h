// The pieces of a chart as an SVG file: no fonts, no scripts, readable in a browser and in a
// repository. Dark on a ground of its own, so that it looks the same on a dark page.
#pragma once

#include <array>
#include <string>

namespace godwit::cli {

// Told apart by people who see colours differently, too (Okabe and Ito).
inline constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#e69f00", "#56b4e9", "#7f7f7f"};

// Ends with "</svg>\n".
std::string SvgStart(double width, double height);

// anchor: start, middle or end. more: further attributes, with a blank in front.
std::string SvgText(double x, double y, const char* anchor, const std::string& text,
                    const char* more = "");

}  // namespace godwit::cli
