#include "attention/blocks/blocks_preselection.h"

#include <algorithm>
#include <numeric>

#include "attention/blocks/blocks_by_keys.h"
#include "ops/blocks/choose_by_keys.h"
#include "ops/blocks/choose_by_votes.h"

namespace godwit {

void BlocksPreselection::SetQuestion(int64_t position, int64_t answer) {
  if (position != question_begin_ || answer != answer_) Keep(0, 0);
  question_begin_ = position;
  answer_ = answer;
}

void BlocksPreselection::Observe(const RowRun& run, int64_t layer, const RunQueries& queries) {
  if (!geometry_->spec.preselect_block) return;
  if (!geometry_->Chooses(layer) || !geometry_->Leads(layer)) return;
  const int64_t begin = std::max(run.position, ObserversBegin());
  for (int64_t p = begin; p < std::min(answer_, run.position + run.rows); ++p) {
    queries_.Put(run, geometry_->ChooserOf(layer, queries.reader), p, queries.q);
  }
}

int64_t BlocksPreselection::ObserversBegin() const {
  const int64_t first = geometry_->spec.preselect_votes ? 0 : question_begin_;
  return std::max({first, answer_ - geometry_->spec.observation_window, int64_t{0}});
}

const ChosenBlocks* BlocksPreselection::ChosenFor(const RowRun& run, int64_t layer,
                                                  const RunQueries& row_queries,
                                                  int64_t& read_bytes) {
  const Exec& exec = row_queries.exec;
  const BlocksSpec& spec = geometry_->spec;
  if (!spec.preselect_block || run.position < answer_) return nullptr;
  const size_t chooser = geometry_->ChooserOf(layer, row_queries.reader);
  const int64_t last = answer_ - 1, row = HistoryRowAt(run, last);
  if (const auto* found = chosen_[chooser].Find(last, row)) return found;
  const int64_t local = geometry_->FirstLocal(last);
  if (local - geometry_->initial <= spec.preselect_block_count) return nullptr;
  const auto queries = queries_.Find(run, chooser, ObserversBegin(), answer_);
  if (queries.empty()) return nullptr;  // the question was read elsewhere
  Workspace::Scope scope(exec.workspace);
  const auto chosen =
      exec.workspace.Matrix<int32_t>(geometry_->choices(), spec.preselect_block_count);
  const ops::AttentionShape& shape = geometry_->attention.shape;
  const ops::Alibi& alibi = geometry_->attention.alibi;
  const int64_t first = geometry_->initial;
  int64_t read_blocks = local;
  if (spec.preselect_votes) {
    read_blocks = last / spec.block_size + 1;
    run.cache->WillRead(layer, {0, answer_});
    ops::ChooseByVotes(exec, shape, alibi, run.cache->View(layer), spec.block_size,
                       spec.PoolTokens(), queries, first, local, chosen);
  } else {
    run.cache->WillRead(layer, {0, local * spec.block_size});
    ops::ChooseForAll(exec, shape, alibi, run.cache->View(layer), spec.block_size, queries, first,
                      local, chosen);
  }
  read_bytes += std::ssize(queries) * KeyBytes(*geometry_, run, read_blocks);
  chosen_[chooser].Put(last, row, {local, chosen});
  return chosen_[chooser].Find(last, row);
}

MatrixView<const int32_t> BlocksPreselection::BlocksFor(const RowRun& run, int64_t layer,
                                                        const RunQueries& queries,
                                                        int64_t& read_bytes) {
  const ChosenBlocks* const among = ChosenFor(run, layer, queries, read_bytes);
  if (among == nullptr) return {};
  const int64_t count = geometry_->spec.preselect_block_count;
  const int64_t since = geometry_->FirstLocal(run.position) - among->local;
  const auto blocks = queries.exec.workspace.Matrix<int32_t>(geometry_->choices(), count + since);
  for (int64_t i = 0; i < blocks.rows; ++i) {
    std::ranges::copy(among->lists[i], blocks.Row(i));
    std::iota(blocks.Row(i) + count, blocks.Row(i) + blocks.cols,
              static_cast<int32_t>(among->local));
  }
  return blocks;
}

int64_t BlocksPreselection::RestartPoint(int64_t length, int64_t answer) const {
  if (!geometry_->spec.preselect_block || answer == answer_) return length;
  return std::min(
      {length, answer_, std::max<int64_t>(0, answer - geometry_->spec.observation_window)});
}

}  // namespace godwit
