#include "engine/model_fingerprint.h"

#include <gtest/gtest.h>

#include <string>

#include "base/test_folder.h"

namespace godwit::model_fingerprint_test {
namespace {

TEST(ModelFingerprint, ChangesWithAFileAndWithAStretchOfIt) {
  const TempFolder folder;
  const std::string weights(4 << 20, 'w');
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", weights);
  const std::string before = ModelFingerprint(folder.path());
  folder.Write("README.md", "no part of the model");
  EXPECT_EQ(ModelFingerprint(folder.path()), before);

  // A changed 256th of the file shows wherever it lies.
  for (const size_t begin :
       {size_t{0}, size_t{1'000'000}, size_t{3'333'333}, weights.size() - 16384}) {
    std::string changed = weights;
    changed.replace(begin, 16384, 16384, 'x');
    folder.Write("model.safetensors", changed);
    EXPECT_NE(ModelFingerprint(folder.path()), before) << begin;
  }
  folder.Write("model.safetensors", weights + "w");
  EXPECT_NE(ModelFingerprint(folder.path()), before);
  folder.Write("model.safetensors", weights);
  EXPECT_EQ(ModelFingerprint(folder.path()), before);
  folder.Write("vocab.json", "{}");
  folder.Write("merges.txt", "a b");
  const std::string tokenizer = ModelFingerprint(folder.path());
  EXPECT_NE(tokenizer, before);
  folder.Write("merges.txt", "a c");
  EXPECT_NE(ModelFingerprint(folder.path()), tokenizer);
  folder.Write("config.json", "{} ");
  EXPECT_NE(ModelFingerprint(folder.path()), before);
}

}  // namespace
}  // namespace godwit::model_fingerprint_test
