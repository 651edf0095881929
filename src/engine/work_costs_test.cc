#include "engine/work_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace godwit::work_costs_test {
namespace {

// A made-up machine: the costs of a step of these rows behind that many bytes and keys. A key has
// two bytes.
struct Machine {
  double one_ms = 40, row_ms = 2, key_ms = 0.001, byte_ms = 0.003;

  double Ms(const StepWork& work) const {
    return one_ms + row_ms * static_cast<double>(work.rows - 1) +
           std::max(key_ms * work.keys, byte_ms * work.bytes) + byte_ms * work.alone_bytes;
  }
};

StepWork Reading(int64_t begin, int64_t rows) {
  const auto n = static_cast<double>(rows), first = static_cast<double>(begin);
  return {.rows = rows, .keys = n * (first + (n + 1) / 2), .bytes = 2 * (first + n)};
}
StepWork Answering(int64_t length) {
  return {.rows = 1, .alone_bytes = 2 * static_cast<double>(length)};
}

void Measure(WorkCosts& costs, const Machine& machine, const StepWork& work, double times = 1) {
  costs.Record(work, times * machine.Ms(work));
}

// Reads 2,048 tokens in chunks, and writes 200.
void MeasureText(WorkCosts& costs, const Machine& machine) {
  for (int64_t begin = 0; begin < 2048; begin += 256) Measure(costs, machine, Reading(begin, 256));
  for (int64_t length = 2048; length < 2248; ++length) {
    Measure(costs, machine, Answering(length));
  }
  for (int64_t length = 16; length < 30; ++length) Measure(costs, machine, Answering(length));
}

void ExpectNear(std::optional<double> ms, double expected) {
  ASSERT_TRUE(ms.has_value());
  EXPECT_NEAR(*ms, expected, 1e-6 * expected);
}

TEST(WorkCostsTest, MadeUpCostsAreFoundExactly) {
  const Machine machine;
  WorkCosts costs;
  EXPECT_FALSE(costs.Ms(Answering(10)).has_value());
  MeasureText(costs, machine);
  for (const StepWork& work : {Answering(1), Answering(2000), Answering(100'000), Reading(0, 256),
                               Reading(100'000, 256), Reading(3000, 100)}) {
    ExpectNear(costs.Ms(work), machine.Ms(work));
  }
  const std::vector<StepWork> steps{Reading(0, 256), Reading(256, 256), Answering(512)};
  ExpectNear(costs.Ms(steps), machine.Ms(steps[0]) + machine.Ms(steps[1]) + machine.Ms(steps[2]));
}

// Few rows behind a long text wait for memory, not for multiplications.
TEST(WorkCostsTest, AttentionOfFewRowsIsBoundByBytes) {
  const Machine machine{.key_ms = 0.0001, .byte_ms = 0.01};
  WorkCosts costs;
  MeasureText(costs, {.key_ms = 0.0001, .byte_ms = 0});
  // Costs of bytes come from rows that attend alone.
  WorkCosts learned;
  for (int64_t begin = 0; begin < 2048; begin += 256) {
    StepWork work = Reading(begin, 256);
    Measure(learned, machine, work);
  }
  for (int64_t length = 50; length < 3000; length += 10) {
    Measure(learned, machine, Answering(length));
  }
  const StepWork few = Reading(50'000, 4);
  EXPECT_GT(machine.byte_ms * few.bytes, machine.key_ms * few.keys);
  ASSERT_TRUE(learned.Ms(few).has_value());
  EXPECT_GT(*learned.Ms(few), 0.95 * machine.byte_ms * few.bytes);
  EXPECT_LT(*costs.Ms(few), 100);
}

// A row that chooses its keys costs what an answer token costs, without the base of a step.
TEST(WorkCostsTest, RowsThatAttendAloneCostTheirBytes) {
  const Machine machine;
  WorkCosts costs;
  MeasureText(costs, machine);
  const StepWork question{.rows = 100, .alone_bytes = 70'000};
  ExpectNear(costs.Ms(question), machine.one_ms + 99 * machine.row_ms + 0.003 * 70'000);
}

TEST(WorkCostsTest, AnInterruptionCountsForNothing) {
  const Machine machine;
  WorkCosts costs;
  MeasureText(costs, machine);
  for (int64_t length = 2248; length < 2600; ++length) {
    Measure(costs, machine, Answering(length), length % 10 == 0 ? 20 : 1);
  }
  Measure(costs, machine, Reading(512, 256));
  Measure(costs, machine, Reading(512, 256), 9);
  ExpectNear(costs.Ms(Answering(2400)), machine.Ms(Answering(2400)));
  ExpectNear(costs.Ms(Reading(4096, 256)), machine.Ms(Reading(4096, 256)));
}

// Where every second step is interrupted, the next ones will be, too.
TEST(WorkCostsTest, ManyInterruptionsCount) {
  const Machine machine;
  WorkCosts costs;
  MeasureText(costs, machine);
  for (int64_t length = 2248; length < 2600; ++length) {
    Measure(costs, machine, Answering(length), length % 2 == 0 ? 3 : 1);
  }
  const double mean_ms = 2 * machine.Ms(Answering(2600));
  EXPECT_GT(*costs.Ms(Answering(2600)), 0.8 * mean_ms);
  EXPECT_LT(*costs.Ms(Answering(2600)), 1.1 * mean_ms);
}

TEST(WorkCostsTest, NewCostsReplaceOldOnes) {
  const Machine before, now{.one_ms = 90, .row_ms = 3, .key_ms = 0.005, .byte_ms = 0.001};
  WorkCosts costs;
  MeasureText(costs, before);
  for (int i = 0; i < 9; ++i) MeasureText(costs, now);
  ExpectNear(costs.Ms(Reading(9000, 256)), now.Ms(Reading(9000, 256)));
  ExpectNear(costs.Ms(Answering(9000)), now.Ms(Answering(9000)));
}

// The first steps find memory untouched.
TEST(WorkCostsTest, FirstStepsDoNotCount) {
  const Machine machine;
  WorkCosts costs;
  Measure(costs, machine, Reading(0, 256), 3);
  Measure(costs, machine, Answering(256), 5);
  EXPECT_EQ(costs.steps(), 0);
  EXPECT_FALSE(costs.Ms(Reading(0, 256)).has_value());
  Measure(costs, machine, Answering(257));
  EXPECT_EQ(costs.steps(), 1);
  ExpectNear(costs.Ms(Answering(257)), machine.Ms(Answering(257)));
  EXPECT_FALSE(costs.Ms(Reading(256, 256)).has_value()) << "nothing was read yet";
}

// More rows never take less time than fewer, whatever was measured.
TEST(WorkCostsTest, MoreRowsTakeNoLess) {
  WorkCosts costs;
  for (int i = 0; i < 3; ++i) {
    costs.Record({.rows = 1, .alone_bytes = 10}, 30);
    costs.Record({.rows = 8, .keys = 0}, 50);
    costs.Record({.rows = 64, .keys = 0}, 45);
  }
  EXPECT_EQ(*costs.Ms({.rows = 20}), 50);
  EXPECT_EQ(*costs.Ms({.rows = 64}), 50);
  EXPECT_EQ(*costs.Ms({.rows = 128}), 70) << "a row takes no less than 0.7 of one measured";
}

TEST(WorkCostsTest, TellsOnlyWhatIsNearItsMeasurements) {
  WorkCosts costs;
  const Machine machine;
  const std::vector<StepWork> near{Reading(0, 256), Answering(1000)};
  EXPECT_FALSE(costs.Tells(near));
  MeasureText(costs, machine);
  EXPECT_TRUE(costs.Tells(near));
  const std::vector<StepWork> deep{Reading(40'000, 256)}, deep_answer{Answering(40'000)};
  EXPECT_FALSE(costs.Tells(deep));
  EXPECT_FALSE(costs.Tells(deep_answer));
  Measure(costs, machine, Reading(20'000, 256));
  EXPECT_TRUE(costs.Tells(deep));
  EXPECT_FALSE(costs.Tells(deep_answer));
}

}  // namespace
}  // namespace godwit::work_costs_test
