#include "ops/profile.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>

#include "kernels/dispatch.h"
#include "ops/exec.h"

namespace godwit::profile_test {
namespace {

// A clock that ticks at every look.
Profile Ticking(int threads) {
  const auto now = std::make_shared<std::atomic<int64_t>>(0);
  return Profile(threads, [now] { return ++*now; });
}

int64_t SumOf(const ProfileTimes& times) {
  int64_t sum = times.join_wait_ns + times.one_thread_wait_ns;
  for (const int64_t ns : times.busy_ns) sum += ns;
  return sum;
}

class ProfileTest : public testing::Test {
 protected:
  Exec On(ThreadPool& pool, Profile& profile) {
    return {.pool = pool,
            .kernels = *kernels::AllIsas().back().table,
            .workspace = workspace_,
            .profile = &profile};
  }

  Workspace workspace_;
};

// Looks at the clock: the start, 1; the part begins, 2; the fork-join begins, 3. Three tasks take 4
// to 9. The fork-join ends, 10; the part ends, 11; the end, 12.
TEST_F(ProfileTest, CountsTasksWaitingAndTheCallingThread) {
  ThreadPool pool(1);
  Profile profile = Ticking(1);
  profile.Start();
  {
    const ProfilePart part(&profile, StepPart::kNorms);
    On(pool, profile).Parallel(3, [](int64_t) {});
  }
  profile.Stop();
  const ProfileTimes times = profile.Times();
  EXPECT_EQ(times.wall_ns, 11);
  EXPECT_EQ(times.busy_of(StepPart::kOneThread), 1 + 1);
  EXPECT_EQ(times.busy_of(StepPart::kNorms), 1 + 3 + 1);
  EXPECT_EQ(times.join_wait_ns, 7 - 3);
  EXPECT_EQ(times.one_thread_wait_ns, 0);
  EXPECT_EQ(times.fork_joins, 1);
}

// Two threads, but one task: the other thread waits for its whole time.
TEST_F(ProfileTest, OtherThreadsWaitForOneTask) {
  ThreadPool pool(2);
  Profile profile = Ticking(2);
  profile.Start();                                // 1
  On(pool, profile).Parallel(1, [](int64_t) {});  // 2 to 5
  profile.Stop();                                 // 6
  const ProfileTimes times = profile.Times();
  EXPECT_EQ(times.busy_of(StepPart::kOthers), 1) << "no part was named";
  EXPECT_EQ(times.busy_of(StepPart::kOneThread), 2);
  EXPECT_EQ(times.join_wait_ns, 2 * 3 - 1);
  EXPECT_EQ(times.one_thread_wait_ns, 2);
  EXPECT_EQ(SumOf(times), 2 * 5);
}

TEST_F(ProfileTest, TheInnermostPartCounts) {
  ThreadPool pool(1);
  Profile profile = Ticking(1);
  profile.Start();  // 1
  {
    const ProfilePart outer(&profile, StepPart::kActivation);    // 2
    On(pool, profile).Parallel(1, [&](int64_t) {                 // 3, 4
      const ProfilePart inner(&profile, StepPart::kQuantizing);  // 5, 6
    });                                                          // 7, 8
    const ProfilePart inner(&profile, StepPart::kProducts);      // 9, 10
  }                                                              // 11
  profile.Stop();                                                // 12
  const ProfileTimes times = profile.Times();
  EXPECT_EQ(times.busy_of(StepPart::kActivation), 1 + 1 + 1 + 1 + 1);
  EXPECT_EQ(times.busy_of(StepPart::kQuantizing), 1);
  EXPECT_EQ(times.busy_of(StepPart::kProducts), 1);
  EXPECT_EQ(SumOf(times), times.wall_ns);
}

// Tasks, tasks inside tasks, threads without a task, several stretches, and a body that throws.
TEST_F(ProfileTest, PartsAddUpToTheWhole) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (Profile profile : {Ticking(threads), Profile(threads)}) {
      const Exec exec = On(pool, profile);
      int64_t fork_joins = 0;
      for (int stretch = 0; stretch < 2; ++stretch) {
        profile.Start();
        for (const int64_t tasks : {0, 1, 3, 40}) {
          fork_joins += tasks > 0 ? 1 : 0;
          const ProfilePart part(&profile, StepPart::kAttention);
          exec.Parallel(tasks, [&](int64_t) {
            const ProfilePart inner(&profile, StepPart::kQuantizing);
            exec.Parallel(4, [](int64_t) {});
          });
        }
        ++fork_joins;
        EXPECT_THROW(exec.Parallel(20, [](int64_t) { throw std::runtime_error("task"); }),
                     std::runtime_error);
        profile.Stop();
        exec.Parallel(0, [](int64_t) {});
      }
      const ProfileTimes times = profile.Times();
      EXPECT_EQ(SumOf(times), times.whole_ns()) << threads;
      EXPECT_EQ(times.whole_ns(), threads * times.wall_ns);
      EXPECT_EQ(times.fork_joins, fork_joins);
      EXPECT_GE(times.join_wait_ns, 0);
      EXPECT_EQ(times.one_thread_wait_ns == 0, threads == 1);
      EXPECT_GT(times.busy_of(StepPart::kAttention), 0);
      EXPECT_EQ(times.busy_of(StepPart::kProducts), 0);
    }
  }
}

TEST_F(ProfileTest, KeepsTheTimesOfTasks) {
  ThreadPool pool(1);
  Profile profile = Ticking(1);
  std::vector<ForkJoin> kept;
  profile.KeepTasks(&kept);
  profile.Start();
  On(pool, profile).Parallel(2, [&](int64_t task) {
    for (int64_t i = 0; i < task; ++i) const ProfilePart tick(&profile, StepPart::kNorms);
  });
  profile.Stop();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].part, StepPart::kOthers);
  EXPECT_EQ(kept[0].task_ns, (std::vector<int64_t>{1, 3}));
}

TEST_F(ProfileTest, EveryPartHasAName) {
  for (size_t part = 0; part < kStepParts; ++part)
    EXPECT_FALSE(Name(static_cast<StepPart>(part)).empty());
}

}  // namespace
}  // namespace godwit::profile_test
