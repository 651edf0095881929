// Journals over power cuts at random moments, one after the other. All that File::WaitForDisk and
// Folder::Remove brought to the disk stays so. The rest of a journal begins what was written.
//
// GODWIT_KILLS: a fiftieth of the number of cuts (default 4).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/test_folder.h"
#include "journal/folder.h"
#include "tests/power_cut/power_cut.h"

namespace godwit::journal::power_cut_test {
namespace {

namespace fs = std::filesystem;

constexpr double kLongMs = 60'000;
constexpr int kTexts = 3;
constexpr int kDiskUs = 1500;
constexpr uint32_t kToken = 1, kEnd = 2;

// An answer with some texts, each of which is 0, 1, 2 and so on. The order of their tokens in the
// file is another one in each process.
struct Counts {
  std::array<int, kTexts> tokens{};
  bool has_end = false;
};

// Whether a journal is one that a process may have written; fails the test otherwise.
Counts CountsOf(const std::string& name, const Records& records) {
  Counts counts;
  for (const Record& record : records.records) {
    EXPECT_FALSE(counts.has_end) << name << " goes on behind its end";
    if (record.kind == kEnd) {
      counts.has_end = true;
      continue;
    }
    const std::vector<int32_t> numbers = TokensOf(record.bytes);
    if (numbers.size() != 2 || numbers[0] < 0 || numbers[0] >= kTexts) {
      ADD_FAILURE() << name << " has a strange record";
      return counts;
    }
    int& count = counts.tokens[static_cast<size_t>(numbers[0])];
    EXPECT_EQ(numbers[1], count) << name << ": a token is missing or comes twice";
    count = numbers[1] + 1;
  }
  return counts;
}

// The part of an answer that clients know to be on the disk.
struct Told {
  Counts counts;
  bool is_leaving = false;  // being removed
  bool is_removed = false;
};

// A process: it writes answers until it is stopped. Others wait for the disk meanwhile.
class Process {
 public:
  Process(const fs::path& folder, uint64_t seed, std::map<std::string, Told>& told, int& next)
      : journal_(folder, {}, {}), told_(told) {
    std::vector<std::string> names = journal_.Unfinished();
    std::mt19937_64 random(seed);
    constexpr size_t kAnswers = 3;
    while (names.size() < kAnswers) names.push_back(fmt::format("a{}", next++));
    names.resize(kAnswers);
    for (const std::string& name : names) {
      threads_.emplace_back([this, name, seed = random()] { Write(name, seed); });
    }
  }

  ~Process() { stop_ = true; }

  std::map<std::string, Told> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  void Tell(const std::string& name, const Counts& counts) {
    const std::lock_guard lock(mutex_);
    Counts& told = told_[name].counts;
    for (size_t i = 0; i < kTexts; ++i) {
      told.tokens[i] = std::max(told.tokens[i], counts.tokens[i]);
    }
    told.has_end = told.has_end || counts.has_end;
  }

  void Write(const std::string& name, uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto before = journal_.Read(name);
    Counts counts = before ? CountsOf(name, *before) : Counts();
    if (counts.has_end) return;  // the rename by Finish was lost
    const auto file = before ? journal_.GoOn(name, *before) : journal_.Begin(name);
    if (file == nullptr) {
      ADD_FAILURE() << "no file";
      return;
    }
    std::mutex mutex;  // guards counts
    std::atomic<bool> ended = false;
    std::jthread client([&] {
      while (!stop_ && !ended) {
        Counts has;
        {
          const std::lock_guard lock(mutex);
          has = counts;
        }
        if (file->WaitForDisk(kLongMs)) Tell(name, has);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      }
    });
    std::mt19937_64 mine(seed + 1);
    while (!stop_ && !ended) {
      for (uint64_t i = mine() % 100; i > 0; --i) {
        const std::lock_guard lock(mutex);
        const auto text = static_cast<int32_t>(mine() % kTexts);
        const int32_t numbers[] = {text, counts.tokens[static_cast<size_t>(text)]++};
        file->Append(kToken, BytesOf(numbers));
      }
      if (mine() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(mine() % 500));
      if (mine() % 40 == 0) ended = true;
    }
    if (stop_) return;
    client.join();
    if (mine() % 3 == 0) {
      const auto tell = [&](bool is_removed) {
        const std::lock_guard lock(mutex_);
        told_[name].is_leaving = true;
        told_[name].is_removed = is_removed;
      };
      tell(false);
      journal_.Remove(name);
      return tell(true);
    }
    file->Append(kEnd, "");
    counts.has_end = true;
    journal_.Finish(name, *file);
    if (file->WaitForDisk(kLongMs)) Tell(name, counts);
  }

  Folder journal_;
  mutable std::mutex mutex_;  // guards told_
  std::map<std::string, Told>& told_;
  std::atomic<bool> stop_ = false;
  std::vector<std::jthread> threads_;  // last: they use the others
};

// Compares what a power cut has left with what was told. Answers that have ended are forgotten.
void Check(const fs::path& folder, std::map<std::string, Told>& told, int64_t& tokens,
           int64_t& tails) {
  const Folder journal(folder, {}, {});
  std::erase_if(told, [&](const auto& one) {
    const auto& [name, known] = one;
    const auto records = journal.Read(name);
    const Counts has = records ? CountsOf(name, *records) : Counts();
    EXPECT_FALSE(known.is_removed && records) << name << " is back";
    if (known.is_leaving && !records) return true;
    for (size_t i = 0; i < kTexts; ++i) {
      EXPECT_GE(has.tokens[i], known.counts.tokens[i]) << name;
      tokens += has.tokens[i];
    }
    EXPECT_TRUE(has.has_end || !known.counts.has_end) << name;
    if (records) tails += records->has_tail ? 1 : 0;
    return has.has_end;
  });
  for (auto& [name, known] : told) known.is_leaving = false;
}

TEST(PowerCut, LosesNothingThatWasOnTheDisk) {
  const char* const kills = std::getenv("GODWIT_KILLS");
  const int cuts = 50 * (kills == nullptr ? 4 : std::atoi(kills));
  const TempFolder temp;
  std::map<std::string, Told> told;
  std::mt19937_64 random(1);
  int next = 0;
  int64_t tokens = 0, tails = 0;
  fs::path live = temp.path() / "0", disk;
  fs::create_directory(live);
  const fs::path folder = fs::path("of") / "some" / "answers";
  for (int cut = 0; cut < cuts && !testing::Test::HasFailure();) {
    SCOPED_TRACE(cut);
    if (disk.empty()) {
      disk = temp.path() / fmt::format("disk-{}", cut);
      power_cut::BeginDisk(live, disk);
    }
    power_cut::Record(live, disk, kDiskUs);
    const fs::path image = temp.path() / fmt::format("{}", cut + 1);
    const bool is_kill = random() % 4 == 0;  // the disk then goes on as it is
    std::map<std::string, Told> seen, now = told;
    {
      const Process process(live / folder, random(), now, next);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
      seen = process.told();
      if (!is_kill) power_cut::MakeImage(live, disk, image, random());
      power_cut::Record({}, {}, 0);
    }
    // Some may have left since.
    for (const auto& [name, later] : now) seen[name].is_leaving = later.is_leaving;
    told.swap(seen);
    if (is_kill) continue;
    Check(image / folder, told, tokens, tails);
    fs::remove_all(live);
    fs::remove_all(disk);
    disk.clear();
    live = image;
    ++cut;
  }
  EXPECT_GT(tokens, 0);
  EXPECT_GT(tails, 0) << "no journal was torn";
}

}  // namespace
}  // namespace godwit::journal::power_cut_test
