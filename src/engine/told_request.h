// What rank 0 tells the others of a request: all that they need to go through it with rank 0, so
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

// Of rank 0. All throw as Communicator does.
void TellRequest(Communicator& ranks, const Request& request);
void TellEnd(Communicator& ranks);
// Of the others. Nothing: there will be no more.
std::optional<ToldRequest> HearRequest(Communicator& ranks);

}  // namespace godwit
