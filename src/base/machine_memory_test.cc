#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"

namespace godwit {
namespace {

TEST(MachineMemoryTest, ReadsTheMachine) {
  const MachineMemory memory = ReadMachineMemory();
  EXPECT_GT(memory.total_bytes, int64_t{64} << 20);
  EXPECT_GT(memory.available_bytes, 0);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

TEST(MachineMemoryTest, ThePageCacheOfAContainerIsNotTaken) {
  const TempFolder folder;
  EXPECT_EQ(CgroupUsedBytes(folder.path().string()), 0);
  folder.Write("memory.current", "1000\n");
  EXPECT_EQ(CgroupUsedBytes(folder.path().string()), 1000);
  folder.Write("memory.stat", "anon 300\nfile 650\ninactive_file 400\nactive_file 200\nslab 50\n");
  EXPECT_EQ(CgroupUsedBytes(folder.path().string()), 400);
}

TEST(MachineMemoryTest, FormatsBytesForPeople) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(int64_t{16} << 30), "16.0 GiB");
}

}  // namespace
}  // namespace godwit
