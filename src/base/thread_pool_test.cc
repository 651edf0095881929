#include "base/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <numeric>
#include <stdexcept>

#include "base/error.h"

namespace godwit::thread_pool_test {
namespace {

using ::testing::Each;

class ThreadPoolTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolTest, RunsEachTaskExactlyOnce) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.threads(), GetParam());
  for (const int64_t tasks : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<int> runs(tasks, 0);  // plain ints: TSan watches the join
    pool.Run(tasks, [&](int64_t task, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, pool.threads());
      ++runs[task];
    });
    EXPECT_THAT(runs, Each(1)) << tasks << " tasks";
  }
}

TEST_P(ThreadPoolTest, ManyShortJobsInARowAreSeparate) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> per_worker(pool.threads(), 0);
  constexpr int kJobs = 20000;
  for (int job = 0; job < kJobs; ++job) {
    pool.Run(5, [&](int64_t, int worker) { ++per_worker[worker]; });
  }
  EXPECT_EQ(std::accumulate(per_worker.begin(), per_worker.end(), int64_t{0}), 5 * kJobs);
}

TEST_P(ThreadPoolTest, WakesUpFromSleep) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // beyond the spinning
    std::atomic<int64_t> sum{0};
    pool.Run(100, [&](int64_t task, int) { sum += task; });
    ASSERT_EQ(sum, 4950);
  }
}

TEST_P(ThreadPoolTest, RethrowsAndStaysUsable) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> after{0};
    try {
      pool.Run(100, [&](int64_t task, int) {
        if (task == 10) throw std::runtime_error("task 10");
        if (task > 90) ++after;
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "task 10");
    }
    if (pool.threads() == 1) {
      EXPECT_EQ(after, 0);  // tasks come in order, and those not yet begun were dropped
    }
    std::atomic<int> runs{0};
    pool.Run(10, [&](int64_t, int) { ++runs; });
    ASSERT_EQ(runs, 10);
  }
}

TEST_P(ThreadPoolTest, WhenAllTasksThrowOneExceptionArrives) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.Run(100, [](int64_t, int) { throw std::runtime_error("x"); }),
               std::runtime_error);
}

TEST_P(ThreadPoolTest, NestedRunIsInlineAndKeepsTheWorker) {
  ThreadPool pool(GetParam());
  std::atomic<int> inner_runs{0};
  pool.Run(8, [&](int64_t, int outer_worker) {
    const auto thread = std::this_thread::get_id();
    pool.Run(4, [&](int64_t, int inner_worker) {
      EXPECT_EQ(inner_worker, outer_worker);
      EXPECT_EQ(std::this_thread::get_id(), thread);
      ++inner_runs;
    });
  });
  EXPECT_EQ(inner_runs, 32);
}

TEST_P(ThreadPoolTest, ASecondPoolInsideABodyIsNotNesting) {
  ThreadPool outer(GetParam());
  ThreadPool inner(2);
  std::atomic<int> runs{0};
  outer.Run(4, [&](int64_t, int) {
    inner.Run(4, [&](int64_t, int worker) {
      EXPECT_LT(worker, 2);
      ++runs;
    });
    outer.Run(1, [&](int64_t, int) { ++runs; });
  });
  EXPECT_EQ(runs, 20);
}

TEST_P(ThreadPoolTest, CallersTakeTurns) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> scratch(pool.threads(), 0);
  auto caller = [&] {
    for (int job = 0; job < 500; ++job) {
      pool.Run(3, [&](int64_t, int worker) { ++scratch[worker]; });
      pool.Run(1, [&](int64_t, int worker) { ++scratch[worker]; });
    }
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), int64_t{0}), 2 * 500 * 4);
}

TEST(ThreadPool, ConstructionAndDestructionInAnyState) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(4);
    if (round % 2 == 0) pool.Run(round, [](int64_t, int) {});
  }
}

TEST(ThreadPool, RefusesImpossibleCounts) {
  for (const int threads : {0, -1, ThreadPool::kMaxThreads + 1}) {
    EXPECT_THROW(ThreadPool{threads}, Error) << threads;
  }
}

TEST(ThreadPool, AnIdlePoolUsesNoCpu) {
  ThreadPool pool(4);
  pool.Run(100, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto cpu_ms = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  };
  const double before_ms = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // Three spinning workers would burn 200 ms or more; the sanitizers' own threads burn a little.
  EXPECT_LT(cpu_ms() - before_ms, 50);
}

}  // namespace
}  // namespace godwit::thread_pool_test
