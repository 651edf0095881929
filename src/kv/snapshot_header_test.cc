#include "kv/snapshot_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/test_support.h"

namespace godwit::snapshot_header_test {
namespace {

using testing::HasSubstr;

MATCHER(SameRange, "") {
  const auto& [a, b] = arg;
  return a.begin == b.begin && a.end == b.end;
}

SnapshotInfo Info() {
  SnapshotInfo info{.label = "a model", .facts = {{"model", "x"}, {"kv type", "BF16"}}};
  info.parent = "0123";
  info.begin = 128;
  info.tokens.resize(192);
  std::iota(info.tokens.begin(), info.tokens.end(), 7);
  info.layout = {.layers = 3, .kv_heads = 2, .head_dim = 20, .dtype = DType::kBF16};
  return info;
}

// The same of a model with recurrent layers.
SnapshotInfo WithStates() {
  SnapshotInfo info = Info();
  info.layout.states = {.layers = 2, .floats = 700};
  info.states = {192, 320};
  return info;
}

// Pages and states are zeros.
std::vector<std::byte> FileOf(const SnapshotInfo& info) {
  std::vector<uint64_t> checksums(info.held_tiles() * info.layout.layers + std::ssize(info.states));
  std::iota(checksums.begin(), checksums.end(), 1000);
  auto file = MakeSnapshotHeader(info, checksums);
  const int64_t layer = (info.held_tiles() * info.page_bytes() + 4095) / 4096 * 4096;
  const int64_t state = (info.state_bytes() + 4095) / 4096 * 4096;
  file.resize(file.size() +
              static_cast<size_t>(info.layout.layers * layer + std::ssize(info.states) * state));
  return file;
}

TEST(SnapshotHeaderTest, SaysWhatWasWritten) {
  SnapshotInfo endless = Info();
  endless.parent = "";
  endless.begin = 0;
  endless.dropped = {64, 128};
  SnapshotInfo keys_alone = Info();
  keys_alone.layout.values_in_keys = true;
  SnapshotInfo indexed = keys_alone;
  indexed.layout.index_dim = 12;
  SnapshotInfo shared = Info();
  shared.skipped = {{128, 192}, {256, 320}};
  SnapshotInfo of_others = Info();
  of_others.skipped = {{128, 320}};
  for (const SnapshotInfo& info :
       {Info(), endless, keys_alone, indexed, WithStates(), shared, of_others}) {
    const auto file = FileOf(info);
    const SnapshotHeader header = ParseSnapshotHeader(file, "f");
    EXPECT_EQ(header.info.label, info.label);
    EXPECT_EQ(header.info.facts, info.facts);
    EXPECT_EQ(header.info.parent, info.parent);
    EXPECT_EQ(header.info.begin, info.begin);
    EXPECT_EQ(header.info.tokens, info.tokens);
    EXPECT_EQ(header.info.dropped.begin, info.dropped.begin);
    EXPECT_EQ(header.info.dropped.end, info.dropped.end);
    EXPECT_THAT(header.info.skipped, testing::Pointwise(SameRange(), info.skipped));
    EXPECT_EQ(header.info.layout.layers, 3);
    EXPECT_EQ(header.info.layout.kv_heads, 2);
    EXPECT_EQ(header.info.layout.head_dim, 20);
    EXPECT_EQ(header.info.layout.dtype, DType::kBF16);
    EXPECT_EQ(header.info.layout.values_in_keys, info.layout.values_in_keys);
    EXPECT_EQ(header.info.layout.index_dim, info.layout.index_dim);
    EXPECT_EQ(header.info.Name(), info.Name());
    EXPECT_EQ(header.info.states, info.states);
    EXPECT_EQ(header.info.state_bytes(), info.state_bytes());
    EXPECT_EQ(std::ssize(header.checksums), 3 * info.held_tiles() + std::ssize(info.states));
    for (size_t i = 0; i < header.checksums.size(); ++i) EXPECT_EQ(header.checksums[i], 1000 + i);
    EXPECT_EQ(header.file_bytes(), std::ssize(file));
    EXPECT_EQ(header.OffsetOf(0, 0) % SnapshotHeader::kAlignment, 0);
    EXPECT_EQ(header.OffsetOf(1, 0) % SnapshotHeader::kAlignment, 0);
    EXPECT_EQ(header.OffsetOf(1, 1) - header.OffsetOf(1, 0), info.page_bytes());
  }
}

TEST(SnapshotHeaderTest, StatesLieBehindThePages) {
  const auto file = FileOf(WithStates());
  const SnapshotHeader header = ParseSnapshotHeader(file, "f");
  EXPECT_EQ(header.OffsetOfState(0), header.OffsetOf(3, 0));
  EXPECT_EQ(header.OffsetOfState(1) - header.OffsetOfState(0), 8192);
  EXPECT_NE(WithStates().Name(), Info().Name());
}

TEST(SnapshotHeaderTest, ImpossibleStatesAreRefused) {
  const std::vector<std::vector<int64_t>> all = {{192},      {128, 320}, {320, 192},
                                                 {192, 192}, {200, 320}, {192, 320, 384}};
  for (const auto& states : all) {
    SnapshotInfo info = WithStates();
    info.states = states;
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ParseSnapshotHeader(FileOf(info), "f"); }),
                HasSubstr("\"states\" has an impossible value"));
  }
  SnapshotInfo info = WithStates();
  info.layout.states.layers = 0;
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ParseSnapshotHeader(FileOf(info), "f"); }),
              HasSubstr("\"state_floats\" has an impossible value"));
}

// The name of a snapshot depends on all that its numbers depend on, and on nothing else.
TEST(SnapshotHeaderTest, IsNamedByWhatItSays) {
  const std::string name = Info().Name();
  SnapshotInfo same = Info();
  same.label = "another";
  EXPECT_EQ(same.Name(), name);
  const auto differs = [&](auto change) {
    SnapshotInfo other = Info();
    change(other);
    EXPECT_NE(other.Name(), name);
  };
  differs([](SnapshotInfo& info) { info.facts[1].second = "I8"; });
  differs([](SnapshotInfo& info) { info.facts.emplace_back("context", "8192"); });
  differs([](SnapshotInfo& info) { info.parent = "0124"; });
  differs([](SnapshotInfo& info) { info.begin = 64; });
  differs([](SnapshotInfo& info) { ++info.tokens.back(); });
  differs([](SnapshotInfo& info) { info.layout.head_dim = 21; });
  differs([](SnapshotInfo& info) { info.layout.values_in_keys = true; });
  differs([](SnapshotInfo& info) { info.layout.centred = true; });
  differs([](SnapshotInfo& info) { info.layout.index_dim = 12; });
}

TEST(SnapshotHeaderTest, IsRefusedWhereverItIsCut) {
  const auto file = FileOf(Info());
  for (size_t bytes = 0; bytes < file.size(); bytes += bytes < 5000 ? 1 : 1009) {
    const Error error = ErrorOf([&] { ParseSnapshotHeader(std::span(file).first(bytes), "f"); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    EXPECT_THAT(error.what(), HasSubstr("f: "));
  }
  auto longer = file;
  longer.resize(file.size() + 1);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ParseSnapshotHeader(longer, "f"); }),
              HasSubstr("something follows"));
}

TEST(SnapshotHeaderTest, IsRefusedWhateverBitIsFlipped) {
  auto file = FileOf(Info());
  const int64_t end = ParseSnapshotHeader(file, "f").data_begin;
  for (int64_t at = 0; at < end; ++at) {
    const int bit = static_cast<int>(at % 8);
    file[at] ^= std::byte{1} << bit;
    EXPECT_THROW(ParseSnapshotHeader(file, "f"), Error) << at;
    file[at] ^= std::byte{1} << bit;
  }
  EXPECT_NO_THROW(ParseSnapshotHeader(file, "f"));
}

TEST(SnapshotHeaderTest, OtherFilesAndVersionsAreNamed) {
  std::vector<std::byte> nothing(8192);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ParseSnapshotHeader(nothing, "f"); }),
              HasSubstr("f: not a file of cached keys and values"));
  auto newer = FileOf(Info());
  newer[8] = std::byte{9};
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { ParseSnapshotHeader(newer, "f"); }),
              HasSubstr("f: of version 9 of its format, and this program reads 1"));
}

// An attacker can write a file with a right checksum.
TEST(SnapshotHeaderTest, NonsenseWithARightChecksumIsRefused) {
  const auto refused = [](const char* what, auto change) {
    SnapshotInfo info = Info();
    change(info);
    const auto file = FileOf(info);
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ParseSnapshotHeader(file, "f"); }),
                HasSubstr(what));
  };
  refused("\"begin\" has an impossible value", [](SnapshotInfo& info) { info.begin = 100; });
  refused("\"begin\" has an impossible value", [](SnapshotInfo& info) { info.begin = 0; });
  refused("\"begin\" has an impossible value", [](SnapshotInfo& info) { info.parent = ""; });
  refused("\"dropped\" has an impossible value", [](SnapshotInfo& info) {
    info.dropped = {0, 64};
  });
  refused("\"dropped\" has an impossible value", [](SnapshotInfo& info) {
    info.parent = "";
    info.begin = 0;
    info.dropped = {10, 70};
  });
  const auto refused_skipped = [&](std::vector<ops::KvRange> skipped) {
    refused("\"skipped\" has an impossible value",
            [&](SnapshotInfo& info) { info.skipped = std::move(skipped); });
  };
  refused_skipped({{64, 128}});               // before its beginning
  refused_skipped({{256, 384}});              // behind its end
  refused_skipped({{128, 128}});              // nothing
  refused_skipped({{256, 192}});              // backwards
  refused_skipped({{130, 192}});              // not whole tiles
  refused_skipped({{192, 256}, {128, 192}});  // in another order
  refused("\"skipped\" has an impossible value", [](SnapshotInfo& info) {
    info.parent = "";
    info.begin = 0;
    info.dropped = {64, 128};
    info.skipped = {{128, 192}};
  });
  refused("\"head_dim\" has an impossible value",
          [](SnapshotInfo& info) { info.layout.head_dim = 5000; });
  refused("\"layers\" has an impossible value", [](SnapshotInfo& info) { info.layout.layers = 0; });
  refused("do not take", [](SnapshotInfo& info) { info.tokens.resize(191); });
  refused("do not take", [](SnapshotInfo& info) { info.tokens.clear(); });
}

}  // namespace
}  // namespace godwit::snapshot_header_test
