#include "server/slots.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace godwit::server {

Slots::Taken::Taken(Slots& slots, int64_t id) : slots_(slots) {
  const std::lock_guard lock(slots_.mutex_);
  const auto free = std::ranges::find(slots_.slots_, -1, &Slot::id);
  at_ = static_cast<size_t>(free - slots_.slots_.begin());
  *free = {.id = id};
}

Slots::Taken::~Taken() {
  const std::lock_guard lock(slots_.mutex_);
  slots_.slots_[at_] = {};
}

void Slots::Taken::Take(int answer, const Event& event) {
  const std::lock_guard lock(slots_.mutex_);
  Slot& slot = slots_.slots_[at_];
  if (answer == 0 && event.progress) slot.prompt = *event.progress;
  slot.output_tokens += std::ssize(event.tokens);
  slots_.moved_ = Stopwatch();
}

double Slots::stalled_ms() const {
  const std::lock_guard lock(mutex_);
  return moved_.ms();
}

nlohmann::ordered_json Slots::Json(int64_t context) const {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Slot& slot : slots_) {
    nlohmann::ordered_json json{
        {"id", list.size()}, {"n_ctx", context}, {"is_processing", slot.id >= 0}};
    if (slot.id >= 0) {
      json["id_task"] = slot.id;
      json["n_prompt_tokens"] = slot.prompt.total_tokens;
      json["n_prompt_tokens_processed"] = slot.prompt.done_tokens;
      json["n_prompt_tokens_cache"] = slot.prompt.cached_tokens;
      json["n_decoded"] = slot.output_tokens;
      json["time_ms"] = slot.watch.ms();
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace godwit::server
