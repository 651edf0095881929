#include "ops/shared_keys.h"

#include <algorithm>
#include <memory>

#include "ops/attention_state.h"

namespace godwit::ops {
namespace {

// Whether the text's rows see all keys from one on. Then sharing alone decides which rows see a
// key.
bool SeesAll(const AttentionRows& text) {
  if (text.sources.size() != 1 || text.before != nullptr) return false;
  const AttentionSource& source = text.sources.front();
  const Visible& visible = source.visible;
  return source.parts.empty() && source.biases.rows == 0 && visible.window == INT64_MAX &&
         visible.block == INT64_MAX && visible.from <= text.position &&
         text.position + text.rows <= visible.until;
}

// The number of tiles at the beginning of both texts that lie in the same memory. Texts write into
// pages of their own since they parted, so where both share a page, all earlier pages are shared.
int64_t SameTiles(const KvView& a, const KvView& b) {
  if (a.slots == 0 || b.slots == 0 || a.pages[0] != b.pages[0]) return 0;  // most texts
  if (a.dropped_begin < a.dropped_end || b.dropped_begin < b.dropped_end) return 0;
  int64_t same = 0, other = std::min(a.slots, b.slots);
  while (same < other) {
    const int64_t tile = (same + other) / 2;
    const PageData page = a.pages[tile * a.page_stride];
    if (page && page == b.pages[tile * b.page_stride]) {
      same = tile + 1;
    } else {
      other = tile;
    }
  }
  return same;
}

// The end of the positions that all rows of both texts see in the same memory.
int64_t SharedEnd(const AttentionRows& a, const AttentionRows& b) {
  const AttentionSource& x = a.sources.front();
  const AttentionSource& y = b.sources.front();
  if (x.visible.begin != y.visible.begin || x.kv.dtype != y.kv.dtype ||
      x.int8_products != y.int8_products) {
    return 0;
  }
  const int64_t end = std::min({SameTiles(x.kv, y.kv) * kernels::kTileTokens,
                                x.visible.At(a.position).end, y.visible.At(b.position).end});
  return end / kStretchTokens * kStretchTokens;
}

}  // namespace

SharedKeys::SharedKeys(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                       std::span<const AttentionRows> texts)
    : exec_(exec), shape_(shape), group_(shape.heads / shape.kv_heads) {
  const int64_t count = std::ssize(texts);
  texts_ = exec.workspace.Matrix<AttentionRows>(1, count).RowSpan(0);
  std::uninitialized_copy(texts.begin(), texts.end(), texts_.begin());
  if (!alibi.slopes.empty()) return;  // a bias differs from row to row
  groups_ = exec.workspace.Matrix<AttentionRows>(1, count / 2).RowSpan(0);
  members_ = exec.workspace.Matrix<Group>(1, count / 2).RowSpan(0);
  size_t groups = 0;
  for (int64_t first = 0; first < count;) {
    const Group group = GroupFrom(first);
    first += group.count;
    if (group.count == 1) continue;
    std::construct_at(&members_[groups], group);
    std::construct_at(&groups_[groups++], Together(group));
  }
  groups_ = groups_.first(groups);
  members_ = members_.first(groups);
}

// A group of the text `first` and the later texts that share the most with it, moved behind it.
SharedKeys::Group SharedKeys::GroupFrom(int64_t first) {
  const AttentionRows& leader = texts_[first];
  Group group{.first = first, .count = 1, .rows = leader.rows, .end = INT64_MAX};
  if (!SeesAll(leader)) return group;
  const int64_t begin = leader.sources.front().visible.begin;
  const int64_t most = kMaxSharedRows / group_;
  auto others = texts_.subspan(static_cast<size_t>(first) + 1);
  Workspace::Scope scope(exec_.workspace);
  auto ends = exec_.workspace.Matrix<int64_t>(1, std::ssize(others)).RowSpan(0);
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i] = SeesAll(others[i]) ? SharedEnd(leader, others[i]) : 0;
  }
  for (; !others.empty(); others = others.subspan(1), ends = ends.subspan(1)) {
    const auto best = static_cast<size_t>(std::ranges::max_element(ends) - ends.begin());
    const int64_t end = ends[best], rows = group.rows + others[best].rows;
    if (end - begin < kFewestShared || rows > most) break;
    // A text that shares little would cut short the keys that the others share.
    if (group.count > 1 && group.count * (end - begin) <= (group.count - 1) * (group.end - begin)) {
      break;
    }
    std::swap(others.front(), others[best]);
    std::swap(ends.front(), ends[best]);
    group = {.first = first, .count = group.count + 1, .rows = rows, .end = end};
  }
  return group;
}

// A copy of one text's source in the workspace.
AttentionSource& SharedKeys::CopyOf(const AttentionSource& source) const {
  return *std::construct_at(exec_.workspace.Matrix<AttentionSource>(1, 1).data, source);
}

float* SharedKeys::NewStates(int64_t tokens) const {
  return exec_.workspace.Matrix<float>(tokens * shape_.heads, StateStride(shape_.value_dim())).data;
}

AttentionRows SharedKeys::Together(const Group& group) const {
  const auto texts = TextsOf(group);
  AttentionSource& source = CopyOf(texts.front().sources.front());
  source.visible = {.begin = source.visible.begin, .end = group.end};
  const auto q = exec_.workspace.Matrix<float>(group.rows * shape_.heads, shape_.head_dim);
  int64_t token = 0;
  for (const AttentionRows& text : texts) {
    const MatrixView<const float> own = text.sources.front().q;
    for (int64_t head = 0; head < shape_.heads; head += group_) {
      const int64_t from = HeadMajorRow(shape_, text.rows, 0, head);
      const int64_t to = HeadMajorRow(shape_, group.rows, token, head);
      for (int64_t i = 0; i < text.rows * group_; ++i) {
        std::ranges::copy(own.RowSpan(from + i), q.Row(to + i));
      }
    }
    token += text.rows;
  }
  source.q = q;
  return {.first_row = 0,
          .rows = group.rows,
          .position = group.end,  // behind the keys that all of them see
          .sources = {&source, 1},
          .states = NewStates(group.rows)};
}

std::span<const AttentionRows> SharedKeys::Rest() {
  const int64_t stride = StateStride(shape_.value_dim());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = members_[g];
    int64_t token = 0;
    for (AttentionRows& text : TextsOf(group)) {
      AttentionSource& source = CopyOf(text.sources.front());
      source.visible.begin = group.end;
      float* const states = NewStates(text.rows);
      for (int64_t head = 0; head < shape_.heads; head += group_) {
        const int64_t from = HeadMajorRow(shape_, group.rows, token, head);
        const int64_t to = HeadMajorRow(shape_, text.rows, 0, head);
        std::copy_n(groups_[g].states + from * stride, text.rows * group_ * stride,
                    states + to * stride);
      }
      token += text.rows;
      text.sources = {&source, 1};
      text.before = states;
    }
  }
  return texts_;
}

}  // namespace godwit::ops
