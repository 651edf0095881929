#include "model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_test_support.h"

namespace godwit {
namespace {

using ::testing::HasSubstr;

const std::vector<int32_t> kPrompt = {3, 0, 10, 7};
const std::vector<int32_t> kNext = {1, 9, 9, 2, 4};

// A dense policy whose user loses patience while a layer attends.
class ImpatientPolicy : public AttentionPolicy {
 public:
  ImpatientPolicy(const DecoderSpec& spec, CancelToken& cancel)
      : policy_(DensePolicy(spec)), cancel_(cancel) {}

  int64_t cancel_at_layer = -1;

  int64_t length() const override { return policy_->length(); }
  void Begin(int64_t tokens) override { policy_->Begin(tokens); }
  int64_t max_length() const override { return policy_->max_length(); }
  int64_t max_step_tokens() const override { return policy_->max_step_tokens(); }
  void Attend(int64_t layer, const AttentionInput& input, const Exec& exec,
              MatrixView<float> out) override {
    policy_->Attend(layer, input, exec, out);
    if (layer == cancel_at_layer) cancel_.Cancel();
  }
  void End() override { policy_->End(); }
  bool CanTruncate(int64_t length) const override { return policy_->CanTruncate(length); }
  void Truncate(int64_t length) override { policy_->Truncate(length); }
  KvStats Stats() const override { return policy_->Stats(); }

 private:
  std::unique_ptr<AttentionPolicy> policy_;
  CancelToken& cancel_;
};

class DecoderTest : public testing::Test {
 protected:
  const DecoderSpec spec_ = SmallLlama();
  const std::unique_ptr<Decoder> decoder_ = Load(spec_, FakeWeights(spec_));
};

TEST_F(DecoderTest, RefusesTokensOutsideTheVocabulary) {
  const auto policy = DensePolicy(spec_);
  const auto other = DensePolicy(spec_);
  Step(*decoder_, {{kPrompt, policy.get()}});
  for (const int32_t bad : {-1, 11, INT32_MIN, INT32_MAX}) {
    const std::vector<int32_t> tokens = {1, bad, 2};
    const Error alone = ErrorOf([&] { Step(*decoder_, {{tokens, policy.get()}}); });
    EXPECT_EQ(alone.kind(), ErrorKind::kInput);
    EXPECT_THAT(alone.what(), HasSubstr(fmt::format("token id {} ", bad)));
    EXPECT_THAT(alone.what(), HasSubstr("vocabulary of 11"));
    ErrorOf([&] { Step(*decoder_, {{kNext, other.get()}, {tokens, policy.get()}}); });
    EXPECT_EQ(policy->length(), 4);
    EXPECT_EQ(policy->Stats().kept, 4);
    EXPECT_EQ(other->length(), 0);
  }
  const auto fresh = DensePolicy(spec_);
  Step(*decoder_, {{kPrompt, fresh.get()}});
  EXPECT_EQ(Step(*decoder_, {{kNext, policy.get()}}), Step(*decoder_, {{kNext, fresh.get()}}));
}

TEST_F(DecoderTest, OneRefusedSegmentLetsNoneAdvance) {
  const auto roomy = DensePolicy(spec_);
  const auto full = DensePolicy(spec_, /*context=*/6);
  Step(*decoder_, {{kPrompt, roomy.get()}, {kPrompt, full.get()}});
  const Error error = ErrorOf([&] {
    Step(*decoder_, {{kNext, roomy.get()}, {kNext, full.get()}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_EQ(roomy->length(), 4);
  EXPECT_EQ(full->length(), 4);

  const auto fresh = DensePolicy(spec_);
  Step(*decoder_, {{kPrompt, fresh.get()}});
  EXPECT_EQ(Step(*decoder_, {{kNext, roomy.get()}}), Step(*decoder_, {{kNext, fresh.get()}}));
}

TEST_F(DecoderTest, ACancelledStepDidNotHappen) {
  CancelToken cancel;
  ImpatientPolicy reference(spec_, cancel);
  Step(*decoder_, {{kPrompt, &reference}}, &cancel);
  const auto expected = Step(*decoder_, {{kNext, &reference}}, &cancel);

  for (int64_t layer = 0; layer < spec_.layers; ++layer) {
    cancel.Reset();
    ImpatientPolicy policy(spec_, cancel);
    const auto bystander = DensePolicy(spec_);
    Step(*decoder_, {{kPrompt, &policy}}, &cancel);
    policy.cancel_at_layer = layer;
    const std::vector<int32_t> other(7, 5);
    const Error error = ErrorOf([&] {
      Step(*decoder_, {{other, &policy}, {kNext, bystander.get()}}, &cancel);
    });
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
    EXPECT_EQ(policy.length(), 4) << "cancelled at layer " << layer;
    EXPECT_EQ(bystander->length(), 0);
    policy.cancel_at_layer = -1;
    cancel.Reset();
    EXPECT_EQ(Step(*decoder_, {{kNext, &policy}}, &cancel), expected);
  }
}

TEST_F(DecoderTest, CancelledBeforehandReadsNothing) {
  CancelToken cancel;
  cancel.Cancel();
  const auto policy = DensePolicy(spec_);
  EXPECT_EQ(ErrorOf([&] {
              Step(*decoder_, {{kPrompt, policy.get()}}, &cancel);
            }).kind(),
            ErrorKind::kCancelled);
  EXPECT_EQ(policy->length(), 0);
}

}  // namespace
}  // namespace godwit
