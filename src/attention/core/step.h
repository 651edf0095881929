// AttentionStep: the attention of the rows of several texts, from position encoding to the softmax,
// and the states that recurrent layers read and write.
//
// A model that has the tokens of a step makes an AttentionStep. It hands it q, k and v of every
// layer with attention in order, *before* position encoding, and ends it. A step that is not ended
// did not happen. Every text is then as the last End left it, whatever went wrong in between, and
// the step's memory is given back.
#pragma once

#include <cstdint>
#include <span>

#include "attention/core/text_cache.h"
#include "ops/exec.h"
#include "ops/gpu/gpu_layer.h"
#include "tensor/view.h"

namespace godwit {

// The next tokens of one text. Several segments are a batch; they do not see each other.
struct Segment {
  std::span<const int32_t> tokens;
  TextCache* text;  // borrowed
  Phase phase = Phase::kPrompt;
  // The tree of draft tokens; empty: a chain, each token follows the one before it. Each entry is
  // the row of the token before, within the segment and earlier in it, or -1 for the text itself.
  // TextCache::Accept keeps one path. Every path gets the bits of a chain: its tokens lie at their
  // positions, in its own copy of the text's last page. Rows that follow their parent directly
  // share a copy, so list a tree depth first.
  std::span<const int32_t> parents = {};
};

// Rows of one layer for the tokens of a step, segment after segment.
struct AttentionInput {
  // [tokens, heads * head_dim], or no rows: k and v are cached and nothing attends.
  MatrixView<const float> q;
  // [tokens, kv_heads * head_dim], or no rows: keys and values of these tokens were cached by an
  // earlier call for the layer, and further queries attend to them.
  MatrixView<const float> k;
  // [tokens, kv_heads * head_dim], or none where values lie in keys (AttentionShape::values_from).
  MatrixView<const float> v;
  // The number of the other layer that attends (RunQueries::reader); 0: the layer itself, with k
  // and v.
  int64_t reader = 0;
  // [heads] constants, or empty: see ops::Attention.
  std::span<const float> sink_logits = {};
  // The mean of all keys [kv_heads * head_dim], as far as the model tells, such as the bias that
  // makes them; or empty. With AttentionGeometry::key_means.
  std::span<const float> key_means = {};
  // [head_dim] factors on the dimensions of rotated queries, or empty.
  std::span<const float> query_gains = {};
  // The index of AttentionGeometry::key_index, before position encoding, which is that of q and k.
  // No rows in a layer without index keys of its own.
  MatrixView<const float> index_q = {};        // [tokens, index heads * index dim]
  MatrixView<const float> index_k = {};        // [tokens, index dim]
  MatrixView<const float> index_weights = {};  // [tokens, index heads]
};

class AttentionStep {
 public:
  // Reserves memory in every text and plans what its rows see. Throws Error and changes nothing if
  // it cannot: kInput when a text would outgrow its limit_tokens(), kMemory when a cache cannot
  // grow. The texts, one at least, are different ones of one model; their spans of `segments` must
  // outlive this. Takes scratch memory from the workspace for as long as it lives.
  AttentionStep(const Exec& exec, std::span<const Segment> segments);
  ~AttentionStep();
  AttentionStep(const AttentionStep&) = delete;
  AttentionStep& operator=(const AttentionStep&) = delete;

  // Lets a GPU attend for rows whose policy has it so (AttentionPolicy::on_gpu_until, near_on_gpu).
  // Without one, such rows are refused. gpu: outlives the calls of Attend.
  void LetAttend(ops::GpuStep& gpu) { gpu_ = &gpu; }

  // The position of the row in its text.
  int64_t PositionOf(int64_t row) const;

  // Whether some row sees fewer keys than those up to itself, by AttentionGeometry::key_index. Else
  // nothing reads index_q and index_weights.
  bool Chooses() const { return chosen_parts_.rows > 0; }

  // Caches k and v of `layer`, counted among those with keys of their own, and attends: out
  // [tokens, heads * value_dim], or no rows as q. On all cores, all texts at once; rows that a GPU
  // attends for come there, one text after the other. A GPU attends to near keys at the same time
  // as the cores to others. Layers that predict come behind the others,
  // and only cache here. Throws Error(kUnsupported) for rows that lack their GPU.
  void Attend(int64_t layer, const AttentionInput& input, MatrixView<float> out);

  // The rows of all texts as a recurrent layer sees them, in order. layer: among recurrent ones. In
  // the workspace, for as long as its Scope lasts.
  std::span<const ops::StatePiece> States(int64_t layer) const;

  // Keeps the model's outputs [tokens, size] of the rows, as TextCache::last_output() has them.
  void KeepOutputs(MatrixView<const float> outputs);

  void End();

 private:
  // Consecutive rows of one text, and the cache that holds their path.
  struct Run {
    TextCache* text;
    const KvCache* cache;
    RowRun rows;
    bool chain;  // the only run of its segment
    KvReads reads;
  };

  void Plan(const Segment& segment, int64_t first_row);
  void ReserveChoice();
  std::span<const int64_t> Ancestors(const Segment& segment, int64_t first_row, int64_t row);
  const Run& RunWithRow(int64_t row) const;
  void WriteKeys(int64_t layer, const AttentionInput& input);
  // Chooses the keys that rows see in this and the next layers, by the layer's index.
  void ChooseByIndex(int64_t layer, const AttentionInput& input);
  void RotateValuesBack(int64_t layer, MatrixView<float> out) const;
  int64_t RowsTogether(const Run& run, int64_t layer) const;
  int64_t RowsOnGpu(const Run& run) const;
  // Where rows find their keys.
  enum class Place { kHere, kGpu, kBoth };
  // Calls use(begin, rows, place) for parts of the run that attend together, in order.
  template <class Use>
  void ForParts(const Run& run, int64_t layer, const Use& use) const;
  void RequireGpu(bool contexts, bool near) const;
  ops::AttentionRows SourcesOf(Run& run, const RowRun& rows, int64_t layer,
                               const AttentionInput& input);
  void ReleaseReserved() noexcept;

  Exec exec_;
  const AttentionGeometry& geometry_;
  std::span<Run> runs_;
  size_t run_count_ = 0;
  int64_t rows_ = 0;
  int64_t state_pieces_ = 0;
  // With AttentionGeometry::key_index: the keys chosen for each row [rows], in memory of
  // chosen_parts_. Empty for a row that sees all.
  std::span<std::span<const ops::TilePart>> chosen_;
  MatrixView<ops::TilePart> chosen_parts_;
  ops::GpuStep* gpu_ = nullptr;
  bool ended_ = false;
};

}  // namespace godwit
