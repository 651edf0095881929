// Positions of queries and keys, as the model was taught to see them.
//
// RotarySpec is pure data that an architecture declares; RotaryEncoding turns it into cosines and
// sines. Angles are computed in double: at position 4 million a float angle is off by a quarter.
// Immutable after construction, thread-safe. Models without rotation have ALiBi (ops/alibi.h), or
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/view.h"

namespace godwit {

// The scaling that stretched a model beyond the context with which it was first trained.
struct RotaryScaling {
  enum class Kind {
    kNone,
    kLinear,    // every frequency divided by `factor`
    kDynamic,   // "dynamic NTK": the base grows with the context once it exceeds the original
    kLlama3,    // low frequencies divided by `factor`, high ones kept, a ramp between
    kYarn,      // the same idea by dimension (arXiv 2309.00071), and scores sharpened
    kLongRope,  // every frequency divided by a factor of its own, found by search: one set of them
                // within the original context, another beyond (arXiv 2402.13753)
  };
  Kind kind = Kind::kNone;
  double factor = 1;
  int64_t original_context = 0;  // tokens; for all below kLinear

  double low_freq_factor = 1;   // kLlama3: wavelengths beyond original_context / this are divided
  double high_freq_factor = 4;  // kLlama3: wavelengths below original_context / this are kept

  double beta_fast = 32;  // kYarn: dimensions that turn more often over the original context: kept
  double beta_slow = 1;   // kYarn: dimensions that turn less often: divided
  bool truncate = true;   // kYarn: the ramp begins and ends at whole dimensions
  double attention_factor = 1;  // kYarn, kLongRope: multiplies cosines and sines

  std::vector<double> short_factors, long_factors;  // kLongRope: [rotary_dim / 2]

  bool operator==(const RotaryScaling&) const = default;
};

// A factor on queries, 1 + growth * log(1 + floor((position + first) / tokens)). It keeps attention
// as sharp over a long text (Scalable-Softmax, arXiv 2501.19399; Llama 4, Ministral 3).
struct QueryTemperature {
  double growth = 0;  // 0: none
  int64_t tokens = 1;
  int64_t first = 0;  // the number of the first position

  float At(int64_t position) const;
  bool operator==(const QueryTemperature&) const = default;
};

struct RotarySpec {
  int64_t rotary_dim = 0;  // leading dimensions of a head that rotate, even; 0: none
  // The pairs that turn, from the first on; all others stand still. None: all turn. The frequencies
  // are those of all pairs ("proportional" rotation, Gemma 4).
  std::optional<int64_t> turning_pairs = {};
  double theta = 10000;
  RotaryScaling scaling;
  QueryTemperature temperature;  // of the queries with this rotation

  bool operator==(const RotarySpec&) const = default;
};

// Whether the frequencies depend on the context (RotaryEncoding).
bool DependsOnContext(const RotarySpec& spec);

class RotaryEncoding {
 public:
  // context: the most tokens that the sequence will hold. kDynamic and kLongRope depend on it. Base
  // or factors are settled once for a sequence. No cached key therefore ever needs another
  // rotation, and the chunks of a prompt do not matter. At context <= original_context kDynamic is
  // the plain encoding, and kLongRope has its short factors.
  RotaryEncoding(const RotarySpec& spec, int64_t context);

  // Dimensions of a head that rotate; pairs are (i, i + rotary_dim / 2).
  int64_t rotary_dim() const { return 2 * static_cast<int64_t>(inverse_frequencies_.size()); }
  const QueryTemperature& temperature() const { return temperature_; }

  // Row i: the angles of position first + i. cos, sin [n, rotary_dim / 2].
  void Fill(int64_t first, MatrixView<float> cos, MatrixView<float> sin) const;
  // Row i: the mean over `tokens` positions from first + i * tokens on. Pairs that rotate fast in
  // them leave little.
  void FillMeans(int64_t first, int64_t tokens, MatrixView<float> cos, MatrixView<float> sin) const;

 private:
  std::vector<double> inverse_frequencies_;  // [rotary_dim / 2], radians per token
  double magnitude_;                         // of cosines and sines
  QueryTemperature temperature_;
};

}  // namespace godwit
