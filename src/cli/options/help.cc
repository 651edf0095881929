#include "cli/options/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace godwit::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kTextColumn = 30;

}  // namespace

std::string HelpEntry(std::string_view name, std::string_view text) {
  std::string entry = fmt::format("  {}", name);
  if (entry.size() + 2 > kTextColumn) entry += fmt::format("\n{:{}}", "", kTextColumn);
  return fmt::format("{:<{}}{}\n", entry, kTextColumn, Wrap(text, kTextColumn));
}

std::string Wrap(std::string_view text, size_t indent) {
  std::string wrapped;
  size_t column = indent;
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + length > kColumns) {
      wrapped += fmt::format("\n{:{}}", "", indent);
      column = indent;
    } else if (column > indent) {
      wrapped += ' ';
      ++column;
    }
    wrapped += text.substr(0, length);
    column += length;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return wrapped;
}

}  // namespace godwit::cli
