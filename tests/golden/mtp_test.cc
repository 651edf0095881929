// Layers that predict tokens against their definition in float64 (tools/make_mtp_goldens.py), and
// the model beside them.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "model/gguf_model.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"
#include "tests/mtp_model.h"
#include "tests/on_isas.h"

namespace godwit::mtp_test {
namespace {

struct MtpReference {
  Reference text;
  std::vector<int32_t> chain_ids;
  std::vector<float> chain_logits;
};

// A model's folder, or its GGUF file (tools/make_mtp_gguf_goldens.py).
struct StoredModel {
  MtpGolden golden;
  bool gguf = false;

  friend std::ostream& operator<<(std::ostream& out, const StoredModel& stored) {
    return out << stored.golden << (stored.gguf ? "_gguf" : "");
  }
};

std::vector<StoredModel> StoredModels() {
  std::vector<StoredModel> all;
  for (const MtpGolden& golden : MtpGoldens()) all.push_back({golden, false});
  for (const char* family : {"glm4_moe", "qwen3_next"}) all.push_back({{family, ""}, true});
  return all;
}

MtpReference ReadMtpReference(const StoredModel& stored) {
  const auto beside = [&](const char* ending) {
    return GoldenRoot() / "mtp" / (stored.golden.family + ending);
  };
  // A file with the numbers of the folder has the folder's logits.
  const auto own = beside(".gguf.golden.safetensors");
  const auto path =
      stored.gguf && std::filesystem::exists(own) ? own : beside(".golden.safetensors");
  MtpReference reference{.text = ReadReference(path), .chain_ids = {}, .chain_logits = {}};
  const MappedFile file(path);
  const auto contents = ParseSafetensors(file.Span(), path.string());
  for (const TensorInfo& tensor : contents.tensors) {
    if (tensor.name == "chain_ids") reference.chain_ids = Elements<int32_t, int64_t>(tensor);
    if (tensor.name == "chain_logits") reference.chain_logits = Elements<float, float>(tensor);
  }
  return reference;
}

class MtpGoldenTest : public TestOnIsas<StoredModel> {
 protected:
  MtpGoldenTest() {
    if (one().gguf) {
      const GgufModel model = OpenGgufModel(GoldenRoot() / "mtp" / (one().golden.family + ".gguf"));
      Load(HfConfig::Parse(model.config, "config.json"), *model.weights);
    } else {
      WriteMtpGolden(one().golden, temp_.path() / "model");
      Load(HfConfig::Load(temp_.path() / "model" / "config.json"),
           *OpenWeights(temp_.path() / "model"));
    }
  }

  void Load(const HfConfig& config, const WeightSource& weights) {
    DecoderSpec spec = DescribeModel(config);
    plain_.emplace(spec, weights, DType::kF32);
    RequestPrediction(spec);
    EXPECT_TRUE(HasPrediction(spec, weights));
    runner_.emplace(spec, weights, DType::kF32);
  }

  // Reads the text in chunks. Behind each it predicts from the reference's tokens. Returns the
  // logits of the prediction behind each token [ids, vocab], zeros where no chunk ended. The
  // model's own go to model_logits.
  std::vector<float> Predict(const std::vector<int32_t>& ids, int64_t chunk, const RunOptions& run,
                             std::vector<float>* model_logits = nullptr) {
    const Decoder& model = runner_->decoder();
    const int64_t vocab = model.vocab_size(), n = std::ssize(ids);
    const auto text = runner_->NewText(run);
    std::vector<float> predicted(n * vocab);
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
                      std::ranges::copy(logits, predicted.begin() + next * vocab);
                      return std::nullopt;
                    });
      EXPECT_EQ(text->length(), next);
    }
    return predicted;
  }

  Exec exec() {
    return {.pool = pool_, .kernels = *kernels::SelectIsa(isa()).table, .workspace = workspace_};
  }

  TempFolder temp_;
  ThreadPool pool_{2};
  Workspace workspace_;
  std::optional<ModelRunner> plain_, runner_;
};

TEST_P(MtpGoldenTest, PredictsAsItsDefinition) {
  const MtpReference reference = ReadMtpReference(one());
  const auto& ids = reference.text.ids;
  const int64_t vocab = runner_->decoder().vocab_size();
  std::vector<float> logits = Predict(ids, 1, {});
  std::copy_n(reference.text.logits.begin(), vocab, logits.begin());  // nothing lies before
  EXPECT_LE(Compare(logits, reference.text.logits).max, kTolerance);
}

TEST_P(MtpGoldenTest, PredictsFromItsOwnPredictions) {
  const MtpReference reference = ReadMtpReference(one());
  const auto& ids = reference.text.ids;
  const Decoder& model = runner_->decoder();
  const auto text = runner_->NewText({});
  Workspace::Scope scope(workspace_);
  const auto hidden = workspace_.Matrix<float>(std::ssize(ids), model.hidden_size());
  const Segment segment{ids, text.get()};
  model.Forward(exec(), {&segment, 1}, hidden);
  for (int repeat = 0; repeat < 2; ++repeat) {  // the text stays as it is
    std::vector<float> chain;
    std::vector<int32_t> tokens{reference.chain_ids[0]};
    model.Predict(exec(), *text, tokens[0], hidden.RowSpan(hidden.rows - 1),
                  std::ssize(reference.chain_ids),
                  [&](std::span<const float> logits) -> std::optional<int32_t> {
                    chain.insert(chain.end(), logits.begin(), logits.end());
                    const auto likeliest = std::ranges::max_element(logits) - logits.begin();
                    return tokens.emplace_back(static_cast<int32_t>(likeliest));
                  });
    tokens.pop_back();
    EXPECT_EQ(tokens, reference.chain_ids);
    EXPECT_LE(Compare(chain, reference.chain_logits).max, kTolerance);
  }
}

// The bits of predictions do not depend on chunks, and those of the model not on predictions.
TEST_P(MtpGoldenTest, LeavesTheModelAlone) {
  const auto ids = ReadMtpReference(one()).text.ids;
  const auto vocab = static_cast<size_t>(runner_->decoder().vocab_size());
  for (const RunOptions& run : {RunOptions{}, RunOptions{.kv = "sinks:4+28"},
                                RunOptions{.kv_type = DType::kI8, .int8_products = true}}) {
    RunOptions plain = run;
    plain.isa = isa();
    const auto expected = plain_->Logits(ids, plain);
    const auto one_by_one = Predict(ids, 1, run);
    for (const int64_t chunk : {1, 7, 64}) {
      std::vector<float> logits;
      const auto predicted = Predict(ids, chunk, run, &logits);
      EXPECT_EQ(logits, expected) << run.kv << " in chunks of " << chunk;
      for (auto at = static_cast<size_t>(chunk); at < ids.size(); at += chunk) {
        const auto row = [&](const std::vector<float>& of) {
          return std::vector<float>(of.begin() + at * vocab, of.begin() + (at + 1) * vocab);
        };
        EXPECT_EQ(row(predicted), row(one_by_one)) << run.kv << " behind " << at;
        EXPECT_NE(row(predicted), std::vector<float>(vocab));
      }
    }
  }
}

const auto NameOf = [](const StoredModel& stored) {
  return stored.golden.family + (stored.gguf ? "_gguf" : "");
};

GODWIT_ON_ISAS(MtpGoldenTest, StoredModels(), NameOf, kernels::BestAndScalar());

}  // namespace
}  // namespace godwit::mtp_test
