#include "sampling/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "base/test_support.h"

namespace godwit::options_test {
namespace {

using ::testing::HasSubstr;

TEST(SamplerOptions, DefaultsAreValid) { EXPECT_NO_THROW(Validate(SamplerOptions{}, 10)); }

TEST(SamplerOptions, EdgesAreValid) {
  SamplerOptions options;
  options.temperature = 0;
  options.top_k = 0;
  options.top_p = 0;
  options.min_p = 1;
  options.eta = 1;
  options.repeat_last_n = -1;
  options.presence_penalty = -2;
  options.logit_bias = {{0, -INFINITY}, {9, -100.0f}};
  EXPECT_NO_THROW(Validate(options, 10));
}

Error ErrorOfSteps(const std::string& names) {
  return ErrorOf([&] {
    SamplerOptions options;
    options.steps = ParseSteps(names);
    Validate(options, 10);
  });
}

TEST(SamplerSteps, AreNamedAsInLlamaCpp) {
  using enum SamplerStep;
  EXPECT_EQ(ParseSteps("penalties;top_k;top_p;min_p;eta;temperature"), SamplerOptions().steps);
  EXPECT_EQ(ParseSteps("min-p;temp;top-k"), (std::vector{kMinP, kTemperature, kTopK}));
  EXPECT_EQ(Name(kMinP), "min_p");
}

TEST(SamplerSteps, UnknownStepNamesTheNearest) {
  const Error misspelt = ErrorOfSteps("top_k;tmeperature");
  EXPECT_EQ(misspelt.kind(), ErrorKind::kInput);
  EXPECT_THAT(misspelt.what(), HasSubstr("\"tmeperature\" is no sampler; did you mean temperature? "
                                         "there are: penalties, top_k, top_p, min_p, eta, "
                                         "temperature"));
  for (const char* name : {"dry", "xtc", "typ_p", "top-n-sigma"}) {
    EXPECT_EQ(ErrorOfSteps(name).kind(), ErrorKind::kUnsupported) << name;
  }
  for (const char* names : {"", ";", "top_k;", "top_k,top_p", "top_k; top_p"}) {
    EXPECT_EQ(ErrorOfSteps(names).kind(), ErrorKind::kInput) << names;
  }
}

TEST(SamplerSteps, OnceEachAndPenaltiesFirst) {
  EXPECT_THAT(ErrorOfSteps("top_k;min_p;top_k").what(), HasSubstr("name top_k twice"));
  EXPECT_THAT(ErrorOfSteps("top_k;penalties").what(),
              HasSubstr("penalties must be the first of the samplers"));
}

TEST(SamplerOptions, EachBadFieldIsNamed) {
  struct Case {
    std::string message;
    std::function<void(SamplerOptions&)> spoil;
  };
  const Case cases[] = {
      {"temperature must be", [](auto& o) { o.temperature = NAN; }},
      {"temperature must be", [](auto& o) { o.temperature = -0.5f; }},
      {"temperature must be", [](auto& o) { o.temperature = INFINITY; }},
      {"top_k must be at least 0 (0 turns it off), not -1", [](auto& o) { o.top_k = -1; }},
      {"top_p must be", [](auto& o) { o.top_p = 1.5f; }},
      {"top_p must be", [](auto& o) { o.top_p = -0.1f; }},
      {"top_p must be", [](auto& o) { o.top_p = NAN; }},
      {"min_p must be", [](auto& o) { o.min_p = -0.1f; }},
      {"min_p must be", [](auto& o) { o.min_p = 2; }},
      {"eta must be", [](auto& o) { o.eta = -1; }},
      {"eta must be", [](auto& o) { o.eta = NAN; }},
      {"repeat_penalty must be", [](auto& o) { o.repeat_penalty = 0; }},
      {"repeat_penalty must be", [](auto& o) { o.repeat_penalty = NAN; }},
      {"repeat_penalty must be", [](auto& o) { o.repeat_penalty = INFINITY; }},
      {"repeat_last_n must be", [](auto& o) { o.repeat_last_n = -2; }},
      {"presence_penalty must be", [](auto& o) { o.presence_penalty = NAN; }},
      {"frequency_penalty must be", [](auto& o) { o.frequency_penalty = INFINITY; }},
      {"logit_bias names token 10",
       [](auto& o) {
         o.logit_bias = {{10, 1.0f}};
       }},
      {"logit_bias names token -1",
       [](auto& o) {
         o.logit_bias = {{-1, 1.0f}};
       }},
      {"logit_bias of token 3",
       [](auto& o) {
         o.logit_bias = {{3, NAN}};
       }},
      {"logit_bias of token 3",
       [](auto& o) {
         o.logit_bias = {{3, INFINITY}};
       }},
  };
  for (const Case& test : cases) {
    SamplerOptions options;
    test.spoil(options);
    try {
      Validate(options, 10);
      ADD_FAILURE() << "accepted: " << test.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_THAT(error.what(), HasSubstr(test.message));
    }
  }
}

}  // namespace
}  // namespace godwit::options_test
