// The representative of a part, some neighbouring keys of a text. By it a query looks for the parts
// that matter to it. Some kinds have a centre c and, maybe, a spread s, so that the part's score is
//   scale * (q . c + |q| . s)
//
// That is the product of two rows, (q, |q|) and (c, s): the kernels of int8 keys score parts, too.
//
// Signs are the other kind: an offset of a tile of keys, and the sign of each key's difference from
// that in each number. A part is then one token, and takes little more than the bytes of the mean
// and spread of 16.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "kernels/kernel_table.h"

namespace godwit::ops {

enum class RepresentativeType {
  kMean,   // the mean of the keys
  kMax,    // the largest number of the keys in every dimension
  kQuest,  // Quest (arXiv 2406.10774): centre and half-width of the box that holds them, so that no
           // key scores higher than its part
  kMeanStd,  // UNIQUE (arXiv 2605.27740): the mean of the keys, and half a standard deviation
  kFixed,    // the first key
  kDynamic,  // the keys of a block's tokens that get most attention, each as kFixed
  kSign,     // an offset of every tile, and the sign of every number of every key less the offset
};

// A kind of representative: as --kv spells it, the vectors that it keeps of a part, and a
// description for people.
struct RepresentativeKind {
  std::string_view name;
  RepresentativeType type;
  int64_t vectors;
  std::string_view description;  // "... of every 16 tokens"
};
inline constexpr RepresentativeKind kRepresentatives[] = {
    {"MEAN", RepresentativeType::kMean, 1, "the mean of the keys"},
    {"MAX", RepresentativeType::kMax, 1, "the largest numbers of the keys"},
    {"QUEST", RepresentativeType::kQuest, 2, "the box around the keys"},
    {"MEANSTD", RepresentativeType::kMeanStd, 2, "the mean and the spread of the keys"},
    {"FIX", RepresentativeType::kFixed, 1, "the first of the keys"},
    {"DYNAMIC", RepresentativeType::kDynamic, 1, "the keys that get most attention"},
    {"SIGN", RepresentativeType::kSign, 1, "the signs of the keys"},
};

constexpr const RepresentativeKind& KindOf(RepresentativeType type) {
  for (const RepresentativeKind& kind : kRepresentatives) {
    if (kind.type == type) return kind;
  }
  return kRepresentatives[0];
}

constexpr int64_t VectorsOf(RepresentativeType type) { return KindOf(type).vectors; }

// Computes the representative of `tokens` keys [head_dim, stride], dimension by dimension, in int8
// with one scale, which is returned. representative: [VectorsOf(type) * head_dim], and zeros to
// kQuad. It is a function of these keys alone. For Quest the bound holds for every query in int8 as
// it is scored: the spread takes up what rounding did to the centre. scratch: as large as the
// representative. Numbers that are not finite make the scale NaN; FIX and DYNAMIC see those of
// their key. Not for kSign.
float Represent(RepresentativeType type, const kernels::KernelTable& kernels, const float* keys,
                int64_t stride, int64_t tokens, int64_t head_dim, float* scratch,
                int8_t* representative);

// The last steps of Represent. For kMeanStd: means and standard deviations [2 * head_dim], of which
// it takes kStdShare. For kQuest: boxes [low, high].
float QuantizeMeanStd(const kernels::KernelTable& kernels, int64_t head_dim, float* mean_std,
                      int8_t* representative);
float QuantizeBoxes(const float* boxes, int64_t head_dim, int8_t* representative);
// UNIQUE weighs the spread by a coefficient of the model's; without calibration, half.
inline constexpr float kStdShare = 0.5f;

// Groups of four dimensions, padded as the kernel of signs wants them.
constexpr int64_t SignGroups(int64_t head_dim) {
  constexpr int64_t kPad = 4 * kernels::kSignGroups;
  return (head_dim + kPad - 1) / kPad * kernels::kSignGroups;
}

// The levels that the signs of a head's keys stand for, in each dimension [head_dim]. They say how
// far a number lies from the mean of its tile: the nearer one of two levels. Dimensions differ much
// in that, and in some a few keys lie far on one side.
struct SignLevels {
  const float* centre;  // of the first keys: the common part of all keys
  const float* above;
  const float* below;

  // The step of a dimension in the offsets of tiles. One step for all would leave nothing of
  // dimensions that differ little, which a query may weigh most.
  float Unit(int64_t d) const { return (above[d] - below[d]) / 2; }
  // The middle between the levels. A number further above the mean of its tile has the sign 1.
  float Middle(int64_t d) const { return (above[d] + below[d]) / 2; }
};

// Learns levels [3, head_dim], in the order of SignLevels, from so many tiles of keys; from none:
// 0, 1 and -1. read(i): tile i, [head_dim, kTileTokens], dimension by dimension, valid until the
// next call.
void LearnLevels(int64_t tiles, const std::function<const float*(int64_t)>& read, int64_t head_dim,
                 float* levels);
inline SignLevels LevelsIn(const float* levels, int64_t head_dim) {
  return {.centre = levels, .above = levels + head_dim, .below = levels + 2 * head_dim};
}

// Computes the signs and the offset of a tile of keys [head_dim, kTileTokens], dimension by
// dimension. signs: those of each key less their mean and the middle of the levels. Each of
// SignGroups(head_dim) groups takes half a byte, as kernels::SignAt has it. offset: [head_dim] and
// zeros to kQuad, in units of the levels, in int8. Returns the scale of the offset.
//
// The offset and the levels of a key's signs stand for the key, less the centre, and are right in
// the mean of the tile. The centre adds the same to all scores of a query, so no softmax notices.
// Trained models have keys that lie far from 0, in a direction that rotates with the position: the
// mean of a tile rotates, too. A key has no scale of its own. It would also stretch the common part
// of all keys, which a query may weigh more than all their differences.
float RepresentSigns(const kernels::KernelTable& kernels, const float* keys,
                     const SignLevels& levels, int64_t head_dim, int8_t* offset, uint8_t* signs);

}  // namespace godwit::ops
