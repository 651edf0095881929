// SharedKeys: texts that begin with the same memory, such as the branches of a tree or the forks of
// a prompt. Their shared pages are read once for all of them.
//
// Their rows attend to the shared stretches together, as rows of one text. Each text's sums begin
// with the states of its rows (AttentionRows::before). The rows with which a stretch is met do not
// change the bits, and the order of stretches stays.
#pragma once

#include <span>

#include "ops/attention.h"

namespace godwit::ops {

// Positions: less is not worth the second pass.
inline constexpr int64_t kFewestShared = 2 * kStretchTokens;

class SharedKeys {
 public:
  // Takes memory of the workspace, in use as long as this. texts: as Attention has them.
  SharedKeys(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
             std::span<const AttentionRows> texts);

  // The groups, to which attention goes first, each as one text, into their states.
  std::span<const AttentionRows> groups() const { return groups_; }
  // The texts, in another order, for attention after the groups. They begin with the results of
  // their groups.
  std::span<const AttentionRows> Rest();

 private:
  struct Group {
    int64_t first, count;  // texts
    int64_t rows;          // tokens
    int64_t end;           // of the shared positions
  };

  Group GroupFrom(int64_t first);
  AttentionRows Together(const Group& group) const;
  AttentionSource& CopyOf(const AttentionSource& source) const;
  float* NewStates(int64_t tokens) const;
  std::span<AttentionRows> TextsOf(const Group& group) const {
    return texts_.subspan(group.first, group.count);
  }

  const Exec& exec_;
  const AttentionShape& shape_;
  int64_t group_;  // query heads of a KV head
  std::span<AttentionRows> texts_;
  std::span<AttentionRows> groups_;
  std::span<Group> members_;  // [groups]
};

}  // namespace godwit::ops
