#include "server/loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "server/error_body.h"

namespace godwit::server {

void Loading::Note(int64_t done_bytes, int64_t total_bytes) {
  if (total_bytes <= 0) return;
  const double part = static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  percent_ = std::clamp(static_cast<int>(100 * part), 0, 99);
}

void Loading::Answer(HttpReply& reply) const {
  constexpr std::pair<std::string_view, std::string_view> kSoon{"Retry-After", "1"};
  nlohmann::ordered_json body{{"status", "loading"}, {"progress", progress()}};
  const std::string why = fmt::format("the model is being loaded ({} %)", percent_.load());
  body.update(nlohmann::ordered_json::parse(ErrorBody(503, why)));
  reply.Send(503, "application/json", DumpJson(body), {&kSoon, 1});
}

}  // namespace godwit::server
