// Elementwise kernels: activations, the gated unit, sums, and rounding to bf16. A block computes a
// piece of a row.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/rows_out.h"

namespace godwit::cuda {

// The functions of ops::Activation.
enum class ActivationKind : int32_t { kNone, kSilu, kGeluErf, kGeluTanh, kRelu, kSquaredRelu };

// Columns that a block computes.
inline constexpr int64_t kPieceColumns = 1024;

GODWIT_DEVICE float Sigmoid(float z) { return 1.0f / (1.0f + std::exp(-z)); }

GODWIT_DEVICE float Activated(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kSilu:
      return x * Sigmoid(x);
    case ActivationKind::kGeluErf:
      return x * (0.5f * std::erfc(-x * 0.70710678118654752440f));
    case ActivationKind::kGeluTanh:
      return x * Sigmoid(1.5957691216057307118f * (x + 0.044715f * x * x * x));
    case ActivationKind::kRelu:
      return x < 0 ? 0.0f : x;
    case ActivationKind::kSquaredRelu:
      return x < 0 ? 0.0f : x * x;
  }
  return x;
}

// out = activation(x), or activation(x) * up. Without an activation it rounds rows to bf16.
struct Activate {
  static constexpr const char* kName = "Activate";
  static constexpr int kThreads = 256;
  struct Args {
    ActivationKind kind;
    const float* x;   // [rows, cols]
    const float* up;  // [rows, cols], or null: there is no gate
    int64_t stride;   // of both
    int64_t cols;
    RowsOut out;  // may be x
  };
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    block.ForThreads([&](int thread) {
      const int64_t begin = block.y() * kPieceColumns, at = block.x() * args.stride;
      const int64_t end = begin + kPieceColumns < args.cols ? begin + kPieceColumns : args.cols;
      for (int64_t i = begin + thread; i < end; i += kThreads) {
        const float y = Activated(args.kind, args.x[at + i]);
        args.out.Set(block.x(), i, args.cols, args.up != nullptr ? y * args.up[at + i] : y);
      }
    });
  }
};

// x += y, or y with each row times the sigmoid of its gate.
struct Add {
  static constexpr const char* kName = "Add";
  static constexpr int kThreads = 256;
  struct Args {
    const float* y;  // [rows, cols]
    int64_t y_stride;
    const float* gates;  // [rows], or null
    int64_t gate_stride;
    float* x;  // [rows, cols]
    int64_t x_stride;
    int64_t cols;
  };
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    block.ForThreads([&](int thread) {
      const float* const y = args.y + block.x() * args.y_stride;
      float* const x = args.x + block.x() * args.x_stride;
      const int64_t begin = block.y() * kPieceColumns;
      const int64_t end = begin + kPieceColumns < args.cols ? begin + kPieceColumns : args.cols;
      if (args.gates == nullptr) {
        for (int64_t i = begin + thread; i < end; i += kThreads) x[i] += y[i];
        return;
      }
      const float share = Sigmoid(args.gates[block.x() * args.gate_stride]);
      for (int64_t i = begin + thread; i < end; i += kThreads) x[i] += share * y[i];
    });
  }
};

}  // namespace godwit::cuda
