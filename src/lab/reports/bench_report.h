// The report of a finished bench: tables for people, JSON and CSV for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/gpu_work.h"
#include "bench/rank_time.h"
#include "bench/restore.h"
#include "bench/suite.h"
#include "godwit/engine.h"
#include "model/model_tensors.h"
#include "model/spec.h"
#include "ops/kv_layout.h"

namespace godwit::lab {

struct BenchReport {
  std::string model;    // the name of its folder or shape
  std::string weights;  // "int8 (head bf16)"
  std::string kv_type;
  std::string isa;
  int64_t weight_bytes = 0;
  bool fill_kv = false;
  double layers = 0;
  std::optional<DeviceUse> device = {};  // none: the CPU computes all
  bench::GpuWork gpu_work = {};          // with a device
  // With a device, unless limits were not asked for.
  std::optional<bench::GpuLimits> gpu_limits = {};
  bench::SuiteResult result = {};
};

std::string BenchText(const BenchReport& report);
std::string BenchJson(const BenchReport& report);
std::string BenchCsv(const BenchReport& report);

// The times that several hosts would take over contexts.
struct RankTimeReport {
  DecoderSpec spec;
  ModelTensors tensors;
  std::optional<DType> storage;  // as LoadDecoder takes it
  KvLayout layout;
  std::vector<std::string> prefills;  // one part of the table each
  std::vector<int64_t> contexts;
  std::vector<int64_t> hosts;
  int64_t chunk_tokens = 512;
  bench::HostTimes times;
  std::vector<bench::Network> networks;  // a table each
};

std::string RankTimeText(const RankTimeReport& report);

// The times that saving texts, and going on from them, takes.
std::string RestoreText(std::span<const bench::RestoreResult> results);
std::string RestoreJson(std::span<const bench::RestoreResult> results);

}  // namespace godwit::lab
