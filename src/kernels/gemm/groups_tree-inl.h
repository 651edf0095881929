// Vectors of a register tile with names of their own: GCC 12 keeps arrays of them in memory.
// Include after one of vec/*.h.
#pragma once

#define GODWIT_INLINE_LAMBDA __attribute__((always_inline))

namespace godwit::kernels {
namespace {

// N neighbours.
template <int N>
struct Tree {
  Tree<N / 2> low, high;
};
template <>
struct Tree<1> {
  Vec leaf;
};

// R rows of them.
template <int R, int N>
struct Stack {
  Stack<R - 1, N> above;
  Tree<N> row;
};
template <int N>
struct Stack<0, N> {};

// f(place, vector of each tree)
template <int kFirst = 0, class F, int N, class... Others>
GODWIT_INLINE void ForEach(const F& f, Tree<N>& tree, Others&... others) {
  if constexpr (N == 1) {
    f(kFirst, tree.leaf, others.leaf...);
  } else {
    ForEach<kFirst>(f, tree.low, others.low...);
    ForEach<kFirst + N / 2>(f, tree.high, others.high...);
  }
}

// f(row, tree of each stack)
template <class F, int R, int N, class... Others>
GODWIT_INLINE void ForRows(const F& f, Stack<R, N>& stack, Others&... others) {
  if constexpr (R > 0) {
    ForRows(f, stack.above, others.above...);
    f(R - 1, stack.row, others.row...);
  }
}

// f(row, place, vector of each stack)
template <class F, class... Stacks>
GODWIT_INLINE void ForAll(const F& f, Stacks&... stacks) {
  ForRows(
      [&](int64_t r, auto&... rows) GODWIT_INLINE_LAMBDA {
        ForEach([&](int64_t i, auto&... vecs) GODWIT_INLINE_LAMBDA { f(r, i, vecs...); }, rows...);
      },
      stacks...);
}

template <int kPlace, int N>
GODWIT_INLINE Vec& At(Tree<N>& tree) {
  if constexpr (N == 1) {
    return tree.leaf;
  } else if constexpr (kPlace < N / 2) {
    return At<kPlace>(tree.low);
  } else {
    return At<kPlace - N / 2>(tree.high);
  }
}

// f(row, place, shared, vector of each stack), one place after the other; share(place) makes what
// all rows share there.
template <int kPlace = 0, class Share, class F, int R, int N, class... Others>
GODWIT_INLINE void ForColumns(const Share& share, const F& f, Stack<R, N>& stack,
                              Others&... others) {
  if constexpr (kPlace < N) {
    const auto shared = share(kPlace);
    ForRows([&](int64_t r, auto&... rows)
                GODWIT_INLINE_LAMBDA { f(r, kPlace, shared, At<kPlace>(rows)...); },
            stack, others...);
    ForColumns<kPlace + 1>(share, f, stack, others...);
  }
}

}  // namespace
}  // namespace godwit::kernels
