// The laws of recurrent layers (docs/decisions/0030-state-pages.md). Their states belong to a text:
// never to a chunk, a thread, a batch, a fork, a draft, or a step that did not happen.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "attention/core/restore_text.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "kernels/kernel_test_support.h"
#include "kv/snapshot_folder.h"
#include "tests/hybrid_model.h"

namespace godwit::state_laws_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<int32_t>;
using Rows = std::vector<float>;

constexpr int64_t kVocab = 128, kTile = kernels::kTileTokens;

Words NewWords(int64_t count, int seed) {
  Words words;
  for (int64_t i = 0; i < count; ++i) {
    words.push_back(static_cast<int32_t>((i * i * 7 + i * (seed + 3) + 13 * seed) % kVocab));
  }
  return words;
}

Words Part(const Words& words, int64_t begin, int64_t end) {
  return {words.begin() + begin, words.begin() + end};
}

std::string ReadBytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void Append(const Rows& rows, Rows& to) { to.insert(to.end(), rows.begin(), rows.end()); }

Rows RowsOf(const Rows& rows, int64_t begin, int64_t end) {
  return {rows.begin() + begin * kVocab, rows.begin() + end * kVocab};
}

const Decoder& Model() {
  static const std::unique_ptr<Decoder> model = HybridDecoder();
  return *model;
}

// Ways of attention, of which recurrent layers must not know.
struct Way {
  const char* name;
  std::string kv = "dense", prefill = {};
};

class StateLaws : public testing::TestWithParam<Way> {
 protected:
  static constexpr int64_t kQuestion = 150;

  PolicyOptions Options() const {
    return {.spec = GetParam().kv,
            .kv_type = DType::kF32,
            .context = 4096,
            .prefill = GetParam().prefill};
  }
  std::unique_ptr<TextCache> NewText(std::shared_ptr<KvPool> pool = nullptr) const {
    auto text = MakeTextCache(Geometry(Model().spec()), Options(), std::move(pool));
    text->SetQuestion(kQuestion, kQuestion + 20);
    return text;
  }
  static std::shared_ptr<KvPool> NewPool(int64_t budget_bytes = INT64_MAX) {
    return std::make_shared<KvPool>(LayoutOf(Geometry(Model().spec()), DType::kF32),
                                    std::make_shared<KvBudget>(budget_bytes));
  }

  // Runs a step and returns the logits of its rows.
  Rows Step(std::span<const Segment> segments, int threads = 1, const CancelToken* cancel = nullptr,
            const LinearObserver* observer = nullptr) {
    Workspace::Scope scope(workspace_);
    const Exec exec{.pool = threads == 1 ? alone_ : two_,
                    .kernels = *kernels::BestIsa().table,
                    .workspace = workspace_,
                    .cancel = cancel,
                    .observer = observer};
    int64_t rows = 0;
    for (const Segment& segment : segments) rows += std::ssize(segment.tokens);
    const auto hidden = workspace_.Matrix<float>(rows, Model().hidden_size());
    Model().Forward(exec, segments, hidden);
    Rows logits(rows * kVocab);
    Model().Logits(exec, hidden, {logits.data(), rows, kVocab, kVocab});
    return logits;
  }
  Rows Read(TextCache& text, const Words& words, int64_t chunk, int threads = 1) {
    Rows rows;
    for (size_t at = 0; at < words.size(); at += static_cast<size_t>(chunk)) {
      const auto some = std::span(words).subspan(at, std::min<size_t>(chunk, words.size() - at));
      const Segment segment{.tokens = some, .text = &text};
      Append(Step({&segment, 1}, threads), rows);
    }
    return rows;
  }

  ThreadPool alone_{1}, two_{2};
  Workspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(
    States, StateLaws,
    testing::Values(Way{"Dense"}, Way{"Sinks", "sinks:4+100"},
                    Way{"Blocks", "blocks:initial=64,local_windows_len=1,second_block_count=1"},
                    Way{"Star", "dense", "star:block=64,anchor=64"}),
    [](const auto& test) { return test.param.name; });

TEST_P(StateLaws, LayersWithoutAttentionHaveNoKeys) {
  const auto text = NewText();
  Read(*text, NewWords(100, 1), 50);
  EXPECT_EQ(text->geometry().layers, 3);
  EXPECT_EQ(text->cache().layout().layers, 3);
  EXPECT_EQ(text->states().Positions(), std::vector<int64_t>{64});
  EXPECT_EQ(text->Stats().bytes, text->cache().pool().budget().used());
}

TEST_P(StateLaws, ChunksAndThreadsChangeNoBits) {
  const Words words = NewWords(330, 2);
  const auto reference = NewText();
  const Rows expected = Read(*reference, words, 1);
  for (const int64_t chunk : {2, 7, 63, 64, 65, 96, 200, 330}) {
    const auto text = NewText();
    EXPECT_EQ(Read(*text, words, chunk, 2), expected) << chunk;
    ASSERT_EQ(text->states().Positions(), reference->states().Positions());
    for (const int64_t position : text->states().Positions()) {
      const auto state = text->states().StateAt(position, 1);
      EXPECT_TRUE(std::ranges::equal(state, reference->states().StateAt(position, 1)));
    }
  }
}

// A recurrent layer that forgot a token, or read one twice, would be seen for long.
TEST_P(StateLaws, EveryTokenIsRemembered) {
  const Words words = NewWords(300, 2);
  for (const size_t at : {0, 63, 64, 130}) {
    Words other = words;
    other[at] = (other[at] + 1) % kVocab;
    const auto text = NewText();
    Read(*text, other, 300);
    const auto same = NewText();
    Read(*same, words, 300);
    EXPECT_FALSE(std::ranges::equal(text->states().StateAt(256, 0), same->states().StateAt(256, 0)))
        << at;
  }
}

TEST_P(StateLaws, OtherTextsOfAStepChangeNoBits) {
  constexpr int64_t kTokens = 200;
  std::vector<Words> words;
  std::vector<Rows> expected;
  for (int i = 0; i < 8; ++i) {
    words.push_back(NewWords(kTokens, 20 + i));
    expected.push_back(Read(*NewText(), words.back(), 50));
  }
  for (const size_t batch : {size_t{3}, size_t{8}}) {
    const auto pool = NewPool();
    std::vector<std::unique_ptr<TextCache>> texts;
    std::vector<Rows> results(batch);
    for (size_t i = 0; i < batch; ++i) texts.push_back(NewText(pool));
    kernels::RandomFloats random(static_cast<uint32_t>(batch));
    while (true) {
      std::vector<Segment> step;
      std::vector<size_t> owners;
      for (size_t i = 0; i < batch; ++i) {
        const int64_t at = texts[i]->length(), prompt = i % 2 == 0 ? 160 : 10;
        const int64_t chunk = at < prompt ? std::min(prompt - at, random.Integer(1, 90)) : 1;
        if (at == kTokens || (random.Integer(0, 4) == 0 && !step.empty())) continue;
        step.push_back({.tokens = std::span(words[i]).subspan(at, chunk), .text = texts[i].get()});
        owners.push_back(i);
      }
      if (step.empty()) break;
      const Rows rows = Step(step, 2);
      int64_t row = 0;
      for (size_t i = 0; i < step.size(); ++i) {
        const int64_t end = row + std::ssize(step[i].tokens);
        Append(RowsOf(rows, row, end), results[owners[i]]);
        row = end;
      }
    }
    for (size_t i = 0; i < batch; ++i) EXPECT_EQ(results[i], expected[i]) << i << " of " << batch;
  }
}

TEST_P(StateLaws, ForksAtEveryOffsetAreTextsOfTheirOwn) {
  const Words words = NewWords(300, 3), other = NewWords(300, 4);
  const Rows expected = Read(*NewText(), words, 50);
  const auto text = NewText();
  Rows result;
  std::vector<std::unique_ptr<TextCache>> forks;
  for (int64_t length = 0; length < 140; ++length) {
    // Ways differ in attention alone, so the others fork near the borders of tiles.
    const bool tried = GetParam().kv == "dense" || (length + 4) % 64 < 8 || length % 9 == 0;
    forks.push_back(text->Fork());
    if (length % 2 == 0) Append(Read(*text, Part(words, length, length + 1), 1), result);
    if (tried) {
      const auto alone = NewText();
      Read(*alone, Part(words, 0, length), 64);
      ASSERT_EQ(Read(*forks.back(), Part(other, 0, 4), 2), Read(*alone, Part(other, 0, 4), 1))
          << "forked at " << length;
    }
    if (length % 2 == 1) Append(Read(*text, Part(words, length, length + 1), 1), result);
  }
  forks.erase(forks.begin() + 1, forks.end());
  Append(Read(*text, Part(words, 140, 300), 50), result);
  EXPECT_EQ(result, expected) << "the text of which forks were taken";
  const auto alone = NewText();
  Append(Read(*forks[0], Part(other, 4, 200), 50), result);
  EXPECT_EQ(RowsOf(result, 300, 496), RowsOf(Read(*alone, Part(other, 0, 200), 7), 4, 200));
}

// A text returns to where its policy and its states let it, and goes on as if it had never left.
TEST_P(StateLaws, TruncatedTokensLeaveNoTrace) {
  constexpr int64_t kTokens = 1500;
  const Words words = NewWords(kTokens + 40, 5), other = NewWords(kTokens + 40, 6);
  const Rows expected = Read(*NewText(), words, 64);
  const auto all = NewText();
  Read(*all, Part(words, 0, kTokens), 300);
  int64_t returned = 0;
  for (int64_t length = 0; length <= kTokens; length += length > kTokens - 140 ? 1 : 37) {
    const int64_t back = all->RestartPoint(length, kQuestion + 20);
    ASSERT_LE(back, length);
    if (length >= kTokens - kTile) {
      ASSERT_EQ(back, length) << "a tile can be taken back";
    }
    if (back < length) {
      EXPECT_FALSE(all->CanTruncate(length)) << length;
    }
    if (back == 0) continue;
    ++returned;
    const auto text = all->Fork();
    text->Truncate(back);
    Read(*text, Part(other, back, back + 30), 30);
    text->Truncate(text->RestartPoint(back, kQuestion + 20));
    if (text->length() != back) continue;
    ASSERT_EQ(Read(*text, Part(words, back, back + 40), 9), RowsOf(expected, back, back + 40))
        << "returned to " << back << " for " << length;
  }
  EXPECT_GE(returned, kTile);
}

// Parents of a tree, deep or wide.
std::vector<int32_t> RandomTree(kernels::RandomFloats& random) {
  std::vector<int32_t> parents(random.Integer(1, 14));
  const bool deep = random.Integer(0, 1) == 1;
  for (int32_t row = 0; row < std::ssize(parents); ++row) {
    parents[row] = static_cast<int32_t>(
        deep ? std::max(random.Integer(-1, row - 1), random.Integer(-1, row - 1))
             : random.Integer(-1, row - 1));
  }
  return parents;
}

TEST_P(StateLaws, EveryPathOfATreeHasTheBitsOfAChain) {
  kernels::RandomFloats random(12);
  const Words words = NewWords(300, 7), drafts = NewWords(14, 8);
  for (const int64_t length : {0, 50, 58, 62, 63, 64, 120, 127, 155}) {
    const auto text = NewText(), bystander = NewText();
    Read(*text, Part(words, 0, length), 64);
    const auto chain = text->Fork();
    for (int round = 0; round < 4; ++round) {
      const std::vector<int32_t> parents = RandomTree(random);
      const auto n = std::ssize(parents);
      const auto path_to = [&](int64_t row) {
        Words path;
        for (; row >= 0; row = parents[row]) path.insert(path.begin(), drafts[row]);
        return path;
      };
      const Words beside = Part(words, bystander->length(), bystander->length() + 3);
      const Segment step[] = {{.tokens = beside, .text = bystander.get()},
                              {.tokens = std::span(drafts).first(n),
                               .text = text.get(),
                               .phase = Phase::kDecode,
                               .parents = parents}};
      const Rows rows = RowsOf(Step(step, 2), 3, 3 + n);
      for (int64_t row = 0; row < n; ++row) {
        const Words path = path_to(row);
        const Rows decoded = Read(*chain->Fork(), path, 1);
        ASSERT_EQ(RowsOf(rows, row, row + 1),
                  RowsOf(decoded, std::ssize(path) - 1, std::ssize(path)))
            << "row " << row << " of " << n << " after " << chain->length();
      }
      const int64_t accepted = random.Integer(0, n - 1);
      text->Accept(accepted);
      Read(*chain, path_to(accepted), 1);
      ASSERT_EQ(text->length(), chain->length());
      EXPECT_EQ(text->Stats().bytes, chain->Stats().bytes);
    }
    ASSERT_EQ(Read(*text, Part(words, 200, 300), 40), Read(*chain, Part(words, 200, 300), 1));
  }
}

// Cancelled before each matrix product of a step in turn: of a chunk, of a token, of a tree.
TEST_P(StateLaws, AStepCancelledAtAnyPlaceDidNotHappen) {
  const Words words = NewWords(260, 9), lost = NewWords(150, 10);
  const Rows expected = Read(*NewText(), words, 64);
  const auto text = NewText();
  Rows result;
  const std::vector<int32_t> tree = {-1, 0, 1, 1, 0};
  int cancelled = 0;
  for (int64_t at = 0; at < 260; at += 20) {
    const Segment steps[] = {{.tokens = std::span(lost).first(100), .text = text.get()},
                             {.tokens = std::span(lost).first(1), .text = text.get()},
                             {.tokens = std::span(lost).first(5),
                              .text = text.get(),
                              .phase = Phase::kDecode,
                              .parents = tree}};
    for (const Segment& step : steps) {
      for (int place = 0; place <= 12; place += 3) {
        CancelToken token;
        const LinearObserver cancel = [&token, left = place](auto&&...) mutable {
          if (left-- == 0) token.Cancel();
        };
        try {
          const auto fork = text->Fork();
          const Segment of_fork{.tokens = step.tokens,
                                .text = place % 2 == 0 ? text.get() : fork.get(),
                                .phase = step.phase,
                                .parents = step.parents};
          Step({&of_fork, 1}, 2, &token, &cancel);
          FAIL() << "not cancelled at " << place;
        } catch (const Error& error) {
          ASSERT_EQ(error.kind(), ErrorKind::kCancelled);
          ++cancelled;
        }
        ASSERT_EQ(text->length(), at);
      }
    }
    Append(Read(*text, Part(words, at, at + 20), 20), result);
  }
  EXPECT_EQ(result, expected);
  EXPECT_EQ(cancelled, 13 * 3 * 5);
  EXPECT_EQ(text->Stats().bytes, text->cache().pool().budget().used());
}

TEST_P(StateLaws, ARefusedStepChangesNothing) {
  const Words words = NewWords(3000, 11);
  const Rows expected = Read(*NewText(), Part(words, 0, 200), 64);
  const KvLayout layout = LayoutOf(Geometry(Model().spec()), DType::kF32);
  const auto pool = NewPool(layout.BytesFor(1024) + layout.states.BytesFor(1024));
  const auto text = NewText(pool);
  Rows result = Read(*text, Part(words, 0, 100), 64);
  const KvStats before = text->Stats();
  EXPECT_EQ(ErrorOf([&] { Read(*text, words, 3000); }).kind(), ErrorKind::kMemory);
  EXPECT_EQ(ErrorOf([&] { text->Reserve(3000); }).kind(), ErrorKind::kMemory);
  EXPECT_EQ(text->length(), 100);
  EXPECT_EQ(text->Stats().bytes, before.bytes);
  EXPECT_EQ(text->Stats().bytes, pool->budget().used());
  Append(Read(*text, Part(words, 100, 200), 64), result);
  EXPECT_EQ(result, expected);
}

// Texts on a disk.
class SavedStates : public StateLaws {
 protected:
  const SnapshotFacts facts_ = {{"model", "hybrid"}};

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(folder_.path())) {
      if (file.path().extension() == ".kv") files.push_back(file.path());
    }
    return files;
  }
  int64_t Save(SnapshotFolder& folder, const Words& words, const TextCache& text) {
    return folder.Save(facts_, "hybrid", words, text.cache(), &text.states());
  }
  // A text that goes on from what is saved of these words.
  std::unique_ptr<TextCache> Restore(SnapshotFolder& folder, const Words& words) {
    auto text = NewText();
    RestoreText(folder, folder.Longest(facts_, words), kQuestion + 20, *text);
    return text;
  }

  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(States, SavedStates,
                         testing::Values(Way{"Dense"}, Way{"Sinks", "sinks:4+400"}),
                         [](const auto& test) { return test.param.name; });

TEST_P(SavedStates, ATextGoesOnFromTheLastStateBeforeTheCut) {
  const Words words = NewWords(1100, 12);
  const Rows expected = Read(*NewText(), words, 64);
  SnapshotFolder folder(folder_.path(), 1 << 30);
  const auto text = NewText();
  for (const int64_t length : {200, 640, 1000}) {
    Read(*text, Part(words, text->length(), length), 50);
    EXPECT_GT(Save(folder, Part(words, 0, length), *text), 0) << length;
  }
  std::set<int64_t> places;
  for (int64_t cut = 64; cut < 1100; cut += 61) {
    SnapshotFolder later(folder_.path(), 1 << 30);
    const auto resumed = Restore(later, Part(words, 0, cut));
    const int64_t at = resumed->length();
    ASSERT_LE(at, cut);
    places.insert(at);
    const int64_t end = std::min<int64_t>(1100, at + 90);
    ASSERT_EQ(Read(*resumed, Part(words, at, end), 33), RowsOf(expected, at, end)) << cut;
  }
  if (GetParam().kv == "dense") {
    EXPECT_TRUE(places.contains(192) && places.contains(640) && places.contains(960));
    EXPECT_GT(places.size(), 3u) << "states before the ends are saved, too";
  }
}

TEST_P(SavedStates, DamagedStatesAreNotUsed) {
  const Words words = NewWords(700, 13);
  const Rows expected = Read(*NewText(), words, 64);
  const auto text = NewText();
  {
    SnapshotFolder folder(folder_.path(), 1 << 30);
    Read(*text, Part(words, 0, 640), 64);
    EXPECT_EQ(Save(folder, Part(words, 0, 640), *text), 640);
  }
  ASSERT_EQ(Files().size(), 1u);
  const fs::path file = Files()[0];
  const auto size = static_cast<int64_t>(fs::file_size(file));
  const auto bytes = ReadBytes(file);
  const SnapshotHeader header = ParseSnapshotHeader(std::as_bytes(std::span(bytes)), "it");
  const int64_t last = std::ssize(header.info.states) - 1;
  for (const int64_t offset :
       {header.OffsetOfState(last), header.OffsetOfState(last) + header.info.state_bytes() - 1}) {
    std::string damaged = bytes;
    damaged[offset] ^= 4;
    WriteBytes(file, damaged);
    SnapshotFolder folder(folder_.path(), 1 << 30);
    EXPECT_EQ(folder.Verify().size(), 1u);
    const auto resumed = Restore(folder, words);
    EXPECT_EQ(resumed->length(), 0) << "it is read again";
    const auto problems = folder.TakeProblems();
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].message.find("the state of position 640 has another checksum"),
              std::string::npos)
        << problems[0].message;
    EXPECT_TRUE(Files().empty()) << "the damaged file is gone";
    EXPECT_EQ(Read(*resumed, words, 64), expected);
  }
  WriteBytes(file, bytes.substr(0, size - 64));
  SnapshotFolder folder(folder_.path(), 1 << 30);
  EXPECT_EQ(Restore(folder, words)->length(), 0) << "cut short";
  WriteBytes(file, bytes);
  SnapshotFolder sound(folder_.path(), 1 << 30);
  EXPECT_TRUE(sound.Verify().empty());
  EXPECT_EQ(Restore(sound, words)->length(), 640);
}

TEST(States, AreExplained) {
  AttentionGeometry geometry = Geometry(HybridSpec());
  EXPECT_EQ(
      ExplainStates(geometry),
      "5 layers of the model are recurrent: they remember the whole text in states of 4.7 KiB, "
      "whatever its length and whatever this policy says to the 3 layers with attention.");
  geometry.states = {};
  EXPECT_EQ(ExplainStates(geometry), "");
}

TEST(States, AModelWithoutAttentionIsRefused) {
  AttentionGeometry geometry = Geometry(HybridSpec());
  geometry.layers = 0;
  EXPECT_EQ(ErrorOf([&] { MakePolicy(geometry, {.context = 100}); }).kind(),
            ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace godwit::state_laws_test
