// Table: rows under headings, for people.
//
// Columns are as wide as what stands in them, two blanks apart; nothing stands behind the last
// cell of a line. Text is UTF-8.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace godwit::console {

// Aligned to the right, or with "<" before its heading to the left.
struct Column {
  Column(const char* heading, const char* format = "{}") : heading(heading), format(format) {}
  Column(std::string heading) : heading(std::move(heading)) {}

  std::string heading;
  std::string format = "{}";  // of its cells, as fmt takes it: "{:.2f} %"
  size_t width = 0;
};

class Table {
 public:
  // Where all headings are empty, none are printed. indent: blanks before every line.
  explicit Table(std::vector<Column> columns, size_t indent = 0);

  // A row, of what fmt can write. Cells that are missing at the end are empty.
  template <typename... Cells>
  Table& Add(const Cells&... cells) {
    size_t at = 0;
    return AddRow({fmt::format(fmt::runtime(columns_.at(at++).format), cells)...});
  }
  Table& AddRow(std::vector<std::string> cells);

  // For a table that is printed before all of its rows are known: columns as wide as these.
  Table& MakeRoomFor(const std::vector<std::string>& cells);

  // The lines that were not taken yet, the headings first of all.
  std::string Take();

  // All of it, in lines of at most `width` as far as that goes: where they would be longer, some of
  // the columns, and below them the others, each time behind the first `labels` ones.
  std::string InGroups(size_t labels, size_t width) const;

  // All of it, as Markdown has tables.
  std::string Markdown() const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::string& begin,
                   const char* between, const char* end) const;

  std::vector<Column> columns_;
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;  // the headings first, if there are any
  size_t taken_ = 0;
};

// Labels and what belongs to them: "time        3.2 s".
Table Facts();

}  // namespace godwit::console
