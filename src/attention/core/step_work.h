// The work of attention in a step of one text, counted before there is a text. Times of steps are
// measured against it, and foretold by it.
#pragma once

#include <cstdint>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "ops/kv_layout.h"

namespace godwit {

struct StepWork {
  int64_t rows = 0;
  // Keys that rows meet which attend together: once for every row and KV head, in all layers. A key
  // of the model's own index counts by its multiplications.
  double keys = 0;
  double bytes = 0;        // of keys and values that these rows look at, once for all
  double alone_bytes = 0;  // that rows look at which attend alone, with what they read to choose

  bool operator==(const StepWork&) const = default;
};

// The work of rows [begin, begin + rows) of a text of which tokens before `question_begin` are the
// context, as the policy was told. It is an upper bound where a policy decides as it goes. A row
// that comes alone attends alone. Allocates nothing.
StepWork WorkOf(const AttentionPolicy& policy, const AttentionGeometry& geometry,
                const KvLayout& layout, int64_t begin, int64_t rows, int64_t question_begin);

}  // namespace godwit
