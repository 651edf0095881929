#include "chat/result_json.h"

#include <nlohmann/json.hpp>

namespace godwit::chat {

std::string FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

nlohmann::ordered_json KvJson(const KvReport& kv) {
  return {{"policy", kv.policy},
          {"seen", kv.seen},
          {"kept", kv.kept},
          {"dropped", kv.seen - kv.kept},
          {"first_dropped", kv.first_dropped},
          {"bytes", kv.bytes}};
}

}  // namespace godwit::chat
