#include "attention/policies/blocks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/blocks/block_index.h"
#include "attention/blocks/blocks_by_index.h"
#include "attention/blocks/blocks_by_keys.h"
#include "attention/blocks/blocks_estimate.h"
#include "attention/blocks/blocks_geometry.h"
#include "attention/blocks/blocks_importance.h"
#include "attention/blocks/blocks_preselection.h"
#include "attention/blocks/blocks_presets.h"
#include "attention/blocks/blocks_sharing.h"
#include "attention/blocks/blocks_spec.h"
#include "attention/core/text_cache.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "ops/attention_state.h"

namespace godwit {
namespace {

// PolicyFacts::one_rank_reason. A rank chooses by the representatives of its own blocks and knows
// no other rank's.
std::string OneRankReason(const BlocksSpec& spec) {
  if (spec.preselect_block) {
    return "with preselect_block the question would choose among all keys of the context, and a "
           "rank has a part of them; leave it out";
  }
  if (spec.top_p < 1) {
    return "top_p is a share of attention to all keys, and a rank has a part of them; leave it out";
  }
  if (spec.representative_type == ops::RepresentativeType::kDynamic) {
    return "with representative_type=DYNAMIC the observers of a token may be on another rank; "
           "leave it out";
  }
  return "";
}

// A row's keys depend on its position, the keys before it, and its query or an earlier query whose
// choice it shares. A layer that reads another's keys chooses by queries of its own among the same
// representatives. The context before the question is read as with dense.
class BlocksPolicy : public AttentionPolicy, private DerivedIndex {
 public:
  BlocksPolicy(const AttentionGeometry& geometry, const BlocksSpec& spec, int64_t context)
      : AttentionPolicy(
            {.name = spec.ToString(),
             .reading = "dense",
             .explanation = spec.Explain() + " " + ExplainBlocksSources(spec),
             .limit_tokens = context,
             .max_kept_tokens = context,
             .chosen_tokens = std::max(spec.block_size, kTileTokens),
             .seen_sinks = spec.initial,
             .seen_window = spec.local_windows_len,
             .one_choice = !spec.separate,
             .separates_question = true,
             .keys_suffice = spec.representative_type != ops::RepresentativeType::kDynamic,
             .one_rank_reason = OneRankReason(spec)}),
        geometry_(std::make_shared<const BlocksGeometry>(geometry, spec)),
        first_asking_(spec.dense_question ? INT64_MAX - 1 : 0),
        importance_(geometry_),
        index_(geometry_),
        estimate_(geometry_),
        shared_(geometry_),
        preselection_(geometry_) {}

  ops::KvRange Forgotten(int64_t /*length*/) const override { return {0, 0}; }
  void SetQuestion(const Question& question) override {
    const int64_t size = spec().block_size, end = question.choosable.end;
    here_ = {question.choosable.begin / size, end == INT64_MAX ? end : end / size};
    preselection_.SetQuestion(question.begin, question.answer);
    first_asking_ =
        spec().dense_question ? std::min(question.answer, INT64_MAX - 1) : question.begin;
    index_.LimitToBlocks(here_, geometry_->FirstLocal(first_choice()));
    estimate_.LimitToBlocks(here_);
  }
  const DerivedIndex* index() const override { return this; }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    if (!geometry_->Chooses(layer) || position < geometry_->first_sparse()) {
      return position + 1 - geometry_->attention.SeenIn(layer).At(position).begin;
    }
    // Before a question is set, too, the token is one of an answer, and chooses.
    const int64_t from = std::min(first_choice(), position);
    const int64_t local = geometry_->FirstLocal(shared_.ChooserOf(position, from));
    const int64_t passed_over =
        local - geometry_->initial - spec().second_block_count + Replaced(local, position);
    return position + 1 - passed_over * spec().block_size;
  }
  int64_t ContextKeys(int64_t layer, int64_t position) const override {
    return position + 1 - geometry_->attention.SeenIn(layer).At(position).begin;
  }
  int64_t row_by_row_from(int64_t layer) const override {
    return geometry_->Chooses(layer) ? first_choice() : INT64_MAX;
  }

  void Plan(const RowRun& run) override {
    const int64_t length = run.cache->length();
    const int64_t back = std::max<int64_t>(0, length - TextCache::kMaxRollbackTokens);
    shared_.Keep(ChooserOf(back), length);
    preselection_.Keep(0, length);
    importance_.Keep(back, length);
    if (run.position + run.rows <= first_choice()) return;
    index_.Reserve(run);
    estimate_.Reserve(run);
  }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    preselection_.Observe(run, layer, queries);
    importance_.Observe(run, layer, queries);
    Looks looks;
    if (!geometry_->Chooses(layer) || run.position < first_choice()) {
      looks.Add({.visible = geometry_->attention.SeenIn(layer)});
      return looks;
    }
    Workspace& workspace = queries.exec.workspace;
    const ops::AttentionShape& shape = geometry_->attention.shape;
    const int64_t kv_heads = shape.kv_heads;
    const int64_t choices = geometry_->choices(), count = spec().second_block_count;
    const ChosenBlocks* const known =
        shared_.Find(run, layer, queries.reader, ChooserOf(run.position));
    const int64_t local = known != nullptr ? known->local : geometry_->FirstLocal(run.position);
    const auto parts =
        workspace.Matrix<ops::TilePart>(choices, geometry_->PartsOf(count, local, run.position));
    const auto lists = workspace.Matrix<std::span<const ops::TilePart>>(1, kv_heads).RowSpan(0);
    const auto states = workspace.Matrix<float>(spec().estimate ? shape.heads : 0,
                                                ops::StateStride(shape.value_dim()));
    Workspace::Scope scope(workspace);
    const auto chosen = workspace.Matrix<int32_t>(choices, count);
    const auto blocks = workspace.Matrix<std::span<const int32_t>>(1, choices).RowSpan(0);
    if (known == nullptr) looks.AddRead(Choose(run, layer, queries, chosen));
    for (int64_t i = 0; i < choices; ++i) {
      const auto at = static_cast<size_t>(i);
      blocks[at] = known != nullptr ? std::span(known->lists[at]) : chosen.RowSpan(i);
      if (spec().gradual) blocks[at] = Left(blocks[at], local, run.position, chosen.RowSpan(i));
      const size_t listed =
          geometry_->ListParts(here_, blocks[at], local, run.position, parts.RowSpan(i));
      for (int64_t head = i; head < kv_heads; head += choices) {
        lists[head] = parts.RowSpan(i).first(listed);
      }
    }
    looks.Add({.visible = {}, .parts = lists});
    if (!spec().estimate) return looks;
    looks.AddRead(estimate_.Estimate(run, layer, queries, blocks, local, states));
    looks.SetBefore(states.data);
    return looks;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::unique_ptr<AttentionPolicy>(new BlocksPolicy(*this));
  }

 private:
  BlocksPolicy(const BlocksPolicy&) = default;

  // DerivedIndex:
  void Accept(int64_t length, std::span<const int64_t> path) override {
    shared_.Accept(length, path);
    preselection_.Accept(length, path);
    importance_.Accept(length, path);
    // The same range as in the plan of a chain's last token.
    const int64_t last = length + std::ssize(path) - 1;
    importance_.Keep(std::max<int64_t>(0, last - TextCache::kMaxRollbackTokens), last + 1);
  }

  void Truncate(int64_t length) override {
    shared_.Keep(0, length);
    preselection_.Keep(0, length);
    importance_.Keep(0, length);
    index_.Truncate(length);
    estimate_.Truncate(length);
  }

  // Gradual replacement lasts longer than a chain of draft tokens.
  void ContinueAs(int64_t length, int64_t end) override {
    if (!spec().gradual) return Truncate(length);
    SharedChoices choices = std::move(shared_);
    shared_ = SharedChoices(geometry_);
    Truncate(length);
    choices.Keep(0, end);
    shared_ = std::move(choices);
  }

  int64_t RestartPoint(int64_t length, int64_t answer) const override {
    for (int64_t before = -1; before != length;) {
      before = length;
      length = importance_.RestartPoint(preselection_.RestartPoint(length, answer));
      if (length <= first_choice() || geometry_->leaders.empty()) continue;
      const int64_t chooser = ChooserOf(length);
      if (!shared_.Remembers(chooser, length)) length = chooser;
    }
    return length;
  }

  TextIndex Save() const override { return index_.Save(); }
  void Restore(const KvCache& cache, const TextIndex& saved) override {
    index_.Restore(cache, saved);
  }

  int64_t bytes() const override {
    return index_.bytes() + estimate_.bytes() + importance_.bytes();
  }
  IndexSize SizeAt(const KvLayout& layout, int64_t position) const override {
    IndexSize size = index_.SizeAt(layout, position);
    const IndexSize estimate = estimate_.SizeAt(layout, position);
    size.held_bytes += estimate.held_bytes + importance_.BytesAt(position);
    size.read_bytes += estimate.read_bytes * size.read_every_tokens;
    return size;
  }

  const BlocksSpec& spec() const { return geometry_->spec; }
  // The first row that chooses.
  int64_t first_choice() const { return std::max(first_asking_, geometry_->first_sparse()); }
  int64_t ChooserOf(int64_t position) const { return shared_.ChooserOf(position, first_choice()); }

  // chosen: [choices, second_block_count], -1 behind the last. Returns the bytes read to choose.
  int64_t Choose(const RowRun& run, int64_t layer, const RunQueries& queries,
                 MatrixView<int32_t> chosen) {
    int64_t read_bytes = 0;
    const auto among = preselection_.BlocksFor(run, layer, queries, read_bytes);
    if (among.rows > 0) {
      read_bytes += ChooseNamedByKeys(*geometry_, run, layer, queries, among, chosen);
    } else {
      read_bytes += index_.Choose(run, layer, queries, importance_, chosen);
      if (spec().top_p < 1) read_bytes += CutDown(run, layer, queries, chosen);
    }
    shared_.Put(run, layer, queries.reader, geometry_->FirstLocal(run.position), chosen);
    return read_bytes;
  }

  // How many of the blocks chosen for a window that began at block `local` the token at `position`
  // does not see any more.
  int64_t Replaced(int64_t local, int64_t position) const {
    if (!spec().gradual) return 0;
    return std::min(spec().second_block_count, geometry_->FirstLocal(position) - local);
  }

  // The blocks that are left of a choice in order of importance: in ascending order, in `left`.
  std::span<const int32_t> Left(std::span<const int32_t> ranked, int64_t local, int64_t position,
                                std::span<int32_t> left) const {
    const auto end = std::ranges::find(ranked, -1);
    const int64_t count = std::max<int64_t>(0, end - ranked.begin() - Replaced(local, position));
    const auto kept = left.first(static_cast<size_t>(count));
    if (ranked.data() != left.data()) std::ranges::copy(ranked.first(kept.size()), left.begin());
    std::ranges::sort(kept);
    return kept;
  }

  int64_t CutDown(const RowRun& run, int64_t layer, const RunQueries& queries,
                  MatrixView<int32_t> chosen) {
    const auto named = queries.exec.workspace.Matrix<int32_t>(chosen.rows, chosen.cols);
    for (int64_t i = 0; i < named.rows; ++i) std::ranges::copy(chosen.RowSpan(i), named.Row(i));
    return ChooseNamedByKeys(*geometry_, run, layer, queries, named, chosen);
  }

  std::shared_ptr<const BlocksGeometry> geometry_;
  int64_t first_asking_;  // the first token that may choose: of the question or the answer
  BlockRange here_;
  BlocksImportance importance_;
  BlocksByIndex index_;
  BlocksEstimate estimate_;
  SharedChoices shared_;
  BlocksPreselection preselection_;
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeBlocksPolicy(const AttentionGeometry& geometry,
                                                  const PolicyOptions& options,
                                                  std::string_view arguments) {
  const BlocksSpec spec = ParseBlocksSpec(arguments);
  if (geometry.shape.score_cap != 0) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} compares blocks by uncapped scores, but this model caps scores at {}: "
          "use dense or sinks",
          spec.ToString(), geometry.shape.score_cap);
  }
  const BlocksGeometry blocks(geometry, spec);
  const ops::AttentionShape& shape = blocks.attention.shape;
  const auto differs = [&](int64_t layer) {
    return geometry.ShapeOf(layer).kv_heads != shape.kv_heads ||
           geometry.ShapeOf(layer).head_dim != shape.head_dim;
  };
  if (std::ranges::any_of(blocks.choosing, differs)) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} chooses blocks for layers of equal heads, but this model's layers "
          "without a window have different ones: use dense or sinks",
          spec.ToString());
  }
  const int64_t vectors = spec.group_blocks > 0 ? ops::VectorsOf(spec.GroupShape().type)
                                                : ops::VectorsOf(spec.representative_type);
  if (vectors * shape.head_dim > kMaxHeadDim) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} needs heads of at most {} dimensions, and this model's heads have {}",
          spec.ToString(), kMaxHeadDim / vectors, shape.head_dim);
  }
  // An index lies in pages of the cache's size.
  const KvLayout layout = LayoutOf(geometry, options.kv_type)
                              .OfLayer(blocks.choosing.empty() ? 0 : blocks.choosing.front());
  if (vectors > 1 && ops::VectorTileBytes(vectors * shape.head_dim) > layout.head_bytes()) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} keeps {} vectors for a block or a group of blocks, which do not fit "
          "into pages of this model's keys{} in {}: use a wider KV type",
          spec.ToString(), vectors, layout.values_in_keys ? "" : " and values",
          KvTypeName(options.kv_type));
  }
  return std::make_unique<BlocksPolicy>(geometry, spec, options.context);
}

}  // namespace godwit
