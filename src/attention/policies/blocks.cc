#include "attention/policies/blocks.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "attention/blocks/block_index.h"
#include "attention/blocks/choose_by_keys.h"
#include "attention/blocks/path_history.h"
#include "attention/blocks/select_blocks.h"
#include "attention/blocks/select_by_groups.h"
#include "attention/policies/blocks_spec.h"
#include "attention/text_cache.h"
#include "base/error.h"

namespace godwit {
namespace {

using kernels::kTileTokens;

// What a row sees is a function of its position, the keys before it, and its query or that of an
// earlier one whose choice it shares. The context, before the question, is read as if by dense.
class BlocksPolicy : public AttentionPolicy {
 public:
  BlocksPolicy(const AttentionGeometry& geometry, const BlocksSpec& spec, int64_t context)
      : geometry_(geometry),
        spec_(spec),
        context_(context),
        initial_((spec.initial + spec.block_size - 1) / spec.block_size) {
    int64_t choosing = 0;
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      if (Chooses(layer) && choosing++ % spec.layer_step == 0) leaders_.push_back(layer);
      leader_of_.push_back(leaders_.size() - 1);
    }
    choices_.resize(spec.token_step > 1 ? leaders_.size() : 1);
    queries_.resize(leaders_.size());
    preselected_.resize(leaders_.size());
  }

  std::string name() const override { return spec_.ToString(); }
  std::string Explain() const override { return spec_.Explain(); }
  int64_t limit_tokens() const override { return context_; }
  int64_t most_kept() const override { return context_; }
  ops::KvRange Forgotten(int64_t /*length*/) const override { return {0, 0}; }
  bool tells_question() const override { return true; }
  void AskFrom(int64_t position, int64_t answer) override {
    if (position != ask_from_ || answer != answer_) {
      for (auto& queries : queries_) queries.Keep(0, 0);
      for (auto& blocks : preselected_) blocks.Keep(0, 0);
    }
    ask_from_ = position;
    answer_ = answer;
  }
  int64_t bytes() const override {
    return (index_ ? index_->bytes() : 0) + (groups_ ? groups_->bytes() : 0);
  }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    const int64_t window = geometry_.windows[static_cast<size_t>(layer)];
    if (window != 0) return std::min(window, position + 1);
    if (!Chooses(layer) || position < first_sparse()) return position + 1;
    const int64_t local = FirstLocal(ChooserOf(position));
    const int64_t passed_over = local - initial_ - spec_.second_block_count;
    return position + 1 - passed_over * spec_.block_size;
  }

  IndexSize IndexAt(const KvLayout& layout, int64_t position) const override {
    if (position < first_sparse()) return {};
    const auto pool = std::make_shared<KvPool>(layout);
    const BlockIndex index(Shape(), pool, leaders_);
    const int64_t blocks = FirstLocal(position), layers = std::ssize(leaders_);
    IndexSize size{.held_bytes = index.BytesFor(blocks),
                   .read_bytes = index.ReadBytes(blocks) * layers,
                   .read_every_tokens = spec_.token_step};
    if (spec_.group_blocks == 0) return size;
    const BlockIndex groups(spec_.GroupShape(), pool, leaders_);
    const int64_t all = blocks / spec_.group_blocks;
    size.held_bytes += groups.BytesFor(all);
    if (!SelectsByGroups(blocks)) return size;
    if (groups.shape().type != RepresentativeType::kQuest) {
      size.read_bytes =
          index.ReadBytes(blocks - (all - OpenGroups()) * spec_.group_blocks) * layers;
    }
    size.read_bytes += groups.ReadBytes(all) * layers;
    return size;
  }

  int64_t alone_from(int64_t layer) const override {
    return Chooses(layer) ? first_choice() : INT64_MAX;
  }

  void Plan(const RowRun& run) override {
    const int64_t length = run.cache->length(), last = run.position + run.rows - 1;
    const int64_t back = std::max<int64_t>(0, length - TextCache::kTokensToGoBack);
    for (auto& choices : choices_) choices.Keep(ChooserOf(back), length);
    for (auto& queries : queries_) queries.Keep(0, length);
    for (auto& blocks : preselected_) blocks.Keep(0, length);
    if (last < first_choice()) return;
    if (!index_) index_.emplace(Shape(), run.cache->pool_in_memory(), leaders_);
    index_->Reserve(FirstLocal(last));
    if (spec_.group_blocks == 0) return;
    if (!groups_) groups_.emplace(spec_.GroupShape(), run.cache->pool_in_memory(), leaders_);
    groups_->Reserve(FirstLocal(last) / spec_.group_blocks);
  }

  void Accept(int64_t length, std::span<const int64_t> path) override {
    for (auto& choices : choices_) choices.Accept(length, path);
    for (auto& queries : queries_) queries.Accept(length, path);
    for (auto& blocks : preselected_) blocks.Accept(length, path);
  }

  void Truncate(int64_t length) override {
    for (auto& choices : choices_) choices.Keep(0, length);
    for (auto& queries : queries_) queries.Keep(0, length);
    for (auto& blocks : preselected_) blocks.Keep(0, length);
    if (!index_) return;
    // As if a question had begun there: one will, where an answer is taken back.
    index_->Truncate(length > first_sparse() ? FirstLocal(length - 1) : 0);
    if (groups_) groups_->Truncate(length > first_sparse() ? GroupsOf(FirstLocal(length - 1)) : 0);
  }

  int64_t GoesBackTo(int64_t length, int64_t answer) const override {
    if (spec_.preselect_block && answer != answer_) {
      length = std::min({length, answer_, std::max<int64_t>(0, answer - spec_.observation_window)});
    }
    if (length <= first_choice() || leaders_.empty()) return length;
    const int64_t chooses = ChooserOf(length);
    for (int64_t at = chooses; at < length; ++at) {
      if (choices_.front().Find(at, PathHistory<Choice>::kOfText) != nullptr) return length;
    }
    return chooses;
  }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    const int64_t window = geometry_.windows[static_cast<size_t>(layer)];
    if (spec_.preselect_block) Observe(run, layer, queries.q);
    Looks looks;
    if (!Chooses(layer) || run.position < first_choice()) {
      looks.Add({.visible = {.window = window == 0 ? INT64_MAX : window}});
      return looks;
    }
    Workspace& workspace = queries.exec.workspace;
    const int64_t kv_heads = geometry_.shape.kv_heads;
    const int64_t choices = this->choices();
    const Choice* const known = Remembered(run, layer);
    const int64_t local = known != nullptr ? known->local : FirstLocal(run.position);
    const auto parts = workspace.Matrix<ops::TilePart>(
        choices, PartsOf(spec_.second_block_count, local, run.position));
    const auto lists = workspace.Matrix<std::span<const ops::TilePart>>(1, kv_heads).RowSpan(0);
    Workspace::Scope scope(workspace);
    const auto chosen = workspace.Matrix<int32_t>(choices, spec_.second_block_count);
    if (known == nullptr) {
      looks.AddRead(Choose(run, layer, queries, chosen));
    }
    for (int64_t i = 0; i < choices; ++i) {
      const std::span<const int32_t> blocks =
          known != nullptr ? std::span(known->blocks[static_cast<size_t>(i)]) : chosen.RowSpan(i);
      const size_t count = ListParts(blocks, local, run.position, parts.RowSpan(i));
      for (int64_t head = i; head < kv_heads; head += choices) {
        lists[static_cast<size_t>(head)] = parts.RowSpan(i).first(count);
      }
    }
    looks.Add({.visible = {}, .parts = lists});
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
    constexpr int64_t kLearntTokens = 1024;
    BlockShape shape = spec_.Shape();
    const int64_t enough = (kLearntTokens + spec_.block_size - 1) / spec_.block_size;
    shape.learnt_blocks = std::min(enough, initial_ + spec_.second_block_count + 1);
    return shape;
  }

  // Who shares it sees what has left the window meanwhile, too: all blocks from `local` on.
  struct Choice {
    int64_t local;
    std::vector<std::vector<int32_t>> blocks;  // of each that chooses
  };
  bool Shares() const { return spec_.token_step > 1 || spec_.layer_step > 1; }
  // Tokens that choose alone hand their choice on to the next layers only.
  PathHistory<Choice>& ChoicesOf(int64_t layer) {
    return choices_[spec_.token_step == 1 ? 0 : leader_of_[static_cast<size_t>(layer)]];
  }

  // The token that chooses for the one at that position.
  int64_t ChooserOf(int64_t position) const {
    return std::max(first_choice(), position - position % spec_.token_step);
  }

  using Query = std::vector<float>;  // [heads, head_dim]

  // Blocks of [initial, local) that were chosen for all of an answer.
  struct Preselection {
    int64_t local;
    std::vector<std::vector<int32_t>> blocks;  // of each that chooses
  };

  // Remembers the queries of the end of the question.
  void Observe(const RowRun& run, int64_t layer, MatrixView<const float> q) {
    const size_t leader = leader_of_[static_cast<size_t>(layer)];
    if (!Chooses(layer) || leaders_[leader] != layer) return;
    const int64_t begin = std::max({run.position, ask_from_, answer_ - spec_.observation_window});
    const ops::AttentionShape& shape = geometry_.shape;
    for (int64_t p = begin; p < std::min(answer_, run.position + run.rows); ++p) {
      Query query;
      for (int64_t head = 0; head < shape.heads; ++head) {
        const auto row = q.RowSpan(ops::HeadMajorRow(shape, run.rows, p - run.position, head));
        query.insert(query.end(), row.begin(), row.end());
      }
      queries_[leader].Put(p, run.RowAt(p), std::make_shared<const Query>(std::move(query)));
    }
  }

  // Null: the row chooses among all blocks. Adds to read_bytes what it read.
  const Preselection* PreselectedFor(const RowRun& run, int64_t layer, const Exec& exec,
                                     int64_t& read_bytes) {
    if (!spec_.preselect_block || run.position < answer_) return nullptr;
    const size_t leader = leader_of_[static_cast<size_t>(layer)];
    const int64_t last = answer_ - 1, row = RowAt(run, last);
    if (const auto* found = preselected_[leader].Find(last, row)) return found;
    const int64_t local = FirstLocal(last);
    if (local - initial_ <= spec_.preselect_block_count) return nullptr;
    std::vector<PlacedQuery> queries;
    for (int64_t p = std::max({ask_from_, answer_ - spec_.observation_window, int64_t{0}});
         p < answer_; ++p) {
      if (const auto* q = queries_[leader].Find(p, RowAt(run, p))) queries.push_back({p, **q});
    }
    if (queries.empty()) return nullptr;  // somebody else read the question
    Workspace::Scope scope(exec.workspace);
    const auto chosen = exec.workspace.Matrix<int32_t>(choices(), spec_.preselect_block_count);
    run.cache->WillRead(layer, {0, local * spec_.block_size});
    ChooseForAll(exec, geometry_, run.cache->View(layer), spec_.block_size, queries, initial_,
                 local, chosen);
    read_bytes += std::ssize(queries) * KeyBytes(run, local);
    preselected_[leader].Put(last, row, {local, ToVectors(chosen)});
    return preselected_[leader].Find(last, row);
  }

  // Of so many blocks of all heads.
  int64_t KeyBytes(const RowRun& run, int64_t blocks) const {
    return blocks * (spec_.block_size / kTileTokens) * run.cache->layout().page_bytes() / 2;
  }

  static std::vector<std::vector<int32_t>> ToVectors(MatrixView<const int32_t> chosen) {
    std::vector<std::vector<int32_t>> lists;
    for (int64_t i = 0; i < chosen.rows; ++i) {
      lists.emplace_back(chosen.RowSpan(i).begin(), chosen.RowSpan(i).end());
    }
    return lists;
  }
  int64_t choices() const { return spec_.separate ? geometry_.shape.kv_heads : 1; }

  // Null: the row is to choose in this layer.
  const Choice* Remembered(const RowRun& run, int64_t layer) {
    const bool leads = leaders_[leader_of_[static_cast<size_t>(layer)]] == layer;
    const int64_t chooses = ChooserOf(run.position);
    if (!Shares() || (leads && chooses == run.position)) return nullptr;
    // Of a text that somebody else read, the first token that comes here has chosen.
    for (int64_t at = chooses; at < run.position + (leads ? 0 : 1); ++at) {
      if (const Choice* const found = ChoicesOf(layer).Find(at, RowAt(run, at))) return found;
    }
    return nullptr;
  }
  static int64_t RowAt(const RowRun& run, int64_t position) {
    return position < run.cache->length() ? PathHistory<Choice>::kOfText : run.RowAt(position);
  }

  // chosen [choices, second_block_count], -1 behind the last. Result: bytes read to choose.
  int64_t Choose(const RowRun& run, int64_t layer, const RunQueries& queries,
                 MatrixView<int32_t> chosen) {
    const int64_t local = FirstLocal(run.position);
    int64_t read_bytes = 0;
    const Preselection* const among = PreselectedFor(run, layer, queries.exec, read_bytes);
    if (among != nullptr) {
      read_bytes += ChooseAmong(*among, run, layer, queries, chosen);
    } else {
      FillIndex(queries.exec, layer, *run.cache, local);
      read_bytes += SelectIndexed(run, layer, queries, local, chosen);
      if (spec_.top_p < 1) read_bytes += CutDown(run, layer, queries, chosen);
    }
    if (Shares()) {
      ChoicesOf(layer).Put(run.position, run.RowAt(run.position), {local, ToVectors(chosen)});
    }
    return read_bytes;
  }

  // Of blocks [initial, local).
  int64_t SelectIndexed(const RowRun& run, int64_t layer, const RunQueries& queries, int64_t local,
                        MatrixView<int32_t> chosen) const {
    const BlockChoice choice{.first = initial_, .last = local, .count = spec_.second_block_count};
    if (SelectsByGroups(local)) {
      return SelectByGroups(queries.exec, geometry_, *index_, *groups_, OpenGroups(), layer,
                            queries.q, run.position, choice, chosen);
    }
    SelectBlocks(queries.exec, geometry_, *index_, layer, queries.q, run.position, choice, chosen);
    return index_->ReadBytes(local);
  }

  // Groups that are opened, with as many blocks as are chosen behind those that are seen anyway.
  int64_t OpenGroups() const {
    const int64_t blocks = initial_ + spec_.second_block_count;
    return std::max(spec_.group_count, (blocks - 1) / spec_.group_blocks + 1);
  }
  int64_t GroupsOf(int64_t blocks) const { return blocks / spec_.group_blocks; }
  bool SelectsByGroups(int64_t blocks) const {
    return spec_.group_blocks > 0 && GroupsOf(blocks) > OpenGroups();
  }

  int64_t ChooseAmong(const Preselection& among, const RowRun& run, int64_t layer,
                      const RunQueries& queries, MatrixView<int32_t> chosen) {
    const int64_t count = std::ssize(among.blocks.front()), local = FirstLocal(run.position);
    const auto named =
        queries.exec.workspace.Matrix<int32_t>(chosen.rows, count + local - among.local);
    for (int64_t i = 0; i < named.rows; ++i) {
      std::ranges::copy(among.blocks[static_cast<size_t>(i)], named.Row(i));
      std::iota(named.Row(i) + count, named.Row(i) + named.cols, static_cast<int32_t>(among.local));
    }
    return ChooseNamed(run, layer, queries, named, chosen);
  }

  int64_t CutDown(const RowRun& run, int64_t layer, const RunQueries& queries,
                  MatrixView<int32_t> chosen) {
    const auto named = queries.exec.workspace.Matrix<int32_t>(chosen.rows, chosen.cols);
    for (int64_t i = 0; i < named.rows; ++i) std::ranges::copy(chosen.RowSpan(i), named.Row(i));
    return ChooseNamed(run, layer, queries, named, chosen);
  }

  // Of blocks [choices, blocks], by their keys and by those of the beginning and the window.
  int64_t ChooseNamed(const RowRun& run, int64_t layer, const RunQueries& queries,
                      MatrixView<const int32_t> blocks, MatrixView<int32_t> chosen) {
    if (spec_.top_p == 1 && blocks.cols <= chosen.cols) {
      for (int64_t i = 0; i < chosen.rows; ++i) {
        std::ranges::fill(chosen.RowSpan(i), -1);
        std::ranges::copy(blocks.RowSpan(i), chosen.Row(i));
      }
      return 0;
    }
    // The block that is being filled is not weighed.
    const int64_t local = FirstLocal(run.position), full = (run.position + 1) / spec_.block_size;
    const int64_t seen = initial_ + std::max<int64_t>(0, full - local);
    const auto all = queries.exec.workspace.Matrix<int32_t>(blocks.rows, seen + blocks.cols);
    for (int64_t i = 0; i < all.rows; ++i) {
      std::iota(all.Row(i), all.Row(i) + initial_, 0);
      std::iota(all.Row(i) + initial_, all.Row(i) + seen, static_cast<int32_t>(local));
      std::ranges::copy(blocks.RowSpan(i), all.Row(i) + seen);
    }
    WillWeigh(run, layer, all);
    ChooseByKeys(queries.exec, geometry_, run.cache->View(layer), spec_.block_size, queries.q,
                 run.position, all,
                 {.seen = seen, .least = spec_.least_block_count, .top_p = spec_.top_p}, chosen);
    return KeyBytes(run, all.cols);
  }

  // Blocks [choices, blocks] whose keys are looked at.
  void WillWeigh(const RowRun& run, int64_t layer, MatrixView<const int32_t> blocks) const {
    if (run.cache->pool().file() == nullptr) return;
    const int64_t heads = geometry_.shape.kv_heads / blocks.rows;
    const int64_t tiles = spec_.block_size / kTileTokens;
    std::vector<ops::TilePart> parts;
    for (int64_t i = 0; i < blocks.rows; ++i) {
      parts.clear();
      for (const int32_t block : blocks.RowSpan(i)) {
        for (int64_t tile = block * tiles; tile < (block + 1) * tiles; ++tile) {
          parts.push_back({.tile = tile, .begin = 0, .end = static_cast<int32_t>(kTileTokens)});
        }
      }
      run.cache->WillRead(layer, parts, i * heads, (i + 1) * heads);
    }
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

  // Of a cache in a file, a piece at a time: no more of it need be in memory together.
  void FillIndex(const Exec& exec, int64_t layer, const KvCache& cache, int64_t blocks) {
    constexpr int64_t kPieceTokens = int64_t{1} << 16;
    const int64_t lasting = cache.length() / spec_.block_size;
    const int64_t piece = (kPieceTokens - 1) / spec_.block_size + 1;
    for (int64_t begin = index_->filled(layer); begin < blocks; begin += piece) {
      const int64_t end = std::min(blocks, begin + piece);
      cache.pool().BeginTurn();
      cache.WillRead(layer, {begin * spec_.block_size, end * spec_.block_size});
      index_->Fill(exec, layer, cache.View(layer), end, lasting);
    }
    if (!groups_) return;
    groups_->FillGroups(exec, layer, *index_, GroupsOf(blocks), GroupsOf(index_->filled(layer)));
  }

  // Tiles that a row looks at, with so many chosen blocks.
  int64_t PartsOf(int64_t chosen, int64_t local, int64_t position) const {
    const int64_t tiles = spec_.block_size / kTileTokens;
    return (initial_ + chosen - local) * tiles + position / kTileTokens + 1;
  }

  // Their number. chosen: -1 behind the last.
  size_t ListParts(std::span<const int32_t> chosen, int64_t local, int64_t position,
                   std::span<ops::TilePart> parts) const {
    const int64_t tiles = spec_.block_size / kTileTokens;
    auto next = parts.begin();
    const auto list = [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) {
        *next++ = {.tile = tile, .begin = 0, .end = static_cast<int32_t>(kTileTokens)};
      }
    };
    list(0, initial_ * tiles);
    for (const int64_t block : chosen) {
      if (block < 0) break;
      list(block * tiles, (block + 1) * tiles);
    }
    list(local * tiles, position / kTileTokens + 1);
    return static_cast<size_t>(next - parts.begin());
  }

  AttentionGeometry geometry_;
  BlocksSpec spec_;
  int64_t context_;
  int64_t initial_;  // blocks
  // Layers that choose for themselves, and for each layer the place of the one that does so for it.
  std::vector<int64_t> leaders_;
  std::vector<size_t> leader_of_;
  int64_t ask_from_ = 0, answer_ = INT64_MAX;
  std::optional<BlockIndex> index_, groups_;
  std::vector<PathHistory<Choice>> choices_;  // of each leader, or of the last one to choose
  // Of each leader: of the end of the question, and what it chose, at its last token.
  std::vector<PathHistory<std::shared_ptr<const Query>>> queries_;
  std::vector<PathHistory<Preselection>> preselected_;
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeBlocksPolicy(const AttentionGeometry& geometry,
                                                  const PolicyOptions& options,
                                                  std::string_view arguments) {
  const BlocksSpec spec = ParseBlocksSpec(arguments);
  const int64_t vectors = spec.group_blocks > 0 ? VectorsOf(spec.GroupShape().type)
                                                : VectorsOf(spec.representative_type);
  if (vectors * geometry.shape.head_dim > kernels::kMaxHeadDim) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} needs heads of at most {} dimensions, and this model's have {}",
          spec.ToString(), kernels::kMaxHeadDim / vectors, geometry.shape.head_dim);
  }
  return std::make_unique<BlocksPolicy>(geometry, spec, options.context);
}

}  // namespace godwit
