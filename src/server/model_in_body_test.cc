#include "server/model_in_body.h"

#include <gtest/gtest.h>

#include <string>

#include "base/test_support.h"

namespace godwit::server::model_in_body_test {
namespace {

std::string Found(const std::string& body) { return ModelInBody(body, CancelToken()); }

TEST(ModelInBody, IsTheFieldOfTheObjectItself) {
  EXPECT_EQ(Found(R"({"model": "a", "prompt": "b"})"), "a");
  EXPECT_EQ(Found(R"({"prompt": [1, {"model": "inner"}], "x": {"model": "y"}, "model": "a"})"),
            "a");
  EXPECT_EQ(Found(R"({"model": "\u0061/b:Q4"})"), "a/b:Q4");
  EXPECT_EQ(Found(R"({"mode": "a", "models": "b"})"), "");
  EXPECT_EQ(Found(R"({"x": {"model": "y"}})"), "");
  EXPECT_EQ(Found(R"([{"model": "y"}])"), "");
}

TEST(ModelInBody, NothingIsNoName) {
  for (const char* const body :
       {"", "{", "[]", "\"model\"", R"({"model": null})", R"({"model": 5, "prompt": "x"})",
        R"({"model": ["a"]})", R"({"model": {"model": "b"}})", R"({"model")", R"({"model": "a)"}) {
    EXPECT_EQ(Found(body), "") << body;
  }
  EXPECT_EQ(Found(R"({"model": "a", "prompt)"), "a") << "the rest is not read";
}

TEST(ModelInBody, IsNotRecursive) {
  EXPECT_EQ(Found(R"({"x": )" + std::string(1'000'000, '[')), "");
}

TEST(ModelInBody, EndsWhenItsClientHasGone) {
  CancelToken gone;
  gone.Cancel();
  ErrorOf(ErrorKind::kCancelled, [&] { (void)ModelInBody(R"({"prompt": "a"})", gone); });
}

}  // namespace
}  // namespace godwit::server::model_in_body_test
