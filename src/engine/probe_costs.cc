#include "engine/probe_costs.h"

#include <algorithm>
#include <vector>

#include "attention/core/reuse_text.h"
#include "attention/core/step.h"
#include "attention/core/step_work.h"
#include "base/error.h"
#include "base/rng.h"

namespace godwit {
namespace {

constexpr int64_t kFewRows = 64;   // of the first chunks, which tell how long others may be
constexpr double kChunkMs = 2000;  // that a chunk may take
constexpr int kAnswerSteps = 4;
constexpr int64_t kShallowest = 1024, kDeepest = 65'536;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of caches with drawn keys

// Lets the text grow to `length` tokens whose keys and values are drawn. Times do not depend on
// them, so all layers and all steps get the same.
void Fill(TextCache& text, int64_t length, int64_t chunk_tokens, RunPart run_part) {
  if (text.length() >= length) return;
  const AttentionGeometry& geometry = text.geometry();
  const int64_t index_cols = geometry.key_index ? geometry.key_index->head_dim : 0;
  int64_t most_cols = index_cols;
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    const ops::AttentionShape& shape = geometry.ShapeOf(layer);
    most_cols = std::max(most_cols, shape.kv_heads * shape.head_dim);
  }
  std::vector<float> drawn(static_cast<size_t>(chunk_tokens * most_cols));
  for (size_t i = 0; i < drawn.size(); ++i) {
    const uint64_t bits = RandomBits(/*seed=*/3, /*sequence=*/0, static_cast<int64_t>(i), 0);
    drawn[i] = static_cast<float>(bits >> 40) * 0x1p-23f - 1;  // -1 to 1
  }
  const auto fill = [&](const Exec& exec) {
    const int64_t rows = std::min(length - text.length(), chunk_tokens);
    const std::vector<int32_t> tokens(static_cast<size_t>(rows));  // only their number matters
    const Segment segment{.tokens = tokens, .text = &text};
    AttentionStep step(exec, {&segment, 1});
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      const ops::AttentionShape& shape = geometry.ShapeOf(layer);
      const auto view = [&](int64_t cols) {
        return MatrixView<const float>{drawn.data(), cols == 0 ? 0 : rows, cols, most_cols};
      };
      AttentionInput input{.q = {},
                           .k = view(shape.kv_heads * shape.head_dim),
                           .v = view(shape.values_from ? 0 : shape.kv_heads * shape.value_dim())};
      if (geometry.key_index && geometry.has_index[static_cast<size_t>(layer)]) {
        input.index_k = view(index_cols);
      }
      step.Attend(layer, input, {});
    }
    step.End();
  };
  while (text.length() < length) run_part(fill);
}

class Probe {
 public:
  Probe(const LanguageModel& model, const TextPlan& plan, std::span<const int32_t> prompt,
        NowMs now_ms, RunPart run_part, FunctionRef<void(const StepWork& work, double ms)> record)
      : model_(model),
        plan_(plan),
        prompt_(prompt),
        now_ms_(now_ms),
        run_part_(run_part),
        record_(record) {}

  // Begins a text with `depth` drawn tokens, of which those before `question` are the context.
  void Begin(int64_t depth, int64_t question, int64_t chunk_tokens) {
    text_ = plan_.NewText();
    question_ = question;
    text_->SetQuestion(question, question);
    Fill(*text_, depth, chunk_tokens, run_part_);
  }

  // Reads so many tokens in a step; returns the time that it took.
  double Step(int64_t rows) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < rows; ++i) {
      tokens.push_back(prompt_[static_cast<size_t>((text_->length() + i) % std::ssize(prompt_))]);
    }
    const int64_t begin = text_->length();
    const Segment segment{.tokens = tokens,
                          .text = text_.get(),
                          .phase = begin < question_ ? Phase::kPrompt : Phase::kDecode};
    double ms = 0;
    run_part_([&](const Exec& exec) {
      const double began_ms = now_ms_();
      Workspace::Scope scope(exec.workspace);
      const auto hidden = exec.workspace.Matrix<float>(rows, model_.hidden_size());
      model_.Forward(exec, {&segment, 1}, hidden);
      if (rows == 1) {
        model_.Logits(exec, hidden, exec.workspace.Matrix<float>(1, model_.vocab_size()));
      }
      ms = now_ms_() - began_ms;
    });
    record_(
        WorkOf(text_->policy(), text_->geometry(), text_->cache().layout(), begin, rows, question_),
        ms);
    return ms;
  }

  void Answer() {
    for (int i = 0; i < kAnswerSteps; ++i) Step(1);
  }

 private:
  const LanguageModel& model_;
  const TextPlan& plan_;
  std::span<const int32_t> prompt_;
  NowMs now_ms_;
  RunPart run_part_;
  FunctionRef<void(const StepWork& work, double ms)> record_;
  std::unique_ptr<TextCache> text_;
  int64_t question_ = 0;
};

}  // namespace

int64_t ProbeDepth(const TextPlan& plan, int64_t prompt_tokens, int64_t chunk_tokens) {
  const int64_t behind = 2 * chunk_tokens + kAnswerSteps;
  const KvBudget& budget = plan.pool().budget();
  const int64_t free = std::min(kMostBytes, budget.free_bytes() / 2);
  int64_t depth = std::clamp(prompt_tokens / 2, kShallowest, kDeepest);
  depth = std::min(depth, plan.limit_tokens() - behind);
  while (depth > 0 && plan.KvBytes(depth + behind) > free) depth /= 2;
  return std::max<int64_t>(0, depth);
}

void ProbeCosts(const LanguageModel& model, const TextPlan& plan, std::span<const int32_t> prompt,
                int64_t chunk_tokens, int64_t depth, NowMs now_ms, RunPart run_part,
                FunctionRef<void(const StepWork& work, double ms)> record) {
  try {
    Probe probe(model, plan, prompt, now_ms, run_part, record);
    const int64_t few = std::min(kFewRows, chunk_tokens);
    int64_t rows = chunk_tokens;
    probe.Begin(/*depth=*/0, /*question=*/2 * few, rows);
    probe.Step(few);
    const double row_ms = probe.Step(few) / static_cast<double>(few);
    probe.Answer();
    while (rows > few && static_cast<double>(rows) * row_ms > kChunkMs) rows = (rows + 1) / 2;
    for (const int64_t behind : {int64_t{0}, depth}) {
      if (behind == depth && depth < few) break;
      probe.Begin(behind, behind + 2 * rows, chunk_tokens);
      for (int i = 0; i < 2; ++i) probe.Step(rows);
      probe.Answer();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;  // what was measured counts
  }
}

void ProbeReuse(const TextPlan& plan, NowMs now_ms, RunPart run_part,
                FunctionRef<void(int64_t tokens, double ms)> record) {
  constexpr int kTimes = 3;  // the first finds caches cold, and does not count
  const int64_t tokens = std::min<int64_t>(512, plan.limit_tokens() / (kTimes + 2));
  if (tokens == 0) return;
  try {
    const auto from = plan.NewText(), to = plan.NewText();
    Fill(*from, tokens, tokens, run_part);
    Fill(*to, tokens / 2 + 1, tokens, run_part);
    for (int i = 0; i < kTimes; ++i) {
      double ms = 0;
      run_part([&](const Exec& exec) {
        const double began_ms = now_ms();
        ReuseTokens(exec, *from, /*begin=*/0, tokens, *to);
        ms = now_ms() - began_ms;
      });
      if (i > 0) record(tokens, ms);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
  }
}

}  // namespace godwit
