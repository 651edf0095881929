// What several hosts would take over contexts, as a table for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rank_time.h"
#include "kv/kv_layout.h"
#include "model/spec.h"

namespace godwit::lab {

struct RankTimeReport {
  DecoderSpec spec;
  KvLayout layout;
  std::vector<std::string> prefills;  // each a part of the table
  std::vector<int64_t> contexts;
  std::vector<int64_t> hosts;
  bench::HostTimes times;
  bench::Network network;
};

std::string RankTimeText(const RankTimeReport& report);

}  // namespace godwit::lab
