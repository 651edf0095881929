#include "ops/exec.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <vector>

#include "base/error.h"
#include "kernels/dispatch.h"

namespace godwit::exec_test {
namespace {

class ExecTest : public testing::Test {
 protected:
  Exec On(ThreadPool& pool, const CancelToken* cancel = nullptr) {
    return {.pool = pool,
            .kernels = *kernels::AllIsas().back().table,
            .workspace = workspace_,
            .cancel = cancel};
  }

  Workspace workspace_;
};

TEST_F(ExecTest, EveryTaskRunsOnceOnAWorkerOfThePool) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const int64_t tasks : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> runs(tasks);
      On(pool).Parallel(tasks, [&](int64_t task, int worker) {
        ++runs[task];
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
      });
      for (const auto& run : runs) EXPECT_EQ(run, 1);
    }
  }
}

TEST_F(ExecTest, NestedTasksKeepTheirWorker) {
  ThreadPool pool(3);
  const Exec exec = On(pool);
  std::atomic<int> runs = 0;
  for (const int64_t inner_tasks : {1, 4}) {
    std::barrier all_at_once(3);
    exec.Parallel(3, [&](int64_t, int outer) {
      all_at_once.arrive_and_wait();  // each of the three workers has a task
      exec.Parallel(inner_tasks, [&](int64_t, int inner) {
        EXPECT_EQ(inner, outer);
        ++runs;
      });
    });
  }
  EXPECT_EQ(runs, 3 * (1 + 4));
}

TEST_F(ExecTest, EveryRowRunsOnce) {
  ThreadPool pool(3);
  for (const int64_t rows : {0, 1, 2, 63, 8192, 10'000}) {
    for (const int64_t floats : {0, 1, 3, 4096, 8191, 100'000}) {
      std::vector<std::atomic<int>> runs(rows);
      On(pool).ParallelRows(rows, floats, [&](int64_t row) { ++runs[row]; });
      for (const auto& run : runs) ASSERT_EQ(run, 1) << rows << " rows of " << floats;
    }
  }
}

TEST_F(ExecTest, CancelDropsWhatHasNotBegun) {
  ThreadPool pool(1);
  CancelToken cancel;
  int ran = 0;
  try {
    On(pool, &cancel).Parallel(100, [&](int64_t task) {
      ++ran;
      if (task == 3) cancel.Cancel();
    });
    ADD_FAILURE() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
  EXPECT_EQ(ran, 4);
}

TEST_F(ExecTest, CancelInTheLastTaskIsNoticed) {
  ThreadPool pool(2);
  for (const int64_t tasks : {1, 7}) {
    CancelToken cancel;
    EXPECT_THROW(On(pool, &cancel)
                     .Parallel(tasks,
                               [&](int64_t task) {
                                 if (task == tasks - 1) cancel.Cancel();
                               }),
                 Error);
  }
}

TEST_F(ExecTest, CancelledBeforehandRunsNothing) {
  ThreadPool pool(2);
  CancelToken cancel;
  cancel.Cancel();
  for (const int64_t tasks : {1, 50}) {
    std::atomic<int> ran = 0;
    EXPECT_THROW(On(pool, &cancel).Parallel(tasks, [&](int64_t) { ++ran; }), Error);
    EXPECT_EQ(ran, 0);
  }
}

}  // namespace
}  // namespace godwit::exec_test
