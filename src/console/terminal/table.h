// Table: rows under headings, for people.
//
// Columns are as wide as their widest cell and two blanks apart. A line ends with its last cell.
// Text is UTF-8.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace godwit::console {

// A column, aligned to the right, or with "<" before its heading to the left.
struct Column {
  Column(const char* heading, const char* format = "{}") : heading(heading), format(format) {}
  Column(std::string heading) : heading(std::move(heading)) {}

  std::string heading;
  std::string format = "{}";  // fmt's format of the cells: "{:.2f} %"
  size_t width = 0;
};

class Table {
 public:
  // Headings are printed unless all are empty. indent: blanks before every line.
  explicit Table(std::vector<Column> columns, size_t indent = 0);

  // Adds a row of values that fmt can write. Missing cells at the end are empty.
  template <typename... Cells>
  Table& Add(const Cells&... cells) {
    size_t at = 0;
    return AddRow({fmt::format(fmt::runtime(columns_.at(at++).format), cells)...});
  }
  Table& AddRow(std::vector<std::string> cells);

  // Widens the columns to these cells, for a table that is printed before all rows are known.
  Table& WidenFor(const std::vector<std::string>& cells);

  // The lines that were not taken yet; the first are the headings.
  std::string Take();

  // The whole table in lines of at most `width`, if possible. Columns that do not fit go below, in
  // further groups, each behind the first `labels` columns.
  std::string InGroups(size_t labels, size_t width) const;

  // The whole table in Markdown.
  std::string Markdown() const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::string& begin,
                   const char* between, const char* end) const;

  std::vector<Column> columns_;
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;  // the headings first, if there are any
  size_t taken_ = 0;
};

// A table of labels and values: "time        3.2 s".
Table Facts();

}  // namespace godwit::console
