// Texts that begin with the same memory, such as the branches of a tree or the forks of a prompt:
// what they share is read once for all of them.
//
// Their rows attend to the shared stretches together, as rows of one text, and each text's sums
// begin with the states of its rows (AttentionRows::before): by which rows a stretch is met does
// not show in the bits, and the order of stretches stays.
#pragma once

#include <span>

#include "ops/attention.h"

namespace godwit::ops {

// Positions: less is not worth the second pass.
inline constexpr int64_t kFewestShared = 2 * kStretchTokens;

class SharedKeys {
 public:
  // Takes what it needs of the workspace, in use as long as this. texts: as of Attention.
  SharedKeys(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
             std::span<const AttentionRows> texts);

  // To be attended to first, a group as one text, to their states.
  std::span<const AttentionRows> groups() const { return groups_; }
  // Then: the texts, in another order, which begin with what their groups came to.
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
    return texts_.subspan(static_cast<size_t>(group.first), static_cast<size_t>(group.count));
  }

  const Exec& exec_;
  const AttentionShape& shape_;
  int64_t group_;  // query heads of a KV head
  std::span<AttentionRows> texts_;
  std::span<AttentionRows> groups_;
  std::span<Group> members_;  // [groups]
};

}  // namespace godwit::ops
