#include "server/kept_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace godwit::server {
namespace {

constexpr const char* kEvents = "text/event-stream";

}  // namespace

KeptAnswer::KeptAnswer(About about)
    : about_(std::move(about)), lanes_(about_.texts == 1 ? 1 : about_.texts + 1) {}

std::string KeptAnswer::WithId(const Reader& reader, std::string_view event) const {
  // Progress before the first event has no position to come back to.
  if (lanes_ == 1 && reader.has[0] == 0) return std::string(event);
  if (lanes_ == 1) return fmt::format("id: {}:{}\n{}", about_.id, reader.has[0] - 1, event);
  return fmt::format("id: {}:{}\n{}", about_.id, fmt::join(reader.has, "."), event);
}

std::optional<EventCounts> KeptAnswer::CountsOf(std::string_view position) const {
  EventCounts counts;
  while (true) {
    const std::string_view part = position.substr(0, position.find('.'));
    int64_t count = 0;
    const char* const part_end = part.data() + part.size();
    const auto [end, error] = std::from_chars(part.data(), part_end, count);
    if (error != std::errc() || end != part_end || part.empty() || count < 0) return std::nullopt;
    counts.push_back(count);
    if (part.size() == position.size()) break;
    position.remove_prefix(part.size() + 1);
  }
  if (std::ssize(counts) != lanes_) return std::nullopt;
  if (lanes_ == 1) counts[0] = std::min<int64_t>(counts[0], INT64_MAX - 1) + 1;
  return counts;
}

std::string KeptAnswer::PieceFor(Reader& reader, int lane, std::string_view event) const {
  const auto at = static_cast<size_t>(lane);
  if (reader.skips[at] > 0) {
    --reader.skips[at];
    return "";
  }
  ++reader.has[at];
  return WithId(reader, event);
}

template <typename PieceOf>
void KeptAnswer::Send(std::unique_lock<std::mutex>& lock, const PieceOf& piece_of) {
  std::vector<std::pair<std::shared_ptr<Reader>, std::string>> pieces;
  std::erase_if(readers_, [](const auto& one) { return one->reply->gone().cancelled(); });
  if (!readers_.empty()) read_ = Stopwatch();
  for (const auto& reader : readers_) pieces.emplace_back(reader, piece_of(*reader));
  lock.unlock();
  for (const auto& [reader, piece] : pieces) {
    if (piece.empty()) continue;
    if (!std::exchange(reader->begun, true)) reader->reply->Begin(kEvents);
    reader->reply->Write(piece);
  }
}

void KeptAnswer::Add(int lane, std::string_view event) {
  std::unique_lock lock(mutex_);
  if (about_.keeps) {
    bytes_ += std::ssize(event);
    events_.push_back({.lane = lane, .text = std::string(event)});
  }
  // A reader that joins later has the event from Attach.
  Send(lock, [&](Reader& reader) { return PieceFor(reader, lane, event); });
}

void KeptAnswer::Tell(std::string_view piece) {
  std::unique_lock lock(mutex_);
  const bool is_comment = piece.starts_with(':');
  Send(lock, [&](const Reader& reader) {
    return is_comment ? std::string(piece) : WithId(reader, piece);
  });
}

void KeptAnswer::Attach(std::shared_ptr<HttpReply> reply, EventCounts has) {
  const std::lock_guard lock(mutex_);
  auto reader = std::make_shared<Reader>();
  reader->reply = std::move(reply);
  reader->has = has.empty() ? EventCounts(static_cast<size_t>(lanes_)) : std::move(has);
  reader->skips = reader->has;
  read_ = Stopwatch();
  was_read_ = true;
  std::string missed;
  for (const Event& event : events_) missed += PieceFor(*reader, event.lane, event.text);
  if (!missed.empty() || ended_) {
    reader->begun = true;
    reader->reply->Begin(kEvents);
    reader->reply->Write(missed);
  }
  if (ended_) {
    reader->reply->End();
  } else {
    readers_.push_back(std::move(reader));
  }
}

void KeptAnswer::End() {
  Readers readers;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_ = Stopwatch();
    readers.swap(readers_);
  }
  for (const auto& reader : readers) {
    if (!std::exchange(reader->begun, true)) reader->reply->Begin(kEvents);
    reader->reply->End();
  }
}

void KeptAnswer::Refuse(int status, const std::string& body) {
  Readers readers;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_ = Stopwatch();
    readers.swap(readers_);
  }
  for (const auto& reader : readers) {
    if (reader->begun) {
      reader->reply->End();
    } else {
      reader->reply->Send(status, "application/json", body);
    }
  }
}

void KeptAnswer::Drop() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  readers_.clear();
}

void KeptAnswer::SetBody(std::string body) {
  const std::lock_guard lock(mutex_);
  body_ = std::move(body);
}

bool KeptAnswer::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::string KeptAnswer::body() const {
  const std::lock_guard lock(mutex_);
  return body_;
}

int64_t KeptAnswer::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_ + std::ssize(body_);
}

double KeptAnswer::age_ms() const {
  const std::lock_guard lock(mutex_);
  return changed_.ms();
}

void KeptAnswer::CancelIfLost(double grace_ms) {
  const std::lock_guard lock(mutex_);
  if (ended_ || about_.background || !was_read_) return;
  std::erase_if(readers_, [](const auto& one) { return one->reply->gone().cancelled(); });
  if (!readers_.empty()) read_ = Stopwatch();
  if (!readers_.empty() || cancel_.cancelled() || read_.ms() < grace_ms) return;
  is_lost_ = true;
  cancel_.Cancel();
}

bool KeptAnswer::is_lost() const {
  const std::lock_guard lock(mutex_);
  return is_lost_;
}

void KeptAnswer::Touch() {
  const std::lock_guard lock(mutex_);
  read_ = Stopwatch();
  was_read_ = true;
}

std::vector<std::string_view> SplitEvents(std::string_view events) {
  std::vector<std::string_view> list;
  while (!events.empty()) {
    const size_t at = events.find("\n\n");
    const size_t end = at == events.npos ? events.size() : at + 2;
    list.push_back(events.substr(0, end));
    events.remove_prefix(end);
  }
  return list;
}

}  // namespace godwit::server
