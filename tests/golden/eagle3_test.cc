// EAGLE-3 heads against their definition in float64 (tools/make_eagle3_goldens.py), and the model
// beside them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <utility>

#include "model/eagle3_folder.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"
#include "tests/on_isas.h"

namespace godwit::eagle3_test {
namespace {

struct Eagle3Golden {
  std::string name;
  std::string model;

  friend std::ostream& operator<<(std::ostream& out, const Eagle3Golden& golden) {
    return out << golden.name;
  }
};

const std::vector<Eagle3Golden> kGoldens = {
    {"llama", "llama/gqa"}, {"qwen3", "qwen3/layer_types"}, {"gpt_oss", "gpt_oss/new_config"}};

struct Eagle3Reference {
  std::vector<int32_t> ids, chain_ids;
  std::vector<float> logits, chain_logits;
  std::vector<int32_t> known;  // the model's tokens of the head's logits
};

Eagle3Reference ReadEagle3Reference(const Eagle3Golden& golden, int64_t vocab) {
  Eagle3Reference reference;
  const auto folder = GoldenRoot() / "eagle3" / golden.name;
  const auto path = folder / "golden.safetensors";
  const MappedFile file(path);
  const auto contents = ParseSafetensors(file.Span(), path.string());
  for (const TensorInfo& tensor : contents.tensors) {
    if (tensor.name == "input_ids") reference.ids = Elements<int32_t, int64_t>(tensor);
    if (tensor.name == "logits") reference.logits = Elements<float, float>(tensor);
    if (tensor.name == "chain_ids") reference.chain_ids = Elements<int32_t, int64_t>(tensor);
    if (tensor.name == "chain_logits") reference.chain_logits = Elements<float, float>(tensor);
  }
  const auto source = OpenWeights(folder);
  const TensorInfo* d2t = source->Find("d2t");
  if (d2t != nullptr) reference.known = Elements<int32_t, int64_t>(*d2t);
  if (d2t == nullptr) reference.known.resize(static_cast<size_t>(vocab));
  for (size_t i = 0; i < reference.known.size(); ++i) {
    reference.known[i] += static_cast<int32_t>(i);
  }
  return reference;
}

class Eagle3GoldenTest : public TestOnIsas<Eagle3Golden> {
 protected:
  Eagle3GoldenTest() {
    const auto model = GoldenRoot() / one().model;
    plain_.emplace(model, DType::kF32);
    auto decoder = LoadDecoder(DescribeModel(HfConfig::Load(model / "config.json")),
                               *OpenWeights(model), pool_, {}, DType::kF32);
    const Eagle3Folder head(GoldenRoot() / "eagle3" / one().name, decoder->spec());
    decoder->Take(head.Load(pool_, DType::kF32));
    runner_.emplace(std::move(decoder));
    reference_ = ReadEagle3Reference(one(), runner_->decoder().vocab_size());
  }

  // The logits of the tokens that the head knows. It knows no other.
  std::vector<float> Known(std::span<const float> logits) const {
    std::vector<float> known;
    for (const int32_t token : reference_.known) known.push_back(logits[token]);
    const auto others = std::ranges::count(logits, -INFINITY);
    EXPECT_EQ(others, std::ssize(logits) - std::ssize(known));
    return known;
  }

  // Reads the text in chunks. Behind each it predicts from the reference's tokens. Returns the
  // logits of the prediction behind each token [ids, known tokens], zeros where no chunk ended. The
  // model's own go to model_logits.
  std::vector<float> Predict(int64_t chunk, const RunOptions& run,
                             std::vector<float>* model_logits = nullptr) {
    const Decoder& model = runner_->decoder();
    const auto& ids = reference_.ids;
    const int64_t vocab = model.vocab_size(), n = std::ssize(ids);
    const auto width = std::ssize(reference_.known);
    const auto text = runner_->NewText(run);
    std::vector<float> predicted(n * width);
    for (int64_t begin = 0; begin < n; begin += chunk) {
      const int64_t rows = std::min(chunk, n - begin);
      Workspace::Scope scope(workspace_);
      const auto hidden = workspace_.Matrix<float>(rows, model.hidden_size());
      const Segment segment{std::span(ids).subspan(begin, rows), text.get()};
      model.Forward(exec(), {&segment, 1}, hidden);
      if (model_logits != nullptr) {
        const auto logits = workspace_.Matrix<float>(rows, vocab);
        model.Logits(exec(), hidden, logits);
        for (int64_t row = 0; row < rows; ++row) {
          const auto values = logits.RowSpan(row);
          model_logits->insert(model_logits->end(), values.begin(), values.end());
        }
      }
      const int64_t next = begin + rows;
      if (next == n) break;
      model.Predict(exec(), *text, ids[next], hidden.RowSpan(rows - 1), /*most=*/3,
                    [&](std::span<const float> logits) -> std::optional<int32_t> {
                      std::ranges::copy(Known(logits), predicted.begin() + next * width);
                      return std::nullopt;
                    });
      EXPECT_EQ(text->length(), next);
    }
    return predicted;
  }

  Exec exec() {
    return {.pool = pool_, .kernels = *kernels::SelectIsa(isa()).table, .workspace = workspace_};
  }

  ThreadPool pool_{2};
  Workspace workspace_;
  std::optional<ModelRunner> plain_, runner_;
  Eagle3Reference reference_;
};

TEST_P(Eagle3GoldenTest, PredictsAsItsDefinition) {
  EXPECT_LE(Compare(Predict(1, {}), reference_.logits).max, kTolerance);
}

TEST_P(Eagle3GoldenTest, PredictsFromItsOwnPredictions) {
  const auto& ids = reference_.ids;
  const Decoder& model = runner_->decoder();
  const auto text = runner_->NewText({});
  Workspace::Scope scope(workspace_);
  const auto hidden = workspace_.Matrix<float>(std::ssize(ids), model.hidden_size());
  const Segment segment{ids, text.get()};
  model.Forward(exec(), {&segment, 1}, hidden);
  for (int repeat = 0; repeat < 2; ++repeat) {  // the text stays as it is
    std::vector<float> chain;
    std::vector<int32_t> tokens{reference_.chain_ids[0]};
    model.Predict(exec(), *text, tokens[0], hidden.RowSpan(hidden.rows - 1),
                  std::ssize(reference_.chain_ids),
                  [&](std::span<const float> logits) -> std::optional<int32_t> {
                    const auto known = Known(logits);
                    chain.insert(chain.end(), known.begin(), known.end());
                    const auto likeliest = std::ranges::max_element(logits) - logits.begin();
                    return tokens.emplace_back(static_cast<int32_t>(likeliest));
                  });
    tokens.pop_back();
    EXPECT_EQ(tokens, reference_.chain_ids);
    EXPECT_LE(Compare(chain, reference_.chain_logits).max, kTolerance);
  }
}

// The bits of predictions do not depend on chunks, and those of the model not on predictions.
TEST_P(Eagle3GoldenTest, LeavesTheModelAlone) {
  const size_t width = reference_.known.size();
  for (const RunOptions& run : {RunOptions{}, RunOptions{.kv = "sinks:4+28"},
                                RunOptions{.kv_type = DType::kI8, .int8_products = true}}) {
    RunOptions plain = run;
    plain.isa = isa();
    const auto expected = plain_->Logits(reference_.ids, plain);
    const auto one_by_one = Predict(1, run);
    for (const int64_t chunk : {1, 7, 64}) {
      std::vector<float> logits;
      const auto predicted = Predict(chunk, run, &logits);
      EXPECT_EQ(logits, expected) << run.kv << " in chunks of " << chunk;
      for (auto at = static_cast<size_t>(chunk); at < reference_.ids.size(); at += chunk) {
        const auto row = [&](const std::vector<float>& of) {
          return std::vector<float>(of.begin() + at * width, of.begin() + (at + 1) * width);
        };
        EXPECT_EQ(row(predicted), row(one_by_one)) << run.kv << " behind " << at;
        EXPECT_NE(row(predicted), std::vector<float>(width));
      }
    }
  }
}

// Weights of fewer bits predict about the same.
TEST_P(Eagle3GoldenTest, PredictsWithNarrowWeights) {
  const auto model = GoldenRoot() / one().model;
  const int64_t wide_bytes = runner_->decoder().prediction_bytes();
  const Eagle3Folder head(GoldenRoot() / "eagle3" / one().name, plain_->spec());
  for (const DType storage : {DType::kBF16, DType::kI8}) {
    auto decoder = LoadDecoder(plain_->spec(), *OpenWeights(model), pool_, {}, DType::kF32);
    decoder->Take(head.Load(pool_, storage));
    EXPECT_EQ(decoder->prediction_bytes(), head.LoadedBytes(storage));
    EXPECT_LT(decoder->prediction_bytes(), wide_bytes);
    runner_.emplace(std::move(decoder));
    const double error = Compare(Predict(1, {}), reference_.logits).max;
    EXPECT_LE(error, 0.2) << Name(storage);
    EXPECT_GT(error, kTolerance) << Name(storage);
  }
}

const auto NameOf = [](const Eagle3Golden& golden) { return golden.name; };

GODWIT_ON_ISAS(Eagle3GoldenTest, kGoldens, NameOf, kernels::BestAndScalar());

}  // namespace
}  // namespace godwit::eagle3_test
