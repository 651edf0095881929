#include "console/terminal/table.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace godwit::console {
namespace {

// The width on a terminal as fmt counts it: the padding that fmt does not add.
size_t WidthOf(std::string_view text) {
  constexpr size_t kPadded = 1000;
  return text.size() + kPadded - fmt::formatted_size("{:<{}}", text, kPadded);
}

bool IsLeft(const Column& column) { return column.heading.starts_with('<'); }

}  // namespace

Table::Table(std::vector<Column> columns, size_t indent)
    : columns_(std::move(columns)), indent_(indent, ' ') {
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading.substr(IsLeft(column)));
  if (std::ranges::any_of(headings, [](const auto& name) { return !name.empty(); })) {
    AddRow(headings);
  }
}

Table& Table::WidenFor(const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    columns_[i].width = std::max(columns_[i].width, WidthOf(cells[i]));
  }
  return *this;
}

Table& Table::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  WidenFor(cells);
  rows_.push_back(std::move(cells));
  return *this;
}

std::string Table::Line(const std::vector<std::string>& cells, const std::string& begin,
                        const char* between, const char* end) const {
  std::string line = begin;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += between;
    const size_t width = columns_[i].width;
    line += IsLeft(columns_[i]) ? fmt::format("{:<{}}", cells[i], width)
                                : fmt::format("{:>{}}", cells[i], width);
  }
  line += end;
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string Table::Take() {
  std::string text;
  for (; taken_ < rows_.size(); ++taken_) text += Line(rows_[taken_], indent_, "  ", "");
  return text;
}

std::string Table::InGroups(size_t labels, size_t width) const {
  constexpr size_t kBlanks = 2;
  std::string text;
  for (size_t begin = labels, end = begin; begin < columns_.size(); begin = end) {
    Table group({columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(labels)},
                indent_.size());
    size_t line = indent_.size();
    for (size_t i = 0; i < labels; ++i) line += columns_[i].width + kBlanks;
    do {
      group.columns_.push_back(columns_[end]);
      line += columns_[end].width + kBlanks;
    } while (++end < columns_.size() && line + columns_[end].width <= width);
    group.rows_.clear();
    for (const std::vector<std::string>& row : rows_) {
      std::vector<std::string>& cells = group.rows_.emplace_back();
      cells.assign(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(labels));
      cells.insert(cells.end(), row.begin() + static_cast<std::ptrdiff_t>(begin),
                   row.begin() + static_cast<std::ptrdiff_t>(end));
    }
    if (!text.empty()) text += '\n';
    text += group.Take();
  }
  return text;
}

std::string Table::Markdown() const {
  std::vector<std::string> rule;
  for (const Column& column : columns_) {
    rule.push_back(fmt::format("{:->{}}", IsLeft(column) ? "-" : ":", column.width));
  }
  std::string text;
  for (size_t i = 0; i < rows_.size(); ++i) {
    text += Line(rows_[i], "| ", " | ", " |");
    if (i == 0) text += Line(rule, "| ", " | ", " |");
  }
  return text;
}

Table Facts() { return Table({"<", "<"}).WidenFor({"parameters"}); }

}  // namespace godwit::console
