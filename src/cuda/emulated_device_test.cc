#include "cuda/emulated_device.h"

#include "base/error.h"
#include "cuda/ops/norm.h"
#include "cuda/test_support.h"

namespace godwit::cuda::emulated_device_test {
namespace {

TEST(EmulatedKernels, HaveNamesOfTheirOwnAndFitIntoSharedMemory) {
  for (const EmulatedKernel& kernel : EmulatedKernels()) {
    EXPECT_EQ(FindEmulatedKernel(kernel.name), &kernel) << kernel.name;
    EXPECT_LE(kernel.threads, 1024) << kernel.name;
    EXPECT_LE(kernel.shared_bytes, 48 << 10) << kernel.name;  // that every GPU has
    EXPECT_LE(kernel.args_bytes, 4 << 10) << kernel.name;     // arguments of a GPU's function
  }
  EXPECT_EQ(FindEmulatedKernel("none"), nullptr);
}

TEST(EmulatedDevice, DoesNothingBeforeSomebodyWaits) {
  EmulatedDevice device;
  const Stream stream(device);
  const DeviceMemory memory(device, 4);
  int32_t number = 5, copy = 0;
  stream.CopyIn(&number, memory, 4);
  stream.CopyOut(memory, &copy, 4);
  number = 6;  // too early: the copy has not been made
  EXPECT_EQ(copy, 0);
  stream.Synchronize();
  EXPECT_EQ(copy, 6);
}

TEST(EmulatedDevice, StreamsWaitForEventsAlone) {
  EmulatedDevice device;
  const Stream first(device), second(device);
  const Event event(device);
  const DeviceMemory memory(device, 4);
  const int32_t five = 5, six = 6;
  int32_t without = 0, with = 0;
  event.LetWait(second);  // not recorded: there is nothing to wait for
  first.CopyIn(&five, memory, 4);
  event.RecordIn(first);
  first.CopyIn(&six, memory, 4);
  second.CopyOut(memory, &without, 4);
  event.LetWait(second);
  second.CopyOut(memory, &with, 4);
  second.Synchronize();
  EXPECT_EQ(without, -1);  // what memory begins with
  EXPECT_EQ(with, 5);      // the work behind the event is not done
  first.Synchronize();
  second.CopyOut(memory, &with, 4);
  second.Synchronize();
  EXPECT_EQ(with, 6);
}

TEST(EmulatedDevice, FreesMemoryAfterItsWork) {
  EmulatedDevice device({.memory_bytes = 100});
  int32_t copy = 0;
  const Stream stream(device);
  {
    const DeviceMemory memory(device, 64);
    EXPECT_EQ(device.FreeBytes(), 36);
    stream.CopyOut(memory, &copy, 4);
  }
  EXPECT_EQ(copy, -1);
  EXPECT_EQ(device.FreeBytes(), 100);
}

// The message of the Error of that kind, which work throws.
template <class Work>
std::string MessageOf(ErrorKind kind, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "no error";
}

// The host goes on behind an event, and not before what it stands for.
TEST(EmulatedDevice, LetsTheHostAwaitAnEvent) {
  EmulatedDevice device({.memory_bytes = 100});
  const Stream stream(device);
  const Event first(device), never(device);
  const DeviceMemory there(device, 4);
  const HostMemory here(device, 8);
  int* const numbers = reinterpret_cast<int*>(here.data());
  numbers[0] = 7;
  stream.CopyIn(numbers, there, 4);
  first.RecordIn(stream);
  stream.CopyOut(there, numbers + 1, 4);
  never.Await();
  EXPECT_EQ(numbers[1], -1);
  first.Await();
  numbers[0] = 8;
  EXPECT_EQ(numbers[1], -1) << "work behind the event waits";
  stream.Synchronize();
  EXPECT_EQ(numbers[1], 7);
}

TEST(EmulatedDevice, RefusesWhatDoesNotFit) {
  EmulatedDevice device({.memory_bytes = 3 << 20});
  const DeviceMemory memory(device, 1 << 20);
  EXPECT_EQ(MessageOf(ErrorKind::kMemory, [&] { DeviceMemory(device, 5 << 20); }),
            "the emulated GPU lacks memory: 5.0 MiB are needed, and 2.0 MiB of 3.0 MiB are free");
}

TEST(EmulatedDevice, RefusesKernelsThatNeedMore) {
  EmulatedDevice device({.shared_bytes = 16});
  const Stream stream(device);
  EXPECT_EQ(MessageOf(ErrorKind::kUnsupported,
                      [&] {
                        RmsNormRows(stream, {nullptr, 1, 1, 1}, nullptr, 0,
                                    DeviceMatrix<float>{nullptr, 1, 1, 1});
                      }),
            "the emulated GPU has too little shared memory: kernel RmsNorm needs 32 B of a block, "
            "found 16 B");
  EXPECT_EQ(
      MessageOf(ErrorKind::kUnsupported,
                [&] {
                  AddRows(stream, {nullptr, 1, 1 << 27, 0}, {nullptr, 1, 1 << 27, 0});
                }),
      "kernel Add would take 1 x 131072 x 1 blocks; the emulated GPU takes 2147483647 x 65535 x "
      "65535 at most");
}

// A kernel whose threads read what their neighbours write.
struct Racing {
  static constexpr int kThreads = 32;
  struct Args {
    int* numbers;  // [kThreads]
  };
  struct Shared {};
  template <class Block>
  static void Run(const Block& block, const Args& args) {
    block.ForThreads(
        [&](int thread) { args.numbers[thread] = args.numbers[(thread + 1) % kThreads] + 1; });
  }
};

TEST(EmulatedBlock, ShowsThreadsThatDisturbEachOther) {
  std::vector<int> ascending(32), descending(32);
  Racing::Run(EmulatedBlock<Racing>({0, 0, 0}, nullptr, false), {ascending.data()});
  Racing::Run(EmulatedBlock<Racing>({0, 0, 0}, nullptr, true), {descending.data()});
  EXPECT_NE(ascending, descending);
}

TEST(EmulatedBlock, JoinsWarpsLikeAButterfly) {
  const EmulatedBlock<Racing> block({0, 0, 0}, nullptr, false);
  PerThread<EmulatedBlock<Racing>, float> sums, maxima;
  float expected[32];
  for (int i = 0; i < 32; ++i) {
    EXPECT_TRUE(std::isnan(sums[i]));  // a register that nobody set
    sums[i] = maxima[i] = expected[i] = 1.0f / static_cast<float>(3 + i * 7 % 32);
  }
  for (int n = 16; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) expected[i] += expected[i + n];
  }
  block.SumOfWarps(sums);
  block.MaxOfWarps(maxima);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(Bits(sums[i]), Bits(expected[0]));
    EXPECT_EQ(maxima[i], 1.0f / 3);
  }
}

TEST(EmulatedBlock, MultipliesTiles) {
  using Block = EmulatedBlock<Racing>;
  const Block block({0, 0, 0}, nullptr, false);
  const auto a = [](int row, int k) { return static_cast<float>(row * 5 + k * 3 % 7 - 20); };
  const auto b = [](int k, int column) { return static_cast<float>(k - column * 11 % 13); };
  const auto word = [](float low, float high) {
    return ToBF16(low).bits | static_cast<uint32_t>(ToBF16(high).bits) << 16;
  };
  PerThread<Block, TileA> left;
  PerThread<Block, TileB> right;
  PerThread<Block, TileC> sums;
  block.ForThreadsAlone([&](int thread) {
    const int g = thread / 4, t = thread % 4;
    const auto of_a = [&](int row, int pair) {
      return word(a(row, 2 * pair), a(row, 2 * pair + 1));
    };
    const auto of_b = [&](int pair) { return word(b(2 * pair, g), b(2 * pair + 1, g)); };
    left[thread] = {{of_a(g, t), of_a(g + 8, t), of_a(g, t + 4), of_a(g + 8, t + 4)}};
    right[thread] = {{of_b(t), of_b(t + 4)}};
    sums[thread] = {{1, 1, 1, 1}};
  });
  block.MultiplyTiles(left, right, sums);
  for (int thread = 0; thread < 32; ++thread) {
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 4 + i / 2 * 8, column = thread % 4 * 2 + i % 2;
      float expected = 1;
      for (int k = 0; k < 16; ++k) expected += a(row, k) * b(k, column);
      EXPECT_EQ(sums[thread].sums[i], expected) << "row " << row << ", column " << column;
    }
  }
}

}  // namespace
}  // namespace godwit::cuda::emulated_device_test
