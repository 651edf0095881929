// Functions of vectors over arrays. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// out[i] = function(x[i]). A partial vector at the end goes through the same lanes, so an element
// gets the same bits wherever it stands.
template <class In, class Out, class Function>
GODWIT_INLINE void Map(const In* x, int64_t n, Out* out, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, function(Load(x + i)));
  if (i < n) StoreFirst(out + i, function(LoadFirst(x + i, n - i)), n - i);
}

template <class Function>
GODWIT_INLINE void Map2(const float* a, const float* b, int64_t n, float* out, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, function(Load(a + i), Load(b + i)));
  if (i < n) {
    const Vec value = function(LoadFirst(a + i, n - i), LoadFirst(b + i, n - i));
    StoreFirst(out + i, value, n - i);
  }
}

}  // namespace
}  // namespace godwit::kernels
