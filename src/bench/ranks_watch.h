// The processor time and bytes of the ranks of a test. Wall time tells little because ranks share
// cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <vector>

#include "dist/communicator.h"

namespace godwit::bench {

struct RankUse {
  double cpu_seconds;  // of all threads
  double sent_bytes;
};

// RanksWatch: measures from its construction on. All ranks make these calls, and begin together;
// null: there are none.
class RanksWatch {
 public:
  explicit RanksWatch(Communicator* ranks) : ranks_(ranks) {
    if (ranks_ == nullptr) return;
    ranks_->Barrier(nullptr);
    sent_bytes_ = ranks_->sent_bytes();
    clock_ = std::clock();
  }

  // [ranks], the same list on all of them.
  std::vector<RankUse> Read() const {
    if (ranks_ == nullptr) return {};
    const RankUse mine = {
        .cpu_seconds = static_cast<double>(std::clock() - clock_) / CLOCKS_PER_SEC,
        .sent_bytes = static_cast<double>(ranks_->sent_bytes() - sent_bytes_)};
    std::vector<RankUse> all(ranks_->size());
    ranks_->AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                      nullptr);
    return all;
  }

 private:
  Communicator* ranks_;
  int64_t sent_bytes_ = 0;
  std::clock_t clock_ = 0;
};

}  // namespace godwit::bench
