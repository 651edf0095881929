#include "http/url.h"

#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::url_test {
namespace {

TEST(UrlTest, AnOriginIsSchemeHostAndPort) {
  const HttpOrigin hub = OriginOf("HTTPS://HuggingFace.co/a?b#c");
  EXPECT_EQ(hub, (HttpOrigin{.scheme = "https", .host = "huggingface.co", .port = "443"}));
  EXPECT_EQ(HostAndPort(hub), "huggingface.co");
  EXPECT_EQ(HostAndPort(OriginOf("http://127.0.0.1:8080")), "127.0.0.1:8080");
  EXPECT_EQ(HostAndPort(OriginOf("http://[::1]:80/")), "[::1]");
  EXPECT_EQ(HostAndPort(OriginOf("https://a:80/")), "a:80");
  EXPECT_NE(OriginOf("http://a"), OriginOf("https://a"));
}

TEST(UrlTest, OtherSchemesUsersAndWhatIsNoUrlAreRefused) {
  for (const char* url :
       {"", "a/b", "file:///x", "gopher://a/", "http://u@a/", "http://u:p@a/", "http://a:99999/"}) {
    ErrorOf(ErrorKind::kInput, [&] { OriginOf(url); });
  }
  const std::string user = ErrorOf(ErrorKind::kInput, [] { OriginOf("http://me:secret@a/"); });
  EXPECT_EQ(user.find("secret"), user.npos) << user;
}

TEST(UrlTest, OtherCharactersArePercentEncoded) {
  EXPECT_EQ(PercentEncoded("a-Z_0.~/ ?#%\xc3\xa9"), "a-Z_0.~%2F%20%3F%23%25%C3%A9");
  EXPECT_EQ(PercentEncoded("a/b c", /*keep_slashes=*/true), "a/b%20c");
}

}  // namespace
}  // namespace godwit::url_test
