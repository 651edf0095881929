// Shared parts of the kernel tests: one instance of every test per instruction set, random numbers,
// and buffers. Buffers notice a write outside them and poison a read. Only *_test.cc files include
// it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/dispatch.h"

namespace godwit::kernels {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kEpsilon = std::numeric_limits<float>::epsilon();
inline constexpr float kTiny = std::numeric_limits<float>::min();

// Sizes around the lanes, tiles and panels of every instruction set.
inline constexpr int64_t kOddSizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 100, 257};

class IsaTest : public testing::TestWithParam<const Isa*> {
 protected:
  void SetUp() override {
    if (!GetParam()->supported()) {
      GTEST_SKIP() << "notice: this machine cannot run the kernels of " << GetParam()->name;
    }
  }
  const KernelTable& table() const { return *GetParam()->table; }
  static const KernelTable& scalar() { return *AllIsas().back().table; }
};

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadsAreWatched = true;
#elif defined(__has_feature)
inline constexpr bool kThreadsAreWatched = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadsAreWatched = false;
#endif

// Every instruction set. TSan sees no access of more than 16 bytes, and so threads share what it
// sees only where the kernels are scalar.
inline std::vector<const Isa*> IsaPointers() {
  std::vector<const Isa*> isas;
  for (const Isa& isa : AllIsas()) {
    if (!kThreadsAreWatched || isa.name == "scalar") isas.push_back(&isa);
  }
  return isas;
}

// Instruction sets that this machine can run, best first.
inline std::vector<const Isa*> SupportedIsas() {
  std::vector<const Isa*> isas = IsaPointers();
  std::erase_if(isas, [](const Isa* isa) { return !isa->supported(); });
  return isas;
}

// The one that users of this machine run, and with it the one that the others are held against.
inline std::vector<const Isa*> Best() { return {&BestIsa()}; }
inline std::vector<const Isa*> BestAndScalar() {
  std::vector<const Isa*> isas = Best();
  if (isas[0] != &AllIsas().back()) isas.push_back(&AllIsas().back());
  return isas;
}
inline std::vector<const Isa*> AllBut(const std::vector<const Isa*>& left_out) {
  std::vector<const Isa*> isas = SupportedIsas();
  std::erase_if(isas, [&](const Isa* isa) { return std::ranges::count(left_out, isa) > 0; });
  return isas;
}

inline std::string IsaTestName(const testing::TestParamInfo<const Isa*>& info) {
  std::string name(info.param->name);
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

#define GODWIT_FOR_EVERY_ISA(Suite) \
  INSTANTIATE_TEST_SUITE_P(Isa, Suite, testing::ValuesIn(IsaPointers()), IsaTestName)

// n elements, `offset` elements past a 64-byte boundary, between two guards. The bytes are 0xff
// until they are written: NaN in every float type.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t n, int64_t offset = 0)
      : n_(n), offset_(offset), bytes_(kGuard * 2 + 64 + (n + offset) * sizeof(T), kPoison) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuard;
    begin_ = kGuard + (64 - address % 64) % 64 + offset * sizeof(T);
  }
  Guarded(const Guarded& other) : Guarded(other.n_, other.offset_) {
    std::memcpy(bytes_.data() + begin_, other.bytes_.data() + other.begin_, n_ * sizeof(T));
  }
  Guarded(Guarded&&) = default;
  Guarded& operator=(const Guarded&) = delete;
  T* data() { return reinterpret_cast<T*>(bytes_.data() + begin_); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data() + begin_); }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return n_; }

  bool GuardsIntact() const {
    const size_t end = begin_ + n_ * sizeof(T);
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if ((i < begin_ || i >= end) && bytes_[i] != kPoison) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr unsigned char kPoison = 0xff;
  int64_t n_, offset_;
  std::vector<unsigned char> bytes_;
  size_t begin_;
};

class RandomFloats {
 public:
  explicit RandomFloats(uint32_t seed) : engine_(seed) {}
  float operator()(float low = -1, float high = 1) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  int64_t Integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  // Often one of the bounds.
  int64_t Extreme(int64_t low, int64_t high) {
    const int64_t choice = Integer(0, 7);
    return choice == 0 ? low : choice == 1 ? high : Integer(low, high);
  }
  template <class Container>
  void Fill(Container& out, float low = -1, float high = 1) {
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) out[i] = (*this)(low, high);
  }

 private:
  std::mt19937 engine_;
};

inline uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

// A number in a storage type, and back.
template <class T>
T ToStorage(float x) {
  if constexpr (std::is_same_v<T, F16>) {
    return ToF16(x);
  } else if constexpr (std::is_same_v<T, BF16>) {
    return ToBF16(x);
  } else if constexpr (std::is_same_v<T, int8_t>) {
    return x == x ? static_cast<int8_t>(x * 127) : int8_t{-128};  // of numbers in [-1, 1]
  } else {
    return x;
  }
}
template <class T>
float FromStorage(T x) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int8_t>) {
    return x;
  } else {
    return ToFloat(x);
  }
}

}  // namespace godwit::kernels
