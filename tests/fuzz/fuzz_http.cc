#include <fmt/format.h>

#include "server/http_server.h"
#include "server/http_test_client.h"
#include "tests/fuzz/targets.h"

namespace godwit::fuzz {
namespace {

// Answers with the request's body, in one piece or in several.
void Answer(server::HttpRequest request, std::shared_ptr<server::HttpReply> reply) {
  Require(request.body.size() <= 4096, "bodies have a limit");
  Require(request.path.find('?') == request.path.npos, "a path has no query");
  if (request.path != "/stream") return reply->Send(200, "text/plain", request.body);
  reply->Begin("text/plain");
  reply->Write(request.body);
  reply->End();
}

}  // namespace

// The bytes that a client sends on one connection.
void FuzzHttp(std::span<const uint8_t> input) {
  static server::HttpServer server({.port = 0, .max_body_bytes = 4096, .max_header_bytes = 2048},
                                   Answer);
  const auto ask = [](std::string_view text) {
    server::Client client(server.port());
    Require(client.connected(), "it takes connections");
    client.Say(text);
    client.CloseSending();
    return client.ReceiveAll();
  };
  const std::string answer = ask(AsText(input));
  Require(answer.empty() || answer.starts_with("HTTP/1."), "an answer is one of HTTP");
  server::Client other(server.port());
  Require(other.connected(), "it takes the connections of others");
  other.Say("GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
  Require(other.ReceiveUntil("\r\n\r\n").starts_with("HTTP/1.1 200"), "others are answered");
}

}  // namespace godwit::fuzz
