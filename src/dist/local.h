// Ranks in one process, each on a thread of its own: for tests, which may take a rank away.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dist/communicator.h"

namespace godwit {

class LocalWorld {
 public:
  explicit LocalWorld(int size);

  // The communicator of a rank. The world must outlive it.
  std::shared_ptr<Communicator> Rank(int rank);

  // Loses all that the rank sends from now on; a rank that waits for it finds it lost.
  void Silence(int rank);
  // Every frame waits `ms` before it arrives.
  void Delay(double ms);

 private:
  class Member;
  using Frame = std::vector<std::byte>;

  int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  double delay_ms_ = 0;
  std::vector<bool> silent_;
  std::map<std::pair<int, int>, std::deque<Frame>> frames_;  // of (from, to)
  std::optional<std::pair<int, std::string>> left_;          // the first rank that left, and why
};

}  // namespace godwit
