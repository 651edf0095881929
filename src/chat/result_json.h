// What came of a text, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "godwit/engine.h"

namespace godwit::chat {

// As OpenAI's API has them: "stop", "length", besides "cancelled".
std::string FinishReasonName(FinishReason reason);

// {"policy", "seen", "kept", "dropped", "dropped_spans": [[begin, end]], "bytes"}
nlohmann::ordered_json KvJson(const KvReport& kv);

// {"steps", "guesses", "accepted", "sources": {name: accepted}}
nlohmann::ordered_json DraftsJson(const DraftReport& drafts);

}  // namespace godwit::chat
