// Placement: which ranks share what. A plain value, made once.
//
// All ranks form groups of neighbours. Ranks of a group share the weights of the model: each has
// some heads, columns of MLPs and experts (tensor parallelism, arXiv 1909.08053). Ranks with the
// same place in their groups have the same weights, and share the positions of texts.
//
//   4 ranks, 2 in a group:    weights    A B   A B
//                             positions  1 1   2 2
#pragma once

#include <memory>
#include <vector>

#include "dist/communicator.h"

namespace godwit {

// Null: this process is alone in that. The three speak over one connection, and so their calls come
// from one thread at a time, too. A rank that leaves one of them has left all.
struct Placement {
  std::shared_ptr<Communicator> all;
  std::shared_ptr<Communicator> tensor;   // the ranks with other parts of the weights
  std::shared_ptr<Communicator> context;  // those with the same part, and other positions

  int part() const { return tensor == nullptr ? 0 : tensor->rank(); }
  int parts() const { return tensor == nullptr ? 1 : tensor->size(); }
};

// Groups of `tensor_parallel` ranks. all: may be null. Throws Error(kInput) if the ranks do not
// make whole groups.
Placement Place(std::shared_ptr<Communicator> all, int tensor_parallel);

// Some ranks of `all`, numbered by their order in `members`, which includes this one. Messages name
// them as `all` does.
std::shared_ptr<Communicator> GroupOf(std::shared_ptr<Communicator> all, std::vector<int> members);

}  // namespace godwit
