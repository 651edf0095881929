#include "model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/core/policy_around.h"
#include "model/model_test_support.h"

namespace godwit::decoder_test {
namespace {

using ::testing::HasSubstr;

const std::vector<int32_t> kPrompt = {3, 0, 10, 7};
const std::vector<int32_t> kNext = {1, 9, 9, 2, 4};

// A dense policy that cancels the step while a layer attends.
class ImpatientPolicy : public PolicyAround {
 public:
  ImpatientPolicy(std::unique_ptr<AttentionPolicy> dense, CancelToken& cancel,
                  const int64_t& cancel_at_layer)
      : PolicyAround(dense->facts(), std::move(dense)),
        cancel_(cancel),
        cancel_at_layer_(cancel_at_layer) {}

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    if (layer == cancel_at_layer_) cancel_.Cancel();
    return inner().Select(run, layer, queries);
  }
  std::unique_ptr<AttentionPolicy> Fork() const override { return nullptr; }

 private:
  CancelToken& cancel_;
  const int64_t& cancel_at_layer_;
};

class DecoderTest : public testing::Test {
 protected:
  std::unique_ptr<TextCache> ImpatientText(CancelToken& cancel, const int64_t& cancel_at_layer) {
    return std::make_unique<TextCache>(
        Geometry(spec_),
        std::make_unique<ImpatientPolicy>(MakePolicy(Geometry(spec_), {.context = 64}), cancel,
                                          cancel_at_layer),
        std::make_shared<KvPool>(LayoutOf(Geometry(spec_), DType::kF32)), /*context=*/64,
        /*int8_products=*/false);
  }

  const DecoderSpec spec_ = SmallLlama();
  const std::unique_ptr<Decoder> decoder_ = Load(spec_, FakeWeights(spec_));
};

TEST_F(DecoderTest, RefusesTokensOutsideTheVocabulary) {
  const auto text = DenseText(spec_);
  const auto other = DenseText(spec_);
  Step(*decoder_, {{kPrompt, text.get()}});
  for (const int32_t bad : {-1, 11, INT32_MIN, INT32_MAX}) {
    const std::vector<int32_t> tokens = {1, bad, 2};
    const Error alone = ErrorOf([&] { Step(*decoder_, {{tokens, text.get()}}); });
    EXPECT_EQ(alone.kind(), ErrorKind::kInput);
    EXPECT_THAT(alone.what(), HasSubstr(fmt::format("token id {} ", bad)));
    EXPECT_THAT(alone.what(), HasSubstr("vocabulary of 11"));
    ErrorOf([&] { Step(*decoder_, {{kNext, other.get()}, {tokens, text.get()}}); });
    EXPECT_EQ(text->length(), 4);
    EXPECT_EQ(text->Stats().kept, 4);
    EXPECT_EQ(other->length(), 0);
  }
  const auto fresh = DenseText(spec_);
  Step(*decoder_, {{kPrompt, fresh.get()}});
  EXPECT_EQ(Step(*decoder_, {{kNext, text.get()}}), Step(*decoder_, {{kNext, fresh.get()}}));
}

TEST_F(DecoderTest, OneRefusedSegmentLetsNoneAdvance) {
  const auto unlimited = DenseText(spec_);
  const auto full = DenseText(spec_, /*context=*/6);
  Step(*decoder_, {{kPrompt, unlimited.get()}, {kPrompt, full.get()}});
  const Error error = ErrorOf([&] {
    Step(*decoder_, {{kNext, unlimited.get()}, {kNext, full.get()}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_EQ(unlimited->length(), 4);
  EXPECT_EQ(full->length(), 4);

  const auto fresh = DenseText(spec_);
  Step(*decoder_, {{kPrompt, fresh.get()}});
  EXPECT_EQ(Step(*decoder_, {{kNext, unlimited.get()}}), Step(*decoder_, {{kNext, fresh.get()}}));
}

TEST_F(DecoderTest, ACancelledStepDidNotHappen) {
  CancelToken cancel;
  int64_t cancel_at_layer = -1;
  const auto reference = ImpatientText(cancel, cancel_at_layer);
  Step(*decoder_, {{kPrompt, reference.get()}}, &cancel);
  const auto expected = Step(*decoder_, {{kNext, reference.get()}}, &cancel);

  for (int64_t layer = 0; layer < spec_.layers; ++layer) {
    cancel.Reset();
    cancel_at_layer = -1;
    const auto text = ImpatientText(cancel, cancel_at_layer);
    const auto bystander = DenseText(spec_);
    Step(*decoder_, {{kPrompt, text.get()}}, &cancel);
    cancel_at_layer = layer;
    const std::vector<int32_t> other(7, 5);
    const Error error = ErrorOf([&] {
      Step(*decoder_, {{other, text.get()}, {kNext, bystander.get()}}, &cancel);
    });
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
    EXPECT_EQ(text->length(), 4) << "cancelled at layer " << layer;
    EXPECT_EQ(bystander->length(), 0);
    cancel_at_layer = -1;
    cancel.Reset();
    EXPECT_EQ(Step(*decoder_, {{kNext, text.get()}}, &cancel), expected);
  }
}

TEST_F(DecoderTest, CancelledBeforehandReadsNothing) {
  CancelToken cancel;
  cancel.Cancel();
  const auto text = DenseText(spec_);
  EXPECT_EQ(ErrorOf([&] {
              Step(*decoder_, {{kPrompt, text.get()}}, &cancel);
            }).kind(),
            ErrorKind::kCancelled);
  EXPECT_EQ(text->length(), 0);
}

}  // namespace
}  // namespace godwit::decoder_test
