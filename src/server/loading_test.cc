#include "server/loading.h"

#include <gtest/gtest.h>

#include "server/api_test_support.h"

namespace godwit::server::loading_test {
namespace {

TEST(Loading, SaysHowFarItIsAndWhenToComeBack) {
  Loading loading;
  loading.Note(420, 1000);
  Answered reply;
  loading.Answer(reply);
  EXPECT_EQ(reply.status(), 503);
  EXPECT_EQ(reply.headers().at("Retry-After"), "1");
  const Json json = reply.json();
  EXPECT_EQ(json["status"], "loading");
  EXPECT_DOUBLE_EQ(json["progress"], 0.42);
  EXPECT_EQ(json["error"]["message"], "the model is being loaded (42 %)");
  EXPECT_EQ(json["error"]["type"], "server_error");
}

// A model without weights has no bytes to count, and the last byte is not the end of loading.
TEST(Loading, IsNeverDoneBeforeItIs) {
  Loading loading;
  loading.Note(0, 0);
  EXPECT_EQ(loading.progress(), 0);
  loading.Note(1000, 1000);
  EXPECT_DOUBLE_EQ(loading.progress(), 0.99);
}

}  // namespace
}  // namespace godwit::server::loading_test
