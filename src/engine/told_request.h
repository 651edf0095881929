// ToldRequest: a request as rank 0 tells the others. They need nothing else to go through it, so
// that nothing they were told themselves matters.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "engine/request.h"
#include "godwit/engine.h"

namespace godwit {

struct ToldRequest {
  RequestKind kind;
  SessionOptions session;
  GenerateOptions generate;
  std::vector<int32_t> tokens;
};

// Calls of rank 0. All throw as Communicator does.
void TellRequest(Communicator& ranks, const Request& request);
void TellEnd(Communicator& ranks);
// The call of the other ranks. Nothing: there will be no more requests.
std::optional<ToldRequest> HearRequest(Communicator& ranks);

}  // namespace godwit
