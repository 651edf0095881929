#include "engine/request_message.h"

#include <nlohmann/json.hpp>
#include <string>

#include "engine/shared_tokens.h"
#include "engine/storage_types.h"

namespace godwit {

using Json = nlohmann::json;

void BroadcastRequest(Communicator& ranks, const Request& request) {
  const PolicyOptions& text = request.plan().options();
  const GenerateOptions& asked = request.options();
  // Choosing tokens stays with rank 0 (RankStrategy), and so does the time limit. Other ranks need
  // to know only that there may be draft tokens, so they hear the cheapest draft source.
  auto told = Json::to_cbor({{"kind", static_cast<int>(request.kind())},
                             {"kv", text.spec},
                             {"prefill", text.prefill},
                             {"kv_type", StorageName(text.kv_type)},
                             {"int8_attention", text.int8_products},
                             {"context_tokens", text.context},
                             {"chunk_tokens", request.plan().chunk_tokens()},
                             {"max_tokens", asked.max_tokens},
                             {"query_tokens", asked.query_tokens},
                             {"stop", asked.stop},
                             {"ignore_eos", asked.ignore_eos},
                             {"top_logprobs", asked.top_logprobs},
                             {"draft", asked.draft.empty() ? "" : "ngram"}});
  NumberOfRankZero(ranks, std::ssize(told));
  ranks.Broadcast(std::as_writable_bytes(std::span(told)), 0, nullptr);
  TokensOfRankZero(ranks, request.sequence().tokens);
}

void BroadcastEnd(Communicator& ranks) { NumberOfRankZero(ranks, 0); }

std::optional<RequestMessage> ReceiveRequest(Communicator& ranks) {
  std::vector<uint8_t> bytes(NumberOfRankZero(ranks, 0));
  if (bytes.empty()) return std::nullopt;
  ranks.Broadcast(std::as_writable_bytes(std::span(bytes)), 0, nullptr);
  const Json told = Json::from_cbor(bytes);
  RequestMessage request{.kind = static_cast<RequestKind>(told["kind"].get<int>())};
  SessionOptions& session = request.session;
  session.kv = told["kv"];
  session.prefill = told["prefill"];
  session.kv_type = told["kv_type"];
  session.int8_attention = told["int8_attention"].get<bool>();
  session.context_tokens = told["context_tokens"];
  session.chunk_tokens = told["chunk_tokens"];
  GenerateOptions& generate = request.generate;
  generate.max_tokens = told["max_tokens"];
  generate.query_tokens = told["query_tokens"];
  generate.stop = told["stop"].get<std::vector<std::string>>();
  generate.ignore_eos = told["ignore_eos"];
  generate.top_logprobs = told["top_logprobs"];
  generate.draft = told["draft"];
  request.tokens = TokensOfRankZero(ranks, {});
  return request;
}

}  // namespace godwit
