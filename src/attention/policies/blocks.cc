#include "attention/policies/blocks.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "attention/blocks/block_index.h"
#include "attention/blocks/select_blocks.h"
#include "attention/policies/blocks_spec.h"
#include "base/error.h"

namespace godwit {
namespace {

using kernels::kTileTokens;

// What a row sees is a function of its position, its query and the keys before it. The context,
// before the question, is read as if by dense.
class BlocksPolicy : public AttentionPolicy {
 public:
  BlocksPolicy(const AttentionGeometry& geometry, const BlocksSpec& spec, int64_t context)
      : geometry_(geometry),
        spec_(spec),
        context_(context),
        initial_((spec.initial + spec.block_size - 1) / spec.block_size) {}

  std::string name() const override { return spec_.ToString(); }
  std::string Explain() const override { return spec_.Explain(); }
  int64_t limit_tokens() const override { return context_; }
  int64_t most_kept() const override { return context_; }
  ops::KvRange Forgotten(int64_t /*length*/) const override { return {0, 0}; }
  bool tells_question() const override { return true; }
  void AskFrom(int64_t position) override { ask_from_ = position; }
  int64_t bytes() const override { return index_ ? index_->bytes() : 0; }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    const int64_t window = geometry_.windows[static_cast<size_t>(layer)];
    if (window != 0) return std::min(window, position + 1);
    if (!Chooses(layer) || position < first_sparse()) return position + 1;
    const int64_t passed_over = FirstLocal(position) - initial_ - spec_.second_block_count;
    return position + 1 - passed_over * spec_.block_size;
  }

  IndexSize IndexAt(const KvLayout& layout, int64_t position) const override {
    if (position < first_sparse()) return {};
    const std::vector<int64_t> layers = ChoosingLayers();
    const BlockIndex index(Shape(), std::make_shared<KvPool>(layout), layers);
    const int64_t blocks = FirstLocal(position);
    return {.held_bytes = index.BytesFor(blocks),
            .read_bytes = index.ReadBytes(blocks) * std::ssize(layers)};
  }

  int64_t alone_from(int64_t layer) const override {
    return Chooses(layer) ? first_choice() : INT64_MAX;
  }

  void Plan(const RowRun& run) override {
    const int64_t last = run.position + run.rows - 1;
    if (last < first_choice()) return;
    if (!index_) index_.emplace(Shape(), run.cache->shared_pool(), ChoosingLayers());
    index_->Reserve(FirstLocal(last));
  }

  void Truncate(int64_t length) override {
    if (!index_) return;
    // As if a question had begun there: one will, where an answer is taken back.
    index_->Truncate(length > first_sparse() ? FirstLocal(length - 1) : 0);
  }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    const int64_t window = geometry_.windows[static_cast<size_t>(layer)];
    Looks looks;
    if (!Chooses(layer) || run.position < first_choice()) {
      looks.Add({.visible = {.window = window == 0 ? INT64_MAX : window}});
      return looks;
    }
    const int64_t local = FirstLocal(run.position);
    index_->Fill(queries.exec, layer, run.cache->View(layer), local,
                 run.cache->length() / spec_.block_size);
    Workspace& workspace = queries.exec.workspace;
    const int64_t kv_heads = geometry_.shape.kv_heads;
    const int64_t choices = spec_.separate ? kv_heads : 1;
    const auto parts = workspace.Matrix<ops::TilePart>(
        choices, PartsOf(spec_.second_block_count, local, run.position));
    const auto lists = workspace.Matrix<std::span<const ops::TilePart>>(1, kv_heads).RowSpan(0);
    Workspace::Scope scope(workspace);
    const auto chosen = workspace.Matrix<int32_t>(choices, spec_.second_block_count);
    SelectBlocks(queries.exec, geometry_, *index_, layer, queries.q, run.position,
                 {.first = initial_, .last = local, .count = spec_.second_block_count}, chosen);
    for (int64_t i = 0; i < choices; ++i) {
      ListParts(chosen.RowSpan(i), local, run.position, parts.RowSpan(i));
    }
    for (int64_t head = 0; head < kv_heads; ++head) {
      lists[static_cast<size_t>(head)] = parts.RowSpan(spec_.separate ? head : 0);
    }
    looks.Add({.visible = {}, .parts = lists});
    looks.AddRead(index_->ReadBytes(local));
    return looks;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::unique_ptr<AttentionPolicy>(new BlocksPolicy(*this));
  }

 private:
  BlocksPolicy(const BlocksPolicy&) = default;

  // A layer with a window of the model's own is short anyway.
  bool Chooses(int64_t layer) const {
    return layer >= spec_.dense_layer_num && geometry_.windows[static_cast<size_t>(layer)] == 0;
  }

  // Whoever chooses has so many blocks before its window.
  BlockShape Shape() const {
    constexpr int64_t kCentreTokens = 1024;
    BlockShape shape = spec_.Shape();
    const int64_t enough = (kCentreTokens + spec_.block_size - 1) / spec_.block_size;
    shape.centre_blocks = std::min(enough, initial_ + spec_.second_block_count + 1);
    return shape;
  }

  std::vector<int64_t> ChoosingLayers() const {
    std::vector<int64_t> layers;
    for (int64_t layer = 0; layer < geometry_.layers; ++layer) {
      if (Chooses(layer)) layers.push_back(layer);
    }
    return layers;
  }

  // The first block of the window of a row.
  int64_t FirstLocal(int64_t position) const {
    return std::max<int64_t>(0, position + 1 - spec_.local_windows_len) / spec_.block_size;
  }

  // The first position that has more blocks before its window than it may choose, and the first row
  // that chooses.
  int64_t first_sparse() const {
    const int64_t blocks = initial_ + spec_.second_block_count + 1;
    return blocks * spec_.block_size + spec_.local_windows_len - 1;
  }
  int64_t first_choice() const { return std::max(ask_from_, first_sparse()); }

  // Tiles that a row looks at, with so many chosen blocks.
  int64_t PartsOf(int64_t chosen, int64_t local, int64_t position) const {
    const int64_t tiles = spec_.block_size / kTileTokens;
    return (initial_ + chosen - local) * tiles + position / kTileTokens + 1;
  }

  void ListParts(std::span<const int32_t> chosen, int64_t local, int64_t position,
                 std::span<ops::TilePart> parts) const {
    const int64_t tiles = spec_.block_size / kTileTokens;
    auto next = parts.begin();
    const auto list = [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) {
        *next++ = {.tile = tile, .begin = 0, .end = static_cast<int32_t>(kTileTokens)};
      }
    };
    list(0, initial_ * tiles);
    for (const int64_t block : chosen) list(block * tiles, (block + 1) * tiles);
    list(local * tiles, position / kTileTokens + 1);
  }

  AttentionGeometry geometry_;
  BlocksSpec spec_;
  int64_t context_;
  int64_t initial_;  // blocks
  int64_t ask_from_ = 0;
  std::optional<BlockIndex> index_;
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeBlocksPolicy(const AttentionGeometry& geometry,
                                                  const PolicyOptions& options,
                                                  std::string_view arguments) {
  const BlocksSpec spec = ParseBlocksSpec(arguments);
  const int64_t vectors = VectorsOf(spec.representative_type);
  if (vectors * geometry.shape.head_dim > kernels::kMaxHeadDim) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} needs heads of at most {} dimensions, and this model's have {}",
          spec.ToString(), kernels::kMaxHeadDim / vectors, geometry.shape.head_dim);
  }
  return std::make_unique<BlocksPolicy>(geometry, spec, options.context);
}

}  // namespace godwit
