#include "http/client.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/test_support.h"
#include "http/http_test_server.h"

namespace godwit::client_test {
namespace {

HttpRequest Get(const std::string& url) { return {.url = url}; }

bool Has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

std::string RedirectTo(const std::string& url, std::string_view headers = "") {
  return fmt::format("HTTP/1.1 302 Found\r\nLocation: {}\r\n{}Content-Length: 4\r\n\r\ngone", url,
                     headers);
}

TEST(HttpClientTest, AnAnswerHasItsStatusHeadersAndBodyAndTheConnectionIsKept) {
  HttpTestServer server([](const std::string&) {
    return TestAnswer{
        "HTTP/1.1 404 Not Found\r\nX-Error-Code: Repo\r\nContent-Length: 4\r\n\r\nnone"};
  });
  HttpClient client;
  for (int i = 0; i < 3; ++i) {
    const HttpResponse response = client.Send(Get(server.Url("/a?b=c")));
    EXPECT_EQ(response.status, 404);
    ASSERT_NE(response.Header("x-error-code"), nullptr);
    EXPECT_EQ(*response.Header("x-error-code"), "Repo");
    EXPECT_EQ(response.Header("ETag"), nullptr);
    EXPECT_EQ(response.body, "none");
    EXPECT_EQ(response.body_bytes, 4);
  }
  EXPECT_EQ(server.connections(), 1);
  EXPECT_TRUE(server.requests()[0].starts_with("GET /a?b=c HTTP/1.1\r\n"));
}

TEST(HttpClientTest, ARequestHasItsMethodHeadersTokenAndBody) {
  HttpTestServer server([](const std::string& request) { return TestAnswer{OkAnswer(request)}; });
  HttpClient client;
  const std::string body(2 << 20, 'x');  // libcurl would wait before it sends that
  const HttpResponse posted = client.Send({.method = "POST",
                                           .url = server.Url("/p"),
                                           .headers = {{"X-A", "1"}, {"X-Empty", ""}},
                                           .bearer_token = "secret",
                                           .body = body});
  EXPECT_TRUE(posted.body.starts_with("POST /p HTTP/1.1\r\n"));
  EXPECT_TRUE(Has(posted.body, "\r\nX-A: 1\r\n"));
  EXPECT_TRUE(Has(posted.body, "\r\nX-Empty:"));
  EXPECT_TRUE(Has(posted.body, "\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_FALSE(Has(posted.body, "Expect:"));
  EXPECT_TRUE(posted.body.ends_with("\r\n\r\n" + body));
  const HttpResponse deleted = client.Send({.method = "DELETE", .url = server.Url("/p")});
  EXPECT_TRUE(deleted.body.starts_with("DELETE /p HTTP/1.1\r\n"));
}

TEST(HttpClientTest, HeadHasNoBody) {
  HttpTestServer server([](const std::string&) {
    return TestAnswer{"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"};
  });
  HttpClient client;
  const HttpResponse response = client.Send({.method = "HEAD", .url = server.Url("/")});
  EXPECT_EQ(*response.Header("Content-Length"), "1000000");
  EXPECT_EQ(response.body_bytes, 0);
}

TEST(HttpClientTest, CallbacksSeeHeadersThenBytesAndEndTheTransfer) {
  HttpTestServer server([](const std::string&) {
    return TestAnswer{"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" +
                      OkAnswer(std::string(10 << 20, 'x'))};
  });
  HttpClient client;
  int64_t seen = 0;
  int status = 0;
  const HttpCallbacks callbacks{.on_headers =
                                    [&](const HttpResponse& response) {
                                      EXPECT_EQ(response.Header("X-Early"), nullptr);
                                      EXPECT_EQ(seen, 0);
                                      status = response.status;
                                      return true;
                                    },
                                .on_body =
                                    [&](std::string_view bytes) {
                                      seen += static_cast<int64_t>(bytes.size());
                                      return seen < 1000;
                                    }};
  const HttpResponse cut = client.Send(Get(server.Url("/")), callbacks);
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(cut.stopped);
  EXPECT_EQ(cut.body_bytes, seen);
  EXPECT_LT(seen, 10 << 20);

  const HttpResponse none =
      client.Send(Get(server.Url("/")),
                  {.on_headers = [](const HttpResponse&) { return false; }, .on_body = {}});
  EXPECT_TRUE(none.stopped);
  EXPECT_EQ(none.body_bytes, 0);
  EXPECT_EQ(ErrorOf(ErrorKind::kMemory,
                    [&] {
                      client.Send(Get(server.Url("/")),
                                  {.on_headers = {}, .on_body = [](std::string_view) -> bool {
                                     throw Error(ErrorKind::kMemory, "full");
                                   }});
                    }),
            "full");
}

TEST(HttpClientTest, ARedirectIsFollowedOnlyWhereThatIsAskedFor) {
  std::string target;
  HttpTestServer server([&](const std::string& request) {
    return TestAnswer{request.starts_with("GET /end") ? OkAnswer("here")
                                                      : RedirectTo(target, "X-Repo-Commit: 1\r\n")};
  });
  HttpClient client;
  target = "/end";
  HttpRequest request = Get(server.Url("/start"));
  EXPECT_EQ(client.Send(request).status, 302);
  EXPECT_EQ(client.Send(request).body, "gone");
  request.max_redirects = 1;
  const HttpResponse response = client.Send(request);
  EXPECT_EQ(response.body, "here");
  EXPECT_EQ(response.url, server.Url("/end"));
  ASSERT_EQ(response.redirects.size(), 1u);
  EXPECT_EQ(response.redirects[0].status, 302);
  EXPECT_EQ(*FindHeader(response.redirects[0].headers, "X-Repo-Commit"), "1");
  EXPECT_EQ(response.Header("X-Repo-Commit"), nullptr);

  target = "/again";
  EXPECT_TRUE(
      Has(ErrorOf(ErrorKind::kFormat, [&] { client.Send(request); }), "more than 1 redirects"));
  for (const char* url :
       {"file:///etc/passwd", "ftp://127.0.0.1/", "http://me:secret@127.0.0.1/"}) {
    target = url;
    ErrorOf(ErrorKind::kInput, [&] { client.Send(request); });
  }
}

TEST(HttpClientTest, AnotherHostLearnsNoTokenAndFewHeaders) {
  HttpTestServer other([](const std::string& request) { return TestAnswer{OkAnswer(request)}; });
  HttpTestServer server(
      [&](const std::string&) { return TestAnswer{RedirectTo(other.Url("/f"))}; });
  HttpClient client;
  const HttpResponse response =
      client.Send({.url = server.Url("/"),
                   .headers = {{"Range", "bytes=7-"}, {"Cookie", "c"}, {"X-Api-Key", "k"}},
                   .bearer_token = "secret",
                   .max_redirects = 3});
  const std::string first = server.requests()[0];
  EXPECT_TRUE(Has(first, "Authorization: Bearer secret"));
  EXPECT_TRUE(Has(first, "Cookie: c"));
  EXPECT_TRUE(Has(response.body, "Range: bytes=7-"));
  EXPECT_FALSE(Has(response.body, "secret"));
  EXPECT_FALSE(Has(response.body, "Cookie"));
  EXPECT_FALSE(Has(response.body, "X-Api-Key"));
}

TEST(HttpClientTest, InvalidRequestIsRefused) {
  HttpClient client;
  const auto refused = [&](const HttpRequest& request) {
    return ErrorOf(ErrorKind::kInput, [&] { client.Send(request); });
  };
  for (const char* url : {"", "localhost", "ftp://localhost/", "file:///etc/passwd", "http://",
                          "http://a:b@localhost/"}) {
    refused(Get(url));
  }
  refused(Get(std::string("http://localhost/\0x", 19)));
  refused({.method = "GET / HTTP/1.1\r\nX:", .url = "http://localhost/"});
  refused({.url = "http://localhost/", .headers = {{"X", "1\r\nY: 2"}}});
  refused({.url = "http://localhost/", .headers = {{"X: 1\r\nY", "2"}}});
  EXPECT_FALSE(
      Has(refused({.url = "http://localhost/", .bearer_token = "secret\nX: 1"}), "secret"));
}

TEST(HttpClientTest, ALostConnectionSaysHowMuchCame) {
  HttpTestServer server([](const std::string& request) {
    if (request.starts_with("GET /nothing")) return TestAnswer{"", TestAnswer::kClose};
    return TestAnswer{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
                      TestAnswer::kClose};
  });
  HttpClient client;
  const auto lost = [&](const std::string& url) {
    try {
      client.Send(Get(url));
    } catch (const HttpError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_TRUE(error.is_transient());
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string host = fmt::format("127.0.0.1:{}", server.port());
  EXPECT_TRUE(
      Has(lost(server.Url("/")), host + " cut the connection after 9 of 100 bytes of its answer"));
  EXPECT_TRUE(Has(lost(server.Url("/nothing")), "cut the connection after 0 bytes"));
  // RFC 6761: no such host exists.
  EXPECT_TRUE(Has(lost("http://godwit.invalid/"), "cannot find the address of godwit.invalid"));
  EXPECT_TRUE(Has(lost("http://127.0.0.1:1/"), "127.0.0.1:1 accepts no connection"));
}

TEST(HttpClientTest, NonHttpAndOverlongAnswersAreRefused) {
  HttpTestServer server([](const std::string& request) {
    if (request.starts_with("GET /ssh")) return TestAnswer{"SSH-2.0-x\r\n", TestAnswer::kClose};
    if (request.starts_with("GET /headers")) {
      return TestAnswer{OkAnswer("", "X: " + std::string(90'000, 'x') + "\r\n" +
                                         std::string(1 << 20, 'y') + "\r\n"),
                        TestAnswer::kClose};
    }
    return TestAnswer{OkAnswer(std::string(1001, 'x'))};
  });
  HttpClient client({.max_body_bytes = 1000});
  ErrorOf(ErrorKind::kFormat, [&] { client.Send(Get(server.Url("/ssh"))); });
  EXPECT_TRUE(Has(ErrorOf(ErrorKind::kFormat, [&] { client.Send(Get(server.Url("/"))); }),
                  "longer than 1000 bytes"));
  EXPECT_THROW(client.Send(Get(server.Url("/headers"))), Error);
}

TEST(HttpClientTest, SilenceEndsByTimeAndByCancel) {
  HttpTestServer server([](const std::string&) { return TestAnswer{"HTTP/1.1 200 OK\r\n"}; });
  HttpClient patient_client({.idle_time = std::chrono::milliseconds(20)});
  try {
    patient_client.Send(Get(server.Url("/")));
    ADD_FAILURE() << "no error";
  } catch (const HttpError& error) {
    EXPECT_TRUE(error.is_transient());
    EXPECT_TRUE(Has(error.what(), "sent nothing for 0.02 s")) << error.what();
  }
  CancelToken cancel;
  HttpClient client({.cancel = &cancel});
  std::thread canceller([&] {
    while (server.requests().size() < 2) std::this_thread::yield();
    cancel.Cancel();
  });
  ErrorOf(ErrorKind::kCancelled, [&] { client.Send(Get(server.Url("/"))); });
  canceller.join();
}

}  // namespace
}  // namespace godwit::client_test
