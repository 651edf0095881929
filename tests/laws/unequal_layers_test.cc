// A model whose layers differ in their keys: heads of two sizes, keys that are values, layers that
// read the keys of others. Its logits do not depend on chunks, threads, forks, files or snapshots.

#include <gtest/gtest.h>

#include <set>

#include "attention/core/restore_text.h"
#include "attention/make_policy.h"
#include "base/test_folder.h"
#include "kernels/dispatch.h"
#include "kv/snapshot_folder.h"
#include "model/archs/all.h"
#include "model/decoder.h"
#include "model/loader.h"
#include "model/synthetic_weights.h"
#include "weights/hf_config.h"

namespace godwit::unequal_layers_test {
namespace {

using Words = std::vector<int32_t>;
using Rows = std::vector<float>;

constexpr int64_t kVocab = 96;

// Layers: window, all, window, all, and two that read keys of the third and the fourth.
const Decoder& Model() {
  static const std::unique_ptr<Decoder> model = [] {
    ThreadPool pool(1);
    const DecoderSpec spec = DescribeModel(HfConfig::Parse(
        R"({"model_type": "gemma4_text", "hidden_size": 24, "intermediate_size": 20,
            "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 8, "global_head_dim": 12, "attention_k_eq_v": true,
            "num_global_key_value_heads": 1, "num_kv_shared_layers": 2, "sliding_window": 70,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                            "full_attention", "sliding_attention", "full_attention"],
            "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 100,
            "vocab_size": 96, "max_position_embeddings": 65536})",
        "the model of tests"));
    return LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {}, DType::kF32);
  }();
  return *model;
}

Words NewWords(int64_t count, int seed) {
  Words words;
  for (int64_t i = 0; i < count; ++i) {
    words.push_back(static_cast<int32_t>((i * i * 7 + i * (seed + 3) + 13 * seed) % kVocab));
  }
  return words;
}

// Layers without a window see three blocks of 64 tokens.
constexpr const char* kFewBlocks =
    "blocks:initial=1,local_windows_len=1,second_block_count=1,block_size=64";

struct Way {
  const char* name;
  std::string kv;
  DType kv_type;
};

class UnequalLayers : public testing::TestWithParam<Way> {
 protected:
  KvLayout Layout() const { return LayoutOf(Geometry(Model().spec()), GetParam().kv_type); }
  std::unique_ptr<TextCache> NewText(std::shared_ptr<KvPool> pool = nullptr) const {
    return MakeTextCache(Geometry(Model().spec()),
                         {.spec = GetParam().kv, .kv_type = GetParam().kv_type, .context = 4096},
                         std::move(pool));
  }
  // Reads the words from the text's length up to `end`.
  Rows Read(TextCache& text, const Words& words, int64_t end, int64_t chunk, int threads = 1) {
    Rows rows;
    while (text.length() < end) {
      Workspace::Scope scope(workspace_);
      const int64_t at = text.length(), count = std::min(chunk, end - at);
      const Exec exec{.pool = threads == 1 ? alone_ : two_,
                      .kernels = *kernels::BestIsa().table,
                      .workspace = workspace_};
      const Segment segment{
          .tokens = std::span(words).subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
          .text = &text};
      const auto hidden = workspace_.Matrix<float>(count, Model().hidden_size());
      Model().Forward(exec, {&segment, 1}, hidden);
      Rows logits(count * kVocab);
      Model().Logits(exec, hidden, {logits.data(), count, kVocab, kVocab});
      rows.insert(rows.end(), logits.begin(), logits.end());
    }
    return rows;
  }
  static Rows From(const Rows& rows, int64_t begin) {
    return {rows.begin() + begin * kVocab, rows.end()};
  }

  ThreadPool alone_{1}, two_{2};
  Workspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(Ways, UnequalLayers,
                         testing::Values(Way{"Dense", "dense", DType::kF32},
                                         Way{"Int8", "dense", DType::kI8},
                                         Way{"Int4", "dense", DType::kI4},
                                         Way{"Sinks", "sinks:4+128", DType::kBF16},
                                         Way{"Blocks", kFewBlocks, DType::kBF16}),
                         [](const auto& test) { return test.param.name; });

TEST_P(UnequalLayers, TakeNoMoreThanTheirKeys) {
  const KvLayout layout = Layout();
  EXPECT_EQ(layout.layers, 4) << "two read the keys of others";
  int64_t keys = 0;
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t layer = 0; layer < layout.layers; ++layer) {
    const KvLayout one = layout.OfLayer(layer);
    keys += one.tile_bytes();
    EXPECT_LE(layout.OffsetOf(layer) + one.tile_bytes(), layout.page_bytes());
    EXPECT_LT(layout.PageOf(layer), layout.pages());
    places.insert({layout.PageOf(layer), layout.OffsetOf(layer)});
  }
  EXPECT_EQ(std::ssize(places), 4);
  EXPECT_GE(layout.BytesFor(1), keys);
  EXPECT_LE(layout.BytesFor(1), 2 * keys);
  const auto text = NewText();
  Read(*text, NewWords(100, 1), 100, 50);
  EXPECT_EQ(text->Stats().bytes, layout.BytesFor(100));
  EXPECT_EQ(text->Stats().bytes, text->cache().pool().budget().used());
}

TEST_P(UnequalLayers, ChunksAndThreadsChangeNoBits) {
  const Words words = NewWords(200, 2);
  const Rows expected = Read(*NewText(), words, 200, 1);
  for (const int64_t chunk : {7, 63, 64, 65, 200}) {
    EXPECT_EQ(Read(*NewText(), words, 200, chunk, 2), expected) << chunk;
  }
}

// Layers that read the keys of others choose blocks, too. All blocks are what dense shows.
TEST_F(UnequalLayers, AllBlocksGiveTheDenseResult) {
  const Words words = NewWords(400, 6);
  const auto read = [&](const std::string& kv) {
    const auto text = MakeTextCache(Geometry(Model().spec()),
                                    {.spec = kv, .kv_type = DType::kF32, .context = 4096});
    return Read(*text, words, 400, 50);
  };
  const Rows dense = read("dense");
  EXPECT_EQ(read("blocks:second_block_count=1024"), dense);
  EXPECT_NE(read(kFewBlocks), dense) << "and fewer do not";
}

TEST_P(UnequalLayers, ForksAndFilesChangeNoBits) {
  const Words words = NewWords(300, 3), other = NewWords(300, 4);
  const Rows expected = Read(*NewText(), words, 300, 64);
  const TempFolder folder;
  const auto file = std::make_shared<KvFile>(
      folder.path(), 1 << 24, std::make_shared<KvBudget>(3 * Layout().BytesFor(1) + (1 << 16)));
  for (const auto& pool :
       {std::make_shared<KvPool>(Layout()), std::make_shared<KvPool>(Layout(), file)}) {
    const auto text = NewText(pool);
    Read(*text, words, 150, 50);
    const auto fork = text->Fork();
    Read(*fork, other, 210, 50);
    EXPECT_EQ(Read(*text, words, 300, 50), From(expected, 150));
  }
}

TEST_P(UnequalLayers, ATextGoesOnFromASnapshot) {
  const Words words = NewWords(320, 5);
  const Rows expected = Read(*NewText(), words, 320, 64);
  const SnapshotFacts facts = {{"model", "unequal"}};
  const TempFolder folder;
  {
    SnapshotFolder saved(folder.path(), 1 << 30);
    const auto text = NewText();
    Read(*text, words, 256, 64);
    const Words begun(words.begin(), words.begin() + 256);
    EXPECT_GT(saved.Save(facts, "unequal", begun, text->cache(), &text->states()), 0);
    EXPECT_TRUE(saved.Verify().empty());
  }
  SnapshotFolder saved(folder.path(), 1 << 30);
  const auto text = NewText();
  RestoreText(saved, saved.Longest(facts, words), INT64_MAX, *text);
  EXPECT_EQ(text->length(), 256);
  const auto fork = text->Fork();
  EXPECT_EQ(Read(*text, words, 320, 33), From(expected, 256));
  EXPECT_EQ(Read(*fork, words, 320, 1), From(expected, 256));
}

}  // namespace
}  // namespace godwit::unequal_layers_test
