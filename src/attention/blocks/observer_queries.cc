#include "attention/blocks/observer_queries.h"

#include <algorithm>

#include "attention/blocks/chosen_blocks.h"
#include "ops/copy_rows.h"

namespace godwit {

void ObserverQueries::Put(const RowRun& run, size_t chooser, int64_t position,
                          MatrixView<const float> q) {
  const ops::AttentionShape& shape = geometry_->attention.shape;
  Query query(static_cast<size_t>(shape.heads * shape.head_dim));
  ops::CopyToken(shape, run.rows, position - run.position, q, query);
  histories_[chooser].Put(position, run.RowAt(position),
                          std::make_shared<const Query>(std::move(query)));
}

std::vector<ops::PlacedQuery> ObserverQueries::Find(const RowRun& run, size_t chooser,
                                                    int64_t begin, int64_t end) const {
  const History& history = histories_[chooser];
  std::vector<ops::PlacedQuery> found;
  for (int64_t p = begin; p < end; ++p) {
    if (const auto* q = history.Find(p, HistoryRowAt(run, p))) found.push_back({p, **q});
  }
  return found;
}

bool ObserverQueries::Remembers(int64_t position) const {
  return std::ranges::all_of(histories_, [&](const History& history) {
    return history.Find(position, History::kOfText) != nullptr;
  });
}

int64_t ObserverQueries::bytes() const {
  int64_t queries = 0;
  for (const auto& history : histories_) queries += history.size();
  return queries * query_bytes();
}

int64_t ObserverQueries::query_bytes() const {
  const ops::AttentionShape& shape = geometry_->attention.shape;
  return shape.heads * shape.head_dim * int64_t{sizeof(float)};
}

}  // namespace godwit
