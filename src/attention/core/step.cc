#include "attention/core/step.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <memory>
#include <utility>

#include "attention/ranks/merge_ranks.h"
#include "attention/ranks/ring.h"
#include "base/error.h"
#include "ops/attention_state.h"
#include "ops/hadamard_heads.h"
#include "ops/store_keys.h"

namespace godwit {
namespace {

// The rows of a run, behind their ancestors in the step.
std::vector<int64_t> PathOf(const RowRun& run) {
  std::vector<int64_t> path(run.ancestors.begin(), run.ancestors.end());
  for (int64_t row = 0; row < run.rows; ++row) path.push_back(run.first_row + row);
  return path;
}

bool EndsRun(const Segment& segment, size_t row) {
  return row + 1 == segment.tokens.size() ||
         (!segment.parents.empty() && segment.parents[row + 1] != static_cast<int32_t>(row));
}

// The number of positions in [begin, end) that a look lists, summed over KV heads.
int64_t Listed(const Look& look, int64_t kv_heads, int64_t begin, int64_t end) {
  if (look.parts.empty()) return std::max<int64_t>(0, end - begin) * kv_heads;
  int64_t positions = 0;
  for (const auto& parts : look.parts) {
    for (const ops::TilePart& part : parts) {
      const int64_t tile = part.tile * kTileTokens;
      positions +=
          std::max<int64_t>(0, std::min(end, tile + part.end) - std::max(begin, tile + part.begin));
      positions -= std::popcount(part.hidden);
    }
  }
  return positions;
}

// The keys that the rows of a run look at, and the bytes read to choose them.
KvReads ReadsOf(const RowRun& rows, int64_t layer, const Looks& looks) {
  const KvLayout layout = rows.cache->layout().OfLayer(layer);
  KvReads reads{.bytes = looks.read_bytes()};
  for (const Look& look : looks.span()) {
    const int64_t first = std::max(rows.position, look.visible.from);
    const int64_t last = std::min(rows.position + rows.rows, look.visible.until) - 1;
    if (first > last) continue;
    const int64_t positions =
        Listed(look, layout.kv_heads, look.visible.At(first).begin, look.visible.At(last).end);
    reads.bytes += positions * (layout.head_bytes() / kTileTokens);
    for (int64_t row = first; row <= last; ++row) {
      const auto [begin, end] = look.visible.At(row);
      reads.met_keys += Listed(look, layout.kv_heads, begin, end);
    }
  }
  return reads;
}

// The positions that the rows look at, before the parts of a look narrow them.
ops::KvRange SeenBy(const RowRun& rows, const Look& look) {
  const int64_t first = std::max(rows.position, look.visible.from);
  const int64_t last = std::min(rows.position + rows.rows, look.visible.until) - 1;
  if (first > last) return {0, 0};
  return {look.visible.At(first).begin, look.visible.At(last).end};
}

void AnnounceReading(const RowRun& rows, int64_t layer, const Looks& looks) {
  for (const Look& look : looks.span()) {
    const ops::KvRange seen = SeenBy(rows, look);
    if (seen.begin >= seen.end) continue;
    if (look.parts.empty()) rows.cache->WillRead(layer, seen);
    const auto count = std::ssize(look.parts);
    const auto list = [&](int64_t head) { return look.parts[head].data(); };
    for (int64_t head = 0, next = 0; head < count; head = next) {  // neighbours may share a list
      while (next < count && list(next) == list(head)) ++next;
      rows.cache->WillRead(layer, look.parts[head], head, next);
    }
  }
}

}  // namespace

AttentionStep::AttentionStep(const Exec& exec, std::span<const Segment> segments)
    : exec_(exec), geometry_(segments.front().text->geometry()) {
  int64_t runs = 0;
  for (const Segment& segment : segments) {
    assert(!segment.tokens.empty());
    assert(segment.parents.empty() || segment.parents.size() == segment.tokens.size());
    for (size_t row = 0; row < segment.tokens.size(); ++row) runs += EndsRun(segment, row) ? 1 : 0;
  }
  runs_ = exec_.workspace.Matrix<Run>(1, runs).RowSpan(0);
  try {
    for (const Segment& segment : segments) {
      Plan(segment, rows_);
      rows_ += std::ssize(segment.tokens);
    }
    ReserveChoice();
  } catch (...) {
    ReleaseReserved();
    throw;
  }
}

void AttentionStep::ReserveChoice() {
  if (!geometry_.key_index) return;
  int64_t end = 0;
  for (const Run& run : runs_.first(run_count_)) {
    end = std::max(end, run.rows.position + run.rows.rows);
  }
  chosen_ = exec_.workspace.Matrix<std::span<const ops::TilePart>>(1, rows_).RowSpan(0);
  std::uninitialized_fill(chosen_.begin(), chosen_.end(), std::span<const ops::TilePart>());
  if (end <= geometry_.ChoosesFrom()) return;
  chosen_parts_ =
      exec_.workspace.Matrix<ops::TilePart>(rows_, ops::MostChosenTiles(*geometry_.key_index, end));
}

AttentionStep::~AttentionStep() {
  if (!ended_) ReleaseReserved();
}

void AttentionStep::ReleaseReserved() noexcept {
  for (const Run& run : runs_.first(run_count_)) {
    run.text->ReleaseReserved();
    run.text->TruncateIndex(run.text->length());
  }
}

void AttentionStep::Plan(const Segment& segment, int64_t first_row) {
  TextCache& text = *segment.text;
  const int64_t length = text.length();
  assert(!text.AllRanksReadNext() || std::ssize(segment.tokens) == text.MaxNextTokens());
  const size_t first_run = run_count_;
  text.branches_.clear();
  text.row_outputs_.clear();
  int64_t longest = 0;
  for (size_t row = 0, begin = 0; row < segment.tokens.size(); ++row) {
    if (!EndsRun(segment, row)) continue;
    const auto ancestors = Ancestors(segment, first_row, static_cast<int64_t>(begin));
    Run& run = *std::construct_at(&runs_[run_count_++]);
    run = {.text = &text,
           .cache = nullptr,
           .rows = {.position = length + std::ssize(ancestors),
                    .rows = static_cast<int64_t>(row + 1 - begin),
                    .phase = segment.phase,
                    .cache = nullptr,
                    .ancestors = ancestors,
                    .first_row = first_row + static_cast<int64_t>(begin)},
           .chain = segment.parents.empty(),
           .reads = {}};
    longest = std::max(longest, run.rows.position + run.rows.rows - length);
    begin = row + 1;
  }
  if (longest > text.limit_tokens() - length) {
    Throw(ErrorKind::kInput, "{} tokens and {} more exceed the context of {} tokens", length,
          longest, text.limit_tokens());
  }
  const auto runs = runs_.subspan(first_run, run_count_ - first_run);
  if (!segment.parents.empty()) {
    text.branches_.reserve(runs.size());
    for (const Run& run : runs) {
      text.branches_.push_back({.first_row = run.rows.first_row - first_row,
                                .position = run.rows.position,
                                .rows = run.rows.rows,
                                .path = PathOf(run.rows),
                                .cache = {}});
      if (text.branches_.size() == 1) continue;
      KvCache& cache = text.branches_.back().cache.emplace(text.cache_.Fork());
      cache.Reserve(run.rows.position + run.rows.rows - length);
    }
  }
  text.ReserveNext(runs.front().rows.rows);
  if (segment.parents.empty()) {
    text.states_.Reserve(longest);
  } else {
    text.states_.ReserveTree(segment.parents);
  }
  state_pieces_ += text.states_.pieces();
  for (size_t i = 0; i < text.rotaries_.size(); ++i) {
    text.positions_[i].Fill(text.rotaries_[i], longest, length);
    if (text.cache_.layout().centred) {
      text.tiles_[i].FillMeans(text.rotaries_[i], length / kTileTokens,
                               PagesFor(length + longest) - length / kTileTokens);
    }
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    Run& run = runs[i];
    run.cache = i == 0 ? &text.cache_ : &*text.branches_[i].cache;
    run.rows.cache = run.cache;
    text.policy_->Plan(run.rows);
  }
}

// The rows of the step that a row follows, from the text's end on.
std::span<const int64_t> AttentionStep::Ancestors(const Segment& segment, int64_t first_row,
                                                  int64_t row) {
  if (segment.parents.empty()) return {};
  const auto parent_of = [&](int64_t r) { return segment.parents[r]; };
  int64_t depth = 0;
  for (int64_t r = parent_of(row); r >= 0; r = parent_of(r)) {
    assert(r < row);
    ++depth;
  }
  const auto ancestors = exec_.workspace.Matrix<int64_t>(1, depth).RowSpan(0);
  for (int64_t r = parent_of(row); r >= 0; r = parent_of(r)) {
    ancestors[--depth] = first_row + r;
  }
  return ancestors;
}

const AttentionStep::Run& AttentionStep::RunWithRow(int64_t row) const {
  const auto first_row = [](const Run& run) { return run.rows.first_row; };
  return *(std::ranges::upper_bound(runs_.first(run_count_), row, {}, first_row) - 1);
}

int64_t AttentionStep::PositionOf(int64_t row) const {
  const Run& run = RunWithRow(row);
  return run.rows.position + row - run.rows.first_row;
}

void AttentionStep::WriteKeys(int64_t layer, const AttentionInput& input) {
  Workspace::Scope scope(exec_.workspace);
  const auto runs = runs_.first(run_count_);
  const auto stored = exec_.workspace.Matrix<ops::StoredRows>(1, std::ssize(runs)).RowSpan(0);
  const int64_t rotary = geometry_.RotaryOf(layer);
  const KvLayout layout = runs.front().cache->layout().OfLayer(layer);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    std::construct_at(&stored[i], ops::StoredRows{.to = run.cache->View(layer),
                                                  .position = run.text->length(),
                                                  .before = run.rows.ancestors,
                                                  .first_row = run.rows.first_row,
                                                  .rows = run.rows.rows,
                                                  .positions = run.text->positions_[rotary].table(),
                                                  .tiles = {}});
    if (layout.centred) stored[i].tiles = run.text->tiles_[rotary].table();
  }
  ops::StoreKeys(exec_, layout, layer, stored,
                 {.k = input.k, .v = input.v, .means = input.key_means});
  if (input.index_k.rows == 0) return;
  for (size_t i = 0; i < runs.size(); ++i) stored[i].to = runs[i].cache->IndexView(layer);
  ops::StoreKeys(exec_, layout.Index(), layer, stored, {.k = input.index_k, .v = {}});
}

void AttentionStep::ChooseByIndex(int64_t layer, const AttentionInput& input) {
  const ops::KeyIndexShape& index = *geometry_.key_index;
  const ops::AttentionShape shape{
      .heads = index.heads, .kv_heads = 1, .head_dim = index.head_dim, .scale = index.scale};
  const ProfilePart measured(exec_.profile, StepPart::kChoosingKeys);
  for (Run& run : runs_.first(run_count_)) {
    const int64_t end = run.rows.position + run.rows.rows;
    const int64_t begin = std::max(run.rows.position, index.best);
    if (begin >= end) continue;
    run.cache->WillReadIndex(layer, {0, end});
    run.reads.bytes += PagesFor(end) * run.cache->layout().index_bytes();
    Workspace::Scope scope(exec_.workspace);
    const int64_t first = run.rows.RowAt(begin), last = first + end - begin;
    ops::RotaryTable positions = run.text->positions_[geometry_.RotaryOf(layer)].table().Rows(
        begin - run.text->length(), end - begin);
    positions.query_scale = {};
    const auto q = exec_.workspace.Matrix<float>((end - begin) * index.heads, index.head_dim);
    ops::RotateHeadMajor(exec_, shape, input.index_q.Rows(first, last), positions, q);
    ops::SelectKeys(exec_, index,
                    {.keys = run.cache->IndexView(layer),
                     .q = q,
                     .weights = input.index_weights.Rows(first, last),
                     .position = begin},
                    chosen_parts_.Rows(first, last), chosen_.subspan(first, end - begin));
  }
}

// The number of first rows of the run that select together.
int64_t AttentionStep::RowsTogether(const Run& run, int64_t layer) const {
  const int64_t from = std::min(run.text->policy_->row_by_row_from(layer), geometry_.ChoosesFrom());
  const int64_t rows = from - run.rows.position;
  return std::clamp<int64_t>(rows, 0, run.rows.rows);
}

// The number of first rows of the run that a GPU attends for.
int64_t AttentionStep::RowsOnGpu(const Run& run) const {
  const int64_t rows = run.text->policy_->on_gpu_until() - run.rows.position;
  return std::clamp<int64_t>(rows, 0, run.rows.rows);
}

template <class Use>
void AttentionStep::ForParts(const Run& run, int64_t layer, const Use& use) const {
  const int64_t end = run.rows.rows, on_gpu = RowsOnGpu(run);
  const int64_t together = std::max(on_gpu, RowsTogether(run, layer));
  const NearOnGpu near = run.text->policy_->near_on_gpu();
  int64_t both = end;  // the first row with near keys on a GPU
  if (near.tiles.window > 0) {
    both = std::clamp(near.from - run.rows.position, on_gpu, end);
  }
  if (on_gpu > 0) use(0, on_gpu, Place::kGpu);
  const int64_t here = std::min(both, together);
  if (here > on_gpu) use(on_gpu, here - on_gpu, Place::kHere);
  for (int64_t row = here; row < together;) {
    const int64_t tile_end = kTileTokens - (run.rows.position + row) % kTileTokens + row;
    const int64_t until = std::min(tile_end, together);
    use(row, until - row, Place::kBoth);
    row = until;
  }
  for (int64_t row = together; row < end; ++row) {
    use(row, 1, row < both ? Place::kHere : Place::kBoth);
  }
}

void AttentionStep::RequireGpu(bool contexts, bool near) const {
  if (contexts && (gpu_ == nullptr || !gpu_->attends_to_contexts())) {
    Throw(
        ErrorKind::kUnsupported,
        "the context is to be read with attention on a GPU, and this model has none that attends");
  }
  if (near && (gpu_ == nullptr || !gpu_->keeps_near_keys())) {
    Throw(ErrorKind::kUnsupported,
          "a GPU is to attend to near keys, and this model has none that keeps them");
  }
}

// The rows of a run with their queries, encoded for each look.
ops::AttentionRows AttentionStep::SourcesOf(Run& run, const RowRun& rows, int64_t layer,
                                            const AttentionInput& input) {
  TextCache& text = *run.text;
  const ops::AttentionShape& shape = geometry_.ShapeOf(layer);
  const int64_t first_row = rows.RowAt(rows.position);
  const auto q = input.q.Rows(first_row, first_row + rows.rows);
  const auto encode = [&](ops::RotaryTable table) {
    table.query_gain = input.query_gains;
    const auto encoded = exec_.workspace.Matrix<float>(q.rows * shape.heads, shape.head_dim);
    ops::RotateHeadMajor(exec_, shape, q, table, encoded);
    return encoded;
  };
  const int64_t rotary = geometry_.RotaryOf(layer);
  const ops::RotaryTable positions =
      text.positions_[rotary].table().Rows(rows.position - text.length(), q.rows);
  const MatrixView<const float> in_text = encode(positions);
  const bool merged = rows.position >= text.placement_.merged_from();
  const Looks looks = [&] {
    const ProfilePart measured(exec_.profile, StepPart::kChoosingKeys);
    RunQueries queries{.exec = exec_, .q = in_text, .reader = input.reader};
    if (rows.position >= geometry_.ChoosesFrom()) queries.chosen = chosen_.subspan(first_row, 1);
    const Looks all = text.policy_->Select(rows, layer, queries);
    if (!merged) return all;
    return text.placement_.Shown(all, shape.kv_heads, exec_.workspace);
  }();
  AnnounceReading(rows, layer, looks);
  run.reads += ReadsOf(rows, layer, looks);
  const auto sources =
      exec_.workspace.Matrix<ops::AttentionSource>(1, std::ssize(looks.span())).RowSpan(0);
  for (size_t i = 0; i < sources.size(); ++i) {
    const Look& look = looks.span()[i];
    MatrixView<const float> queries = in_text;
    const bool tempered = positions.query_scale.rows > 0;
    if (look.query_place && (!look.keys_move || tempered)) {
      if (text.placed_at_ != *look.query_place) {
        for (size_t turn = 0; turn < text.rotaries_.size(); ++turn) {
          text.place_[turn].Fill(text.rotaries_[turn], 1, *look.query_place);
        }
        text.placed_at_ = *look.query_place;
      }
      ops::RotaryTable place = text.place_[rotary].TableForAll(q.rows);
      // Rotations at text positions also fit moved keys. Only the temperature differs.
      if (look.keys_move) {
        place.cos = positions.cos;
        place.sin = positions.sin;
      }
      queries = encode(place);
    }
    std::construct_at(&sources[i], ops::AttentionSource{.kv = run.cache->View(layer),
                                                        .q = queries,
                                                        .visible = look.visible,
                                                        .parts = look.parts,
                                                        .query_place = look.query_place,
                                                        .keys_move = look.keys_move,
                                                        .int8_products = text.int8_products_});
  }
  ops::AttentionRows result{
      .first_row = first_row, .rows = rows.rows, .position = rows.position, .sources = sources};
  result.before = looks.before();
  if (merged) {
    const int64_t states = rows.rows * shape.heads;
    result.states = exec_.workspace.Matrix<float>(states, ops::StateStride(shape.value_dim())).data;
  }
  return result;
}

void AttentionStep::Attend(int64_t layer, const AttentionInput& input, MatrixView<float> out) {
  const ops::AttentionShape& shape = geometry_.ShapeOf(layer);
  const bool writes = input.k.rows > 0;
  assert(writes ? input.reader == 0 : input.reader > 0 || geometry_.readers.empty());
  assert(!writes || input.k.rows == rows_);
  assert(!writes || input.v.rows == (shape.values_from ? 0 : rows_));
  for (const Run& run : runs_.first(run_count_)) run.cache->pool().BeginTurn();
  if (writes) WriteKeys(layer, input);
  for (const Run& run : runs_.first(run_count_)) {
    if (!writes || !run.text->AllRanksKeepNext()) continue;
    GatherRound(exec_, *run.text->ranks_, run.text->placement_.ring(), *run.cache, layer);
  }
  if (input.q.rows == 0) return;
  if (input.index_q.rows > 0) ChooseByIndex(layer, input);
  Workspace::Scope scope(exec_.workspace);
  const auto runs = runs_.first(run_count_);
  int64_t most_here = 0, most_on_gpu = 0, most_both = 0;
  for (const Run& run : runs) {
    ForParts(run, layer, [&](int64_t, int64_t, Place place) {
      ++(place == Place::kHere ? most_here : place == Place::kGpu ? most_on_gpu : most_both);
    });
  }
  RequireGpu(most_on_gpu > 0, most_both > 0);
  auto texts = exec_.workspace.Matrix<ops::AttentionRows>(1, most_here + most_both).RowSpan(0);
  auto next = texts.begin();
  auto on_gpu = exec_.workspace.Matrix<ops::AttentionRows>(1, most_on_gpu).RowSpan(0);
  auto next_on_gpu = on_gpu.begin();
  const auto near = exec_.workspace.Matrix<ops::NearRows>(1, most_both).RowSpan(0);
  auto next_near = near.begin();
  for (Run& run : runs) {
    if (run.text->AllRanksReadNext() && !run.text->AllRanksKeepNext()) {
      Workspace::Scope of_run(exec_.workspace);
      AttendInRing(exec_, *run.text->ranks_, run.text->placement_.ring(), shape, geometry_.alibi,
                   *run.cache, layer, SourcesOf(run, run.rows, layer, input), input.sink_logits,
                   out);
      continue;
    }
    ForParts(run, layer, [&](int64_t begin, int64_t rows, Place place) {
      RowRun taken = run.rows;
      taken.position += begin;
      taken.rows = rows;
      const ops::AttentionRows part = SourcesOf(run, taken, layer, input);
      if (place == Place::kHere) std::construct_at(&*next++, part);
      if (place == Place::kGpu) std::construct_at(&*next_on_gpu++, part);
      if (place == Place::kBoth) {
        const ops::NearTiles tiles = run.text->policy_->near_on_gpu().tiles;
        std::construct_at(&*next_near++, ops::NearRows{.rows = part, .tiles = tiles});
      }
    });
  }
  const int64_t here = next - texts.begin();
  on_gpu = on_gpu.first(next_on_gpu - on_gpu.begin());
  if (!near.empty()) gpu_->BeginNear(shape, layer, near);
  for (const ops::NearRows& rows : near) {
    ops::AttentionRows& far =
        *std::construct_at(&*next++, ops::FarOf(exec_.workspace, rows.tiles, rows.rows));
    const int64_t states = far.rows * shape.heads;
    far.states = exec_.workspace.Matrix<float>(states, ops::StateStride(shape.value_dim())).data;
  }
  const auto far = texts.subspan(here, near.size());
  texts = texts.first(here + near.size());
  ops::Attention(exec_, shape, geometry_.alibi, texts, input.sink_logits, out);
  if (!near.empty()) gpu_->FinishNear(shape, far, near, input.sink_logits, out);
  texts = texts.first(here);
  if (!on_gpu.empty()) gpu_->Attend(shape, on_gpu, input.sink_logits, out);
  // The merged rows of all texts go to the other ranks in one message: which other texts lie
  // between them differs between ranks.
  auto merged = exec_.workspace.Matrix<ops::AttentionRows>(1, std::ssize(texts)).RowSpan(0);
  merged = merged.first(
      std::ranges::copy_if(texts, merged.begin(), [](const auto& rows) { return rows.states; })
          .out -
      merged.begin());
  if (!merged.empty()) {
    FinishWithRanks(exec_, *RunWithRow(merged.front().first_row).text->ranks_, shape, merged,
                    input.sink_logits, out);
  }
  RotateValuesBack(layer, out);
}

// Turns sums of values H v back into sums of v.
void AttentionStep::RotateValuesBack(int64_t layer, MatrixView<float> out) const {
  for (const Run& run : runs_.first(run_count_)) {
    if (!run.cache->layout().rotated_values()) continue;
    ops::HadamardHeads(exec_, geometry_.ShapeOf(layer).value_dim(),
                       out.Rows(run.rows.first_row, run.rows.first_row + run.rows.rows));
  }
}

std::span<const ops::StatePiece> AttentionStep::States(int64_t layer) const {
  const auto pieces = exec_.workspace.Matrix<ops::StatePiece>(1, state_pieces_).RowSpan(0);
  auto next = pieces.begin();
  const TextCache* last = nullptr;
  for (const Run& run : runs_.first(run_count_)) {
    if (std::exchange(last, run.text) == run.text) continue;  // the runs of a text are neighbours
    const StateCache& states = run.text->states_;
    states.FillPieces(exec_.workspace, layer, run.rows.first_row, &*next);
    next += states.pieces();
  }
  return pieces;
}

void AttentionStep::KeepOutputs(MatrixView<const float> outputs) {
  for (const Run& run : runs_.first(run_count_)) {
    TextCache& text = *run.text;
    const int64_t end = run.rows.first_row + run.rows.rows;
    text.output_size_ = outputs.cols;
    for (int64_t row = run.chain ? end - 1 : run.rows.first_row; row < end; ++row) {
      const auto output = outputs.RowSpan(row);
      text.row_outputs_.insert(text.row_outputs_.end(), output.begin(), output.end());
    }
  }
}

void AttentionStep::End() {
  const auto runs = std::span<const Run>(runs_).first(run_count_);
  for (const Run& run : runs) run.text->reads_ = {};
  for (const Run& run : runs) {
    run.text->reads_ += run.reads;
    if (!run.chain) continue;
    run.text->states_.Append(run.rows.rows);
    run.text->KeepOutput(0);
    run.text->Append(run.rows.rows);
  }
  ended_ = true;
}

}  // namespace godwit
