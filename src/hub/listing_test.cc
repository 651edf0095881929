#include "hub/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "hub/hub_cache.h"
#include "hub/hub_name.h"

namespace godwit::hub::listing_test {
namespace {

using testing::HasSubstr;

const std::string kHash(64, 'a');

std::string Json(const std::string& files, const std::string& sha = "0123456789abcdef") {
  return fmt::format(R"({{"id":"o/n","sha":"{}","siblings":[{}]}})", sha, files);
}

TEST(Listing, HasSizesAndNamesOfContent) {
  const Listing listing = ParseListing(
      "o/n", Json(fmt::format(R"({{"rfilename":"a/b.gguf","size":7,"blobId":"f00","lfs":)"
                              R"({{"sha256":"{}","size":7,"pointerSize":9}}}},)"
                              R"({{"rfilename":"config.json","size":0,"blobId":"beef"}},)"
                              R"({{"rfilename":"bare.txt"}})",
                              kHash)));
  EXPECT_EQ(listing.repository, "o/n");
  EXPECT_EQ(listing.commit, "0123456789abcdef");
  ASSERT_EQ(listing.files.size(), 3u);
  EXPECT_EQ(listing.files[0].name, "a/b.gguf");
  EXPECT_EQ(listing.files[0].bytes, 7);
  EXPECT_EQ(listing.files[0].blob, kHash);
  EXPECT_EQ(listing.files[0].sha256, kHash);
  EXPECT_EQ(listing.files[1].bytes, 0);
  EXPECT_EQ(listing.files[1].blob, "beef");
  EXPECT_EQ(listing.files[1].sha256, "");
  EXPECT_EQ(listing.files[2].bytes, -1);
  EXPECT_EQ(listing.files[2].blob, "");
}

TEST(Listing, InvalidListingIsRefused) {
  const auto refusal = [](const std::string& text) {
    return ErrorOf(ErrorKind::kFormat, [&] { ParseListing("o/n", text); });
  };
  EXPECT_THAT(refusal("<html>"), HasSubstr("the list of files of o/n"));
  for (const char* text : {"[]", "{}", R"({"sha":"0123456789"})", R"({"siblings":[]})"}) {
    EXPECT_THAT(refusal(text), HasSubstr("expected an answer of the hub's API"));
  }
  for (const char* commit : {"", "../../x", "0123/45678", "ABCDEF0123"}) {
    EXPECT_THAT(refusal(Json("", commit)), HasSubstr("expected an answer of the hub's API"));
  }
  for (const char* name : {"../x", "/etc/passwd", "a/../../x", "a//b", "a/", ".", R"(a\u0000b)",
                           R"(a\nb)", R"(a\\b)"}) {
    EXPECT_THAT(refusal(Json(fmt::format(R"({{"rfilename":"{}","size":1}})", name))),
                HasSubstr("expected a name inside"))
        << name;
  }
  for (const char* size : {"-1", "1e3", "\"1\"", "18446744073709551615"}) {
    EXPECT_THAT(refusal(Json(fmt::format(R"({{"rfilename":"a","size":{}}})", size))),
                HasSubstr("expected a number of bytes"))
        << size;
  }
  EXPECT_THAT(refusal(Json(R"({"rfilename":"a","lfs":{"sha256":"../../x"}})")),
              HasSubstr("expected 64 hexadecimal digits"));
  EXPECT_THAT(refusal(Json(R"({"rfilename":"a","blobId":"../../x"})")),
              HasSubstr("expected letters and digits"));
  refusal(Json("1"));
  refusal(Json(R"({"rfilename":1})"));
}

TEST(Listing, ATagNamesContent) {
  EXPECT_EQ(BlobOfTag("\"0aF-_9\""), "0aF-_9");
  EXPECT_EQ(BlobOfTag("W/\"12\""), "12");
  EXPECT_EQ(BlobOfTag("12"), "12");
  for (const char* tag : {"", "\"", "\"../x\"", "a/b", ".", "a b"}) EXPECT_EQ(BlobOfTag(tag), "");
  EXPECT_EQ(BlobOfTag(std::string(201, 'a')), "");
}

TEST(HubName, IsARepositoryAndAQuant) {
  EXPECT_EQ(SplitHubName("o/n:Q4_K_M").repository, "o/n");
  EXPECT_EQ(SplitHubName("o/n:Q4_K_M").quant, "Q4_K_M");
  EXPECT_EQ(SplitHubName("o/n").quant, "");
  EXPECT_EQ(SplitHubName("C:/n").repository, "C:/n");
  EXPECT_TRUE(IsHubName("Org-1/Name_2.5-GGUF"));
  for (const char* name : {"", "n", "/n", "o/", "o/n/m", "./n", "../n", "o/..", "o/.", "a b/c",
                           "o/n?x", "o/n%2f", "\xc3\xa9/n"}) {
    EXPECT_FALSE(IsHubName(name)) << name;
  }
  EXPECT_EQ(RepositoryFolder("o/n"), "models--o--n");
  EXPECT_EQ(RepositoryOf("models--o--n"), "o/n");
  EXPECT_EQ(RepositoryOf("datasets--o--n"), std::nullopt);
}

}  // namespace
}  // namespace godwit::hub::listing_test
