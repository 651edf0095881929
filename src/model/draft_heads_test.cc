#include "model/draft_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/rng.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "kernels/dispatch.h"
#include "model/loader.h"
#include "model/model_test_support.h"

namespace godwit::draft_heads_test {
namespace {

using testing::HasSubstr;

constexpr int64_t kHidden = 16, kVocab = 11;

// All values are exact in bf16.
HeadParameters Random(int64_t heads, int64_t hidden = kHidden, int64_t vocab = kVocab,
                      bool independent = false) {
  HeadParameters parameters(heads, hidden, vocab, independent);
  for (size_t i = 0; i < parameters.values().size(); ++i) {
    const double uniform = Uniform(3, 0, static_cast<int64_t>(i), 0);
    parameters.values()[i] = static_cast<float>(std::floor(uniform * 64) / 64 - 0.25);
  }
  return parameters;
}

class DraftHeadsTest : public testing::Test {
 protected:
  HeadParameters Read(const std::string& bytes) {
    std::ofstream(file_, std::ios::binary) << bytes;
    return ReadDraftHeads(file_, kHidden, kVocab, 5);
  }
  TempFolder folder_;
  std::filesystem::path file_ = folder_.path() / DraftHeads::kFileName;
};

TEST_F(DraftHeadsTest, AFileHoldsThem) {
  const HeadParameters written = Random(3);
  const HeadParameters read = Read(DraftHeadsFile(written, 5));
  EXPECT_EQ(read.heads(), 3);
  EXPECT_EQ(read.vocab(), kVocab);
  EXPECT_FALSE(read.independent());
  EXPECT_TRUE(std::ranges::equal(read.values(), written.values()));
  EXPECT_TRUE(Read(DraftHeadsFile(Random(3, kHidden, kVocab, true), 5)).independent());
}

TEST_F(DraftHeadsTest, RefusesAnUnknownKind) {
  std::string bytes = DraftHeadsFile(Random(1, kHidden, kVocab, true), 5);
  bytes.replace(bytes.find("\"true\""), 6, "\"half\"");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Read(bytes); }),
              HasSubstr("independent: expected true or no such entry, found \"half\""));
}

TEST_F(DraftHeadsTest, RefusesThoseOfAnotherModel) {
  const auto refused = [&](const HeadParameters& parameters, uint64_t digest) {
    const std::string bytes = DraftHeadsFile(parameters, digest);
    return ErrorOf([&] { Read(bytes); });
  };
  EXPECT_THAT(refused(Random(3), 6).what(), HasSubstr("of another model"));
  EXPECT_THAT(refused(Random(3, kHidden, 64), 5).what(), HasSubstr("of another model"));
  EXPECT_THAT(refused(Random(3, kHidden, 10), 5).what(), HasSubstr("of another model"));
  EXPECT_THAT(refused(Random(3, 32), 5).what(), HasSubstr("expected floats [16], found"));
  EXPECT_THAT(refused(Random(9), 5).what(), HasSubstr("expected draft heads of"));
  HeadParameters broken = Random(2);
  broken.Matrix(1)[7] = NAN;
  EXPECT_THAT(refused(broken, 5).what(), HasSubstr("heads.1.linear.weight holds NaN"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Read("nothing of the kind"); }),
              HasSubstr(DraftHeads::kFileName));
  std::filesystem::remove(file_);
  ErrorOf(ErrorKind::kIo, [&] { ReadDraftHeads(file_, kHidden, kVocab, 5); });
}

TEST_F(DraftHeadsTest, ManyStatesHaveTheBitsOfEachAlone) {
  constexpr int64_t kStates = 5, kHeads = 2;
  ThreadPool pool(2);
  Workspace workspace;
  const DecoderSpec spec = SmallLlama();
  for (const auto& isa : kernels::AllIsas()) {
    if (!isa.supported()) continue;
    const Exec exec{.pool = pool, .kernels = *isa.table, .workspace = workspace};
    for (const DType storage : {DType::kF32, DType::kBF16, DType::kI8}) {
      const auto decoder = LoadDecoder(spec, FakeWeights(spec, DType::kF32), pool, {}, storage);
      const DraftHeads heads(pool, Random(kHeads), storage);
      Workspace::Scope scope(workspace);
      const auto states = workspace.Matrix<float>(kStates, kHidden);
      for (int64_t i = 0; i < kStates * kHidden; ++i) {
        states.data[i] = static_cast<float>(Uniform(4, 0, i, 0) - 0.5);
      }
      const auto together = workspace.Matrix<float>(kHeads * kStates, kVocab);
      heads.ComputeLogits(exec, *decoder, states, together);
      const auto alone = workspace.Matrix<float>(kHeads, kVocab);
      for (int64_t i = 0; i < kStates; ++i) {
        heads.ComputeLogits(exec, *decoder, states.Rows(i, i + 1), alone);
        for (int64_t head = 0; head < kHeads; ++head) {
          EXPECT_TRUE(std::ranges::equal(together.RowSpan(head * kStates + i), alone.RowSpan(head)))
              << isa.name << " " << Name(storage) << " " << i;
        }
      }
    }
  }
}

class DraftHeadsFormulaTest : public testing::TestWithParam<bool> {};

// The formula of the heads in double.
TEST_P(DraftHeadsFormulaTest, DraftsFollowTheFormula) {
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  const DecoderSpec spec = SmallLlama();
  const auto decoder = LoadDecoder(spec, FakeWeights(spec, DType::kF32), pool, {});
  HeadParameters parameters = Random(2, kHidden, kVocab, /*independent=*/GetParam());
  const DraftHeads heads(pool, parameters, DType::kF32);

  std::vector<float> state(kHidden);
  for (size_t i = 0; i < state.size(); ++i)
    state[i] = static_cast<float>(std::cos(3.0 * static_cast<double>(i)));
  Workspace::Scope scope(workspace);
  const auto logits = workspace.Matrix<float>(2, kVocab);
  heads.ComputeLogits(exec, *decoder, {state.data(), 1, kHidden, kHidden}, logits);

  const auto norm = [&](const std::vector<double>& x, std::span<const float> weight) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    std::vector<double> out;
    for (size_t i = 0; i < x.size(); ++i) {
      out.push_back(x[i] / std::sqrt(squares / kHidden + 1e-5) * static_cast<double>(weight[i]));
    }
    return out;
  };
  std::vector<double> x(state.begin(), state.end());
  const auto normed = workspace.Matrix<float>(1, kHidden);
  const auto expected = workspace.Matrix<float>(1, kVocab);
  for (int64_t head = 0; head < 2; ++head) {
    if (parameters.independent()) x.assign(state.begin(), state.end());
    const auto in = norm(x, parameters.InputNorm(head));
    const auto matrix = parameters.Matrix(head);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t k = 0; k < x.size(); ++k) {
        x[i] += static_cast<double>(matrix[i * x.size() + k]) * in[k];
      }
    }
    const auto out = norm(x, parameters.OutputNorm(head));
    std::ranges::copy(out, normed.Row(0));
    decoder->NormedLogits(exec, normed, expected);
    for (int64_t t = 0; t < kVocab; ++t) {
      EXPECT_NEAR(logits.Row(head)[t], expected.Row(0)[t], 1e-4) << head << " " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, DraftHeadsFormulaTest, testing::Bool());

}  // namespace
}  // namespace godwit::draft_heads_test
