#include "console/options/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "console/exit_code.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

constexpr size_t kNarrow = 72;  // from here on, a column for the text beside the names is too thin

}  // namespace

size_t HelpColumns() { return std::clamp<size_t>(OutputColumns(), 48, 100); }

std::string HelpEntry(std::string_view name, std::string_view text, size_t columns,
                      size_t text_column) {
  const bool below = columns < kNarrow && text_column > kVerbColumn;
  if (below) text_column = 6;
  std::string entry = fmt::format("  {}", name);
  if (below || entry.size() + 2 > text_column) entry += fmt::format("\n{:{}}", "", text_column);
  return fmt::format("{:<{}}{}\n", entry, text_column, Wrap(text, columns, text_column));
}

std::string WrapStatus(std::string_view text) {
  if (!StatusIsTerminal() || text.find('\n') != std::string_view::npos) return std::string(text);
  return Wrap(text, static_cast<size_t>(StatusColumns()));
}

std::string Wrap(std::string_view text, size_t columns, size_t indent) {
  std::string wrapped;
  size_t column = indent;
  while (!text.empty()) {
    size_t length = std::min(text.find(' '), text.size());
    if (text.starts_with('[')) {  // text in brackets stays together if it fits
      const size_t end = std::min(text.find(' ', text.find(']')), text.size());
      if (indent + end <= columns) length = end;
    }
    if (column > indent && column + 1 + length > columns) {
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

std::string FlagPage::Usage() const {
  return fmt::format("{}{}{}", fmt::join(names, ", "), value.empty() ? "" : " ", value);
}

std::string FlagPage::Text() const {
  return fallback.empty() ? help : fmt::format("{} [default: {}]", help, fallback);
}

std::string HelpText(const CommandPage& page, size_t columns) {
  std::string text =
      Wrap(fmt::format("Usage: godwit {} {}", page.name, page.synopsis), columns, /*indent=*/7) +
      "\n\n" + Wrap(page.summary, columns) + "\n";
  std::string_view group;
  for (const FlagPage& flag : page.flags) {
    if (group != flag.group) text += fmt::format("\n{}\n", flag.group);
    group = flag.group;
    text += HelpEntry(flag.Usage(), flag.Text(), columns);
  }
  return text + "\n" + Wrap(kEnvironmentHelp, columns) + "\n\n" + Wrap(kExitCodes, columns) + "\n";
}

}  // namespace godwit::console
