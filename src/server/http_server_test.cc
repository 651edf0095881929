#include "server/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/test_support.h"
#include "server/http_test_client.h"

namespace godwit::server::http_server_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Get(std::string_view path) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path);
}
std::string Post(std::string_view body) {
  return fmt::format("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(),
                     body);
}

// Replies that wait until the test sends them.
class Replies {
 public:
  void Put(std::shared_ptr<HttpReply> reply) {
    {
      const std::lock_guard lock(mutex_);
      replies_.push_back(std::move(reply));
    }
    changed_.notify_all();
  }
  std::shared_ptr<HttpReply> Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !replies_.empty(); });
    auto reply = std::move(replies_.front());
    replies_.erase(replies_.begin());
    return reply;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<HttpReply>> replies_;
};

void WaitUntilGone(const HttpReply& reply) {
  while (!reply.gone().cancelled()) usleep(1000);
}

class HttpServerTest : public testing::Test {
 protected:
  HttpServer& Start(HttpOptions options = {}) {
    options.port = 0;
    server_.emplace(options, [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      if (request.path == "/later") return replies_.Put(std::move(reply));
      reply->Send(200, "text/plain",
                  request.method + " " + request.path + " " + request.authorization + " " +
                      std::to_string(request.body.size()));
    });
    return *server_;
  }

  Replies replies_;
  std::optional<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOther) {
  Client client(Start().port());
  client.Say("GET /a?b=c HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\n\r\n" + Post("12345") +
             Get("/last"));
  EXPECT_THAT(client.ReceiveUntil("GET /a Bearer k 0"), HasSubstr("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(client.ReceiveUntil("POST /  5"), HasSubstr("Content-Length: 9\r\n"));
  EXPECT_THAT(client.ReceiveUntil("GET /last  0"), HasSubstr("Connection: keep-alive\r\n"));
  EXPECT_EQ(server_->connections(), 1);
  EXPECT_TRUE(server_->is_local());
}

TEST_F(HttpServerTest, PiecesComeAsTheyAreWritten) {
  Client client(Start().port());
  client.Say(Get("/later"));
  const auto reply = replies_.Take();
  reply->Begin("text/event-stream");
  EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  reply->Write("data: 1\n\n");
  EXPECT_EQ(client.ReceiveUntil("1\n\n\r\n"), "9\r\ndata: 1\n\n\r\n");
  reply->Write("");
  reply->Write(std::string(100'000, 'x'));
  EXPECT_THAT(client.ReceiveUntil("\r\n"), StartsWith("186a0"));
  EXPECT_EQ(client.ReceiveUntil("\r\n").size(), 100'002u);
  reply->End();
  EXPECT_EQ(client.ReceiveUntil("0\r\n\r\n"), "0\r\n\r\n");
  client.Say(Get("/again"));
  EXPECT_THAT(client.ReceiveUntil("/again"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, Http10ClientGetsAnUnchunkedReply) {
  Client client(Start().port());
  client.Say("GET /later HTTP/1.0\r\n\r\n");
  const auto reply = replies_.Take();
  reply->Begin("text/plain");
  reply->Write("abc");
  reply->End();
  const std::string heard = client.ReceiveAll();
  EXPECT_THAT(heard, testing::EndsWith("\r\n\r\nabc"));
  EXPECT_THAT(heard, Not(HasSubstr("chunked")));
}

TEST_F(HttpServerTest, DisconnectIsNoticed) {
  Start();
  for (const auto& [half, ahead] :
       {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
    std::optional<Client> client(server_->port());
    client->Say(Get("/later") + (ahead ? Get("/next") : ""));
    const auto reply = replies_.Take();
    EXPECT_FALSE(reply->gone().cancelled());
    half ? client->CloseSending() : client.reset();
    WaitUntilGone(*reply);
    reply->Send(200, "text/plain", "nobody hears it");
  }
  Client other(server_->port());
  other.Say(Get("/other"));
  EXPECT_THAT(other.ReceiveUntil("/other"), HasSubstr("200 OK"));
}

// A client that does not read delays only the handler of its own request.
TEST_F(HttpServerTest, ASlowReaderCostsNobodyElse) {
  Client slow(Start().port());
  slow.Say(Get("/later"));
  const auto reply = replies_.Take();
  constexpr size_t kPiece = 1 << 16, kPieces = 400;
  std::atomic<size_t> written = 0;
  std::thread writer([&] {
    reply->Begin("text/plain");
    for (; written < kPieces; ++written) reply->Write(std::string(kPiece, 'x'));
    reply->End();
  });
  Client other(server_->port());
  for (int i = 0; i < 20; ++i) {
    other.Say(Get("/other"));
    EXPECT_THAT(other.ReceiveUntil("/other"), HasSubstr("200 OK"));
    usleep(5000);
  }
  EXPECT_LT(written, kPieces) << "more than a connection and the server hold";
  EXPECT_GT(slow.ReceiveUntil("\r\n0\r\n\r\n").size(), kPiece * kPieces);
  writer.join();
}

TEST_F(HttpServerTest, MalformedRequestIsRefused) {
  Start({.max_body_bytes = 100, .max_header_bytes = 1000});
  const auto refused = [&](std::string_view text) {
    Client client(server_->port());
    client.Say(text);
    const std::string heard = client.ReceiveAll();
    EXPECT_THAT(heard, HasSubstr("Connection: close\r\n"));
    return heard.substr(0, heard.find("\r\n")) + heard.substr(heard.find("\r\n\r\n"));
  };
  EXPECT_THAT(
      refused("what?\r\n\r\n"),
      StartsWith("HTTP/1.1 400 Bad Request\r\n\r\n{\"error\":{\"message\":\"expected an HTTP"));
  EXPECT_THAT(refused("GET / HTTP/1.1\r\nA: " + std::string(2000, 'a') + "\r\n\r\n"),
              HasSubstr("431"));
  EXPECT_THAT(refused("GET / HTTP/1.1\r\nA: " + std::string(1'000'000, 'a')), HasSubstr("431"));
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "A: aaaaaaaaaaaa\r\n";
  EXPECT_THAT(refused("GET / HTTP/1.1\r\n" + lines), HasSubstr("431")) << "of short lines";
  EXPECT_THAT(refused(Post(std::string(101, 'a'))), HasSubstr("413"));
  EXPECT_THAT(refused("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"),
              HasSubstr("400"));
  EXPECT_THAT(refused("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n" +
                      std::string(1000, 'a')),
              HasSubstr("413"));
  Client nothing(server_->port());
  nothing.CloseSending();
  EXPECT_EQ(nothing.ReceiveAll(), "");
}

// Two servers that read a header differently disagree on where the next request begins. Each header
// here is refused, and the bytes behind it are never taken for a request.
TEST_F(HttpServerTest, AHeaderThatMayBeReadInTwoWaysIsRefused) {
  Start();
  const auto refused = [&](std::string_view headers, std::string_view version = "1.1") {
    Client client(server_->port());
    client.Say(fmt::format("POST / HTTP/{}\r\n{}\r\n\r\n5\r\nabcde\r\n0\r\n\r\n{}", version,
                           headers, Get("/smuggled")));
    const std::string heard = client.ReceiveAll();
    EXPECT_THAT(heard, HasSubstr("Connection: close\r\n")) << headers;
    EXPECT_THAT(heard, Not(HasSubstr("smuggled"))) << headers;
    EXPECT_THAT(heard, Not(HasSubstr("200 OK"))) << headers;
    return heard.substr(0, heard.find("\r\n"));
  };
  for (const std::string_view coding :
       {"xchunked", "identity", "chunked, identity", "identity, chunked", "gzip", "gzip, chunked",
        "chunked;q=1", "\"chunked\"", "", "chunked, chunked"}) {
    EXPECT_THAT(refused(fmt::format("Host: x\r\nTransfer-Encoding: {}", coding)),
                StartsWith("HTTP/1.1 501 "))
        << coding;
  }
  EXPECT_THAT(refused("Host: x\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked"),
              StartsWith("HTTP/1.1 501 "));
  EXPECT_THAT(refused("Host: x\r\nTransfer-Encoding: identity\r\nContent-Length: 3"),
              StartsWith("HTTP/1.1 501 "));
  EXPECT_THAT(refused("Transfer-Encoding: chunked", "1.0"), StartsWith("HTTP/1.1 400 "));
  for (const std::string_view headers :
       {"A: b", "Host: x\r\nHost: x", "Host: x\r\nhost: y", "Host: x\r\nA: b\r\n c",
        "Host: x\r\nA: b\r\n\tc", "Host: x\r\nA: b\r\n \r\nB: c",
        "Host: x\r\nTransfer-Encoding:\r\n chunked", "Host:\r\n x", "Host : x", " Host: x",
        "Host: x\r\nTransfer-Encoding : chunked", "Host: x\r\nContent-Length: 3, 4",
        "Host: x\r\nContent-Length: 3\r\nContent-Length: 4", "Host: x\r\nContent-Length: +3",
        "Host: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
        "Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3",
        "Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Host: x\r\nA: b\rc",
        "Host: x\nTransfer-Encoding: chunked"}) {
    EXPECT_THAT(refused(headers), StartsWith("HTTP/1.1 400 ")) << headers;
  }
  // Folds are also found when the header arrives byte by byte.
  Client slow(server_->port());
  for (const char c : std::string_view("GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n")) {
    slow.Say({&c, 1});
  }
  EXPECT_THAT(slow.ReceiveAll(), HasSubstr("expected each header on one line"));
  for (const std::string_view taken :
       {"GET /a HTTP/1.0\r\n\r\n", "GET /a HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding:  Chunked \r\n\r\n"
        "0\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n x"}) {
    Client client(server_->port());
    client.Say(taken);
    EXPECT_THAT(client.ReceiveAll(), HasSubstr("200 OK")) << taken;
  }
}

TEST_F(HttpServerTest, HeadIsAGetWithoutItsBody) {
  Client client(Start().port());
  client.Say("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + Get("/a"));
  const std::string head = client.ReceiveUntil("\r\n\r\n"), same = client.ReceiveUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 9\r\n"));
  EXPECT_EQ(head, same) << "as if the body followed";
  EXPECT_EQ(client.ReceiveUntil("0"), "GET /a  0");
  client.Say("HEAD /later HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto reply = replies_.Take();
  reply->Begin("text/plain");
  reply->Write("abc");
  reply->End();
  client.Say(Get("/next"));
  EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), HasSubstr("chunked"));
  EXPECT_THAT(client.ReceiveUntil("/next"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, AllBodiesTogetherHaveALimit) {
  Start({.max_body_bytes = 600, .max_bodies_bytes = 1000});
  Client first(server_->port()), second(server_->port()), third(server_->port());
  first.Say("POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n" +
            std::string(500, 'a'));
  auto reply = replies_.Take();
  second.Say("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
  EXPECT_THAT(second.ReceiveAll(), HasSubstr("503 Service Unavailable"));
  third.Say(Post(std::string(500, 'a')));
  EXPECT_THAT(third.ReceiveUntil("POST /  500"), HasSubstr("200 OK"));
  reply->Send(200, "text/plain", "done");
  first.ReceiveUntil("done");
  Client fourth(server_->port());
  fourth.Say("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
  EXPECT_THAT(fourth.ReceiveUntil("POST /  1"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, AnswersExpect100Continue) {
  Client client(Start().port());
  client.Say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReceiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Say("abc");
  EXPECT_THAT(client.ReceiveUntil("POST /  3"), HasSubstr("200 OK"));
  for (const std::string_view expect :
       {"200-ok", "100-continue, 200-ok", "", "100-continue\r\nExpect: 200-ok"}) {
    Client other(server_->port());
    other.Say(fmt::format(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: {}\r\n\r\nabc", expect));
    EXPECT_THAT(other.ReceiveAll(), StartsWith("HTTP/1.1 417 ")) << expect;
  }
  Client old(server_->port());
  old.Say("POST / HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc");
  EXPECT_THAT(old.ReceiveAll(), StartsWith("HTTP/1.1 200 ")) << "which knows of no Continue";
}

TEST_F(HttpServerTest, SlowSenderIsDisconnected) {
  using std::chrono::milliseconds;
  Start({.header_time = milliseconds(50), .body_time = milliseconds(50)});
  for (const std::string_view begun :
       {"", "GET / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"}) {
    Client client(server_->port());
    client.Say(begun);
    EXPECT_EQ(client.ReceiveAll(), "") << begun;
  }
}

// Pages of other sites in browsers: only those that may ask.
TEST_F(HttpServerTest, CrossOriginRequestsNeedAListedOrigin) {
  Start({.origins = {"https://chat.example"}});
  const auto ask = [&](std::string_view method, std::string_view origin) {
    Client client(server_->port());
    client.Say(fmt::format("{} /a HTTP/1.1\r\nHost: x\r\nOrigin: {}\r\nConnection: close\r\n\r\n",
                           method, origin));
    return client.ReceiveAll();
  };
  const std::string promise = ask("OPTIONS", "https://chat.example");
  EXPECT_THAT(promise, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(promise, HasSubstr("Access-Control-Allow-Origin: https://chat.example\r\n"));
  EXPECT_THAT(promise,
              HasSubstr("Access-Control-Allow-Headers: Authorization, Content-Type, X-Api-Key, "));
  EXPECT_THAT(ask("GET", "https://chat.example"),
              HasSubstr("Access-Control-Allow-Origin: https://chat.example\r\nVary: Origin\r\n"));
  for (const char* const other :
       {"https://evil.example", "https://chat.example.evil", "null", ""}) {
    EXPECT_THAT(ask("GET", other), Not(HasSubstr("Access-Control"))) << other;
    EXPECT_THAT(ask("OPTIONS", other), Not(HasSubstr("Access-Control"))) << other;
  }
}

TEST_F(HttpServerTest, TooManyConnectionsAreToldToRetry) {
  Start({.max_connections = 2});
  Client first(server_->port()), second(server_->port());
  first.Say(Get("/later"));
  auto reply = replies_.Take();
  second.Say(Get("/later"));
  auto other = replies_.Take();
  EXPECT_THAT(Client(server_->port()).ReceiveAll(),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: ")));
  reply->Send(200, "text/plain", "done");
  first.ReceiveUntil("done");
  Client third(server_->port());
  third.Say(Get("/3"));
  EXPECT_THAT(third.ReceiveUntil("/3"), HasSubstr("200 OK")) << "the first one asks nothing more";
  other->Send(200, "text/plain", "done");
  EXPECT_THAT(second.ReceiveUntil("done"), HasSubstr("200 OK"));
}

// Ten times as many connections as allowed, with no request, or only half of one.
TEST_F(HttpServerTest, IdleConnectionsDoNotBlockOthers) {
  Start({.max_connections = 20});
  Client busy(server_->port());
  busy.Say(Get("/later"));
  auto reply = replies_.Take();
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(std::make_unique<Client>(server_->port()));
    idle.back()->Say(i % 3 == 0   ? ""
                     : i % 3 == 1 ? "GET / HT"
                                  : "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12");
    if (i % 20 != 0) continue;
    Client client(server_->port());
    client.Say(Get("/who"));
    ASSERT_THAT(client.ReceiveUntil("/who"), HasSubstr("200 OK")) << i;
  }
  EXPECT_LE(server_->connections(), 20);
  reply->Send(200, "text/plain", "done");
  EXPECT_THAT(busy.ReceiveUntil("done"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, StopEndsAfterBegunRequests) {
  Start();
  Client busy(server_->port()), idle(server_->port());
  idle.Say(Get("/idle"));
  idle.ReceiveUntil("/idle  0");
  busy.Say(Get("/later"));
  auto reply = replies_.Take();
  server_->StopListening();
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_FALSE(Client(server_->port()).connected());
  reply->Send(200, "text/plain", "done");
  EXPECT_THAT(busy.ReceiveAll(), HasSubstr("done"));
}

TEST_F(HttpServerTest, DroppedReplyClosesTheConnection) {
  Client client(Start().port());
  client.Say(Get("/later"));
  replies_.Take()->Begin("text/plain");
  EXPECT_THAT(client.ReceiveAll(), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, EndsWithRepliesOnTheirWay) {
  Client client(Start().port());
  client.Say(Get("/later"));
  std::thread worker([reply = replies_.Take()]() mutable {
    reply->Begin("text/plain");
    while (!reply->gone().cancelled()) reply->Write(std::string(1000, 'x'));
    reply.reset();
  });
  server_.reset();
  worker.join();
}

// 64 MiB are more than a connection holds.
TEST_F(HttpServerTest, EndsOnceAWholeAnswerIsSent) {
  constexpr size_t kBytes = size_t{64} << 20;
  Client client(Start().port());
  client.Say(Get("/later"));
  replies_.Take()->Send(200, "text/plain", std::string(kBytes, 'x') + "end");
  std::thread reader([&] { EXPECT_GT(client.ReceiveUntil("xend").size(), kBytes); });
  server_.reset();
  reader.join();
}

TEST_F(HttpServerTest, SlowReaderIsDisconnectedAtShutdown) {
  Client client(Start({.read_time = std::chrono::milliseconds(50)}).port());
  client.Say(Get("/later"));
  replies_.Take()->Send(200, "text/plain", std::string(size_t{64} << 20, 'x'));
  server_.reset();
  EXPECT_LT(client.ReceiveAll().size(), size_t{64} << 20);
}

TEST_F(HttpServerTest, RefusesUnusableAddresses) {
  const auto listen = [&](HttpOptions options) {
    HttpServer(options, [](HttpRequest, std::shared_ptr<HttpReply>) {});
  };
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { listen({.host = "localhost"}); }),
              HasSubstr("expected an address"));
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { listen({.port = Start().port()}); }),
              HasSubstr("cannot listen on 127.0.0.1 port "));
}

}  // namespace
}  // namespace godwit::server::http_server_test
