// Exec: the means of an operation: threads, kernels, scratch memory, and the wish to stop.
//
// Passed down every call, never global. One Exec serves one step at a time (its workspace is not
// thread-safe); several may share the pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "ops/linear_observer.h"
#include "ops/profile.h"
#include "tensor/workspace.h"

namespace godwit {

struct Exec {
  ThreadPool& pool;
  const kernels::KernelTable& kernels;
  Workspace& workspace;
  const CancelToken* cancel = nullptr;       // null: cannot be stopped
  const LinearObserver* observer = nullptr;  // null: none
  Profile* profile = nullptr;                // null: times are not measured
  const LinearFilter* filter = nullptr;      // null: none

  // Runs body(task) or body(task, worker) for every task in [0, tasks), on all cores; `worker` is
  // in [0, pool.threads()). Throws Error(kCancelled) when the caller asked to stop; the output of
  // the tasks is then unfinished.
  template <typename Body>
  void Parallel(int64_t tasks, const Body& body) const {
    const auto guarded = [&](int64_t task, int worker) {
      if (cancel != nullptr && cancel->cancelled()) return;
      if constexpr (std::is_invocable_v<const Body&, int64_t, int>) {
        body(task, worker);
      } else {
        body(task);
      }
    };
    if (profile == nullptr) {
      pool.Run(tasks, guarded);
    } else {
      profile->Run(pool, tasks, guarded);
    }
    if (cancel != nullptr) cancel->ThrowIfCancelled();
  }

  // Runs body(row), or body(row, worker), for every row. A task has several rows, so that it moves
  // at least `kTaskFloats` floats: below that, waking the threads costs more than the work.
  template <typename Body>
  void ParallelRows(int64_t rows, int64_t row_floats, const Body& body) const {
    constexpr int64_t kTaskFloats = 8192;
    const int64_t per_task = std::max<int64_t>(1, kTaskFloats / std::max<int64_t>(1, row_floats));
    Parallel((rows + per_task - 1) / per_task, [&](int64_t task, int worker) {
      const int64_t end = std::min(rows, (task + 1) * per_task);
      for (int64_t row = task * per_task; row < end; ++row) {
        if constexpr (std::is_invocable_v<const Body&, int64_t, int>) {
          body(row, worker);
        } else {
          body(row);
        }
      }
    });
  }
};

}  // namespace godwit
