// A layer that predicts tokens changes the time that a text takes, and nothing else. Policies,
// storages, chunks and other sources meet it in models of latent, grouped and recurrent layers.

#include <gtest/gtest.h>

#include <optional>

#include "tests/laws/prediction_laws.h"
#include "tests/mtp_model.h"

namespace godwit::mtp_laws_test {
namespace {

using prediction_laws::Combined;

const std::vector<MtpGolden> kFamilies = MtpGoldens();

class MtpLaws : public prediction_laws::PredictionLaws {
 protected:
  static std::unique_ptr<Decoder> Load(const std::filesystem::path& folder,
                                       std::optional<DType> weights, bool predicts) {
    ThreadPool pool(1);
    DecoderSpec spec = DescribeModel(HfConfig::Load(folder / "config.json"));
    if (predicts) RequestPrediction(spec);
    return LoadDecoder(spec, *OpenWeights(folder), pool, {}, weights);
  }
};

TEST_P(MtpLaws, KeepsTheText) {
  const MtpGolden& family = kFamilies[GetParam()[0]];
  WriteAgreeingModel(family, temp_.path() / "agrees");
  WriteMtpGolden(family, temp_.path() / "golden");
  for (const bool agrees : {true, false}) {
    const auto folder = temp_.path() / (agrees ? "agrees" : "golden");
    const auto plain = Load(folder, weights(), false), drafting = Load(folder, weights(), true);
    std::vector<float> state;  // any
    for (int64_t i = 0; i < plain->hidden_size(); ++i) state.push_back(static_cast<float>(i % 7));
    ExpectSameText(*plain, *drafting, "mtp", agrees, state);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, MtpLaws,
                         testing::ValuesIn(prediction_laws::PairsOf(kFamilies.size())),
                         [](const testing::TestParamInfo<Combined>& info) {
                           return prediction_laws::NameOf(kFamilies[info.param[0]].family,
                                                          info.param);
                         });

}  // namespace
}  // namespace godwit::mtp_laws_test
