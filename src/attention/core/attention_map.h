// Attention maps: the mean weight of each key for each query, over texts of one length. Every layer
// and head has one (StreamingLLM, arXiv 2309.17453, figure 2). They are for measurements only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"

namespace godwit {

// Sums over texts.
class AttentionMap {
 public:
  AttentionMap(int64_t layers, int64_t heads, int64_t tokens)
      : layers_(layers), heads_(heads), tokens_(tokens), sums_(layers * heads * tokens * tokens) {}

  int64_t layers() const { return layers_; }
  int64_t heads() const { return heads_; }
  int64_t tokens() const { return tokens_; }
  int64_t texts() const { return texts_; }

  // The sums of a query over the keys [tokens].
  std::span<double> Row(int64_t layer, int64_t head, int64_t query) {
    return std::span(sums_).subspan(((layer * heads_ + head) * tokens_ + query) * tokens_, tokens_);
  }
  // Counts a text that was added whole.
  void EndText() { ++texts_; }

  double Mean(int64_t layer, int64_t head, int64_t query, int64_t key) const {
    const int64_t at = ((layer * heads_ + head) * tokens_ + query) * tokens_ + key;
    return sums_[at] / static_cast<double>(texts_);
  }
  // The mean weight that queries from `from` on give to the first `keys` keys.
  double MeanOfFirst(int64_t layer, int64_t head, int64_t from, int64_t keys) const;

 private:
  int64_t layers_, heads_, tokens_;
  int64_t texts_ = 0;
  std::vector<double> sums_;
};

// A policy that shows all that `dense` shows, and adds each token's weights to the map, which is
// borrowed. Texts may be shorter than the map's. Throws what RequireDenseWeights does.
std::unique_ptr<AttentionPolicy> MakeAttentionMapPolicy(const AttentionGeometry& geometry,
                                                        std::unique_ptr<AttentionPolicy> dense,
                                                        AttentionMap& map);

}  // namespace godwit
