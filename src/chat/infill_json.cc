#include "chat/infill_json.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "chat/result_json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

Json Piece(const CompletionRequest& request, std::string_view text,
           const std::vector<int32_t>& tokens, bool is_last) {
  return {{"index", 0},
          {"content", text},
          {"tokens", request.return_token_ids ? Json(tokens) : Json::array()},
          {"stop", is_last}};
}

}  // namespace

Json InfillPiece(const CompletionRequest& request, const Event& event) {
  return Piece(request, event.text, event.tokens, /*is_last=*/false);
}

Json InfillJson(const CompletionRequest& request, const GenerateResult& result,
                const CompletionName& name, bool is_whole) {
  const auto& stops = request.generate.stop;
  const bool is_word = std::ranges::find(stops, result.stop) != stops.end();
  const bool ended = result.finish_reason == FinishReason::kStop;
  Json json = is_whole ? Piece(request, result.text, result.tokens, /*is_last=*/true)
                       : Piece(request, "", {}, /*is_last=*/true);
  json["model"] = name.model;
  json["stop_type"] = is_word ? "word" : ended ? "eos" : "limit";
  json["stopping_word"] = is_word ? result.stop : "";
  json["tokens_predicted"] = result.tokens.size();
  json["tokens_evaluated"] = result.prompt_tokens;
  json["tokens_cached"] = result.cached_tokens;
  json["truncated"] = false;
  json["seed"] = request.generate.sampler.seed;
  json["timings"] = TimingsJson(result);
  AddKv(json, result);
  return json;
}

}  // namespace godwit::chat
