// RequestMessage: a request as rank 0 tells the others. They need nothing else to go through it, so
// that nothing they were told themselves matters.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "engine/request.h"
#include "godwit/engine.h"

namespace godwit {

struct RequestMessage {
  RequestKind kind;
  SessionOptions session;
  GenerateOptions generate;
  std::vector<int32_t> tokens;
};

// Calls of rank 0. All throw as Communicator does.
void BroadcastRequest(Communicator& ranks, const Request& request);
void BroadcastEnd(Communicator& ranks);
// The call of the other ranks. Nothing: there will be no more requests.
std::optional<RequestMessage> ReceiveRequest(Communicator& ranks);

}  // namespace godwit
