#include "console/terminal/table.h"

#include <gtest/gtest.h>

namespace godwit::console::table_test {
namespace {

TEST(Table, WidthFollowsTheContent) {
  Table table({"<name", "value", "<note"}, /*indent=*/1);
  table.Add("long name", "1.25 ± 0.5").Add("b", 7, "x");
  EXPECT_EQ(table.Take(),
            " name            value  note\n"
            " long name  1.25 ± 0.5\n"
            " b                   7  x\n");
}

TEST(Table, FormatsTheCellsOfAColumn) {
  Table table({"n", {"share", "{:.1f} %"}});
  EXPECT_EQ(table.Add(1, 12.34).Add(10).Take(),
            " n   share\n"
            " 1  12.3 %\n"
            "10\n");
}

TEST(Table, GivesEachLineOnce) {
  Table table({"<task", "n"});
  table.WidenFor({"longer", "100"});
  EXPECT_EQ(table.Take(), "task      n\n");
  EXPECT_EQ(table.Take(), "");
  EXPECT_EQ(table.Add("a", 10).Take(), "a        10\n");
  EXPECT_EQ(table.Add("b", 200).Take(), "b       200\n");
}

TEST(Table, GroupsColumnsThatDoNotFit) {
  Table table({"<task", "n", "dense", "window"});
  table.Add("a", 10, 0.5, 0.25).Add("longer", 7, 1, 0);
  EXPECT_EQ(table.InGroups(1, 25),
            "task     n  dense  window\n"
            "a       10    0.5    0.25\n"
            "longer   7      1       0\n");
  EXPECT_EQ(table.InGroups(1, 24),
            "task     n  dense\n"
            "a       10    0.5\n"
            "longer   7      1\n"
            "\n"
            "task    window\n"
            "a         0.25\n"
            "longer       0\n");
  EXPECT_EQ(table.InGroups(3, 1),
            "task     n  dense  window\n"
            "a       10    0.5    0.25\n"
            "longer   7      1       0\n")
      << "one column at least";
}

TEST(Table, IsMarkdown) {
  Table table({"<test", "t/s"});
  EXPECT_EQ(table.Add("pp8", "12.5 ± 1").Markdown(),
            "| test |      t/s |\n"
            "| ---- | -------: |\n"
            "| pp8  | 12.5 ± 1 |\n");
}

TEST(Table, FactsHaveNoHeadings) {
  EXPECT_EQ(Facts().Add("time", "3.2 s").Take(), "time        3.2 s\n");
}

}  // namespace
}  // namespace godwit::console::table_test
