// An EAGLE-3 head changes the time that a text takes, and nothing else. Policies, storages, chunks
// and other sources meet it beside models of full, windowed and recurrent layers.

#include <gtest/gtest.h>

#include <optional>

#include "model/eagle3_folder.h"
#include "tests/eagle3_model.h"
#include "tests/laws/prediction_laws.h"

namespace godwit::eagle3_laws_test {
namespace {

using prediction_laws::Combined;

const std::vector<std::string> kModels = {"llama/gqa",          "gpt_oss/new_config",
                                          "qwen3/layer_types",  "qwen2/untied_mha",
                                          "qwen3_next/experts", "bamba/listed"};

class Eagle3Laws : public prediction_laws::PredictionLaws {
 protected:
  // head: its folder; none: the model alone.
  std::unique_ptr<Decoder> Load(const std::filesystem::path& folder,
                                std::optional<std::filesystem::path> head = {}) {
    auto decoder = LoadDecoder(DescribeModel(HfConfig::Load(folder / "config.json")),
                               *OpenWeights(folder), pool_, {}, weights());
    if (head) decoder->Take(Eagle3Folder(*head, decoder->spec()).Load(pool_, weights()));
    return decoder;
  }
};

TEST_P(Eagle3Laws, KeepsTheText) {
  const auto folder = temp_.path() / "model";
  const auto root = std::filesystem::path(GODWIT_SOURCE_DIR "/tests/golden");
  WriteModelByLastToken(root / kModels[GetParam()[0]], folder, /*predicts=*/false);
  for (const bool agrees : {true, false}) {
    const auto head = temp_.path() / (agrees ? "agrees" : "differs");
    WriteEagle3Head(folder, head, agrees);
    ExpectSameText(*Load(folder), *Load(folder, head), "eagle3", agrees, {});
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, Eagle3Laws,
                         testing::ValuesIn(prediction_laws::PairsOf(kModels.size())),
                         [](const testing::TestParamInfo<Combined>& info) {
                           return prediction_laws::NameOf(kModels[info.param[0]], info.param);
                         });

}  // namespace
}  // namespace godwit::eagle3_laws_test
