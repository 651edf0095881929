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
    : about_(std::move(about)),
      lanes_(about_.texts == 1 ? 1 : about_.texts + 1),
      counts_(static_cast<size_t>(lanes_)) {}

// The position of the last event.
std::string KeptAnswer::PositionText() const {
  if (lanes_ == 1) return fmt::format("{}", counts_[0] - 1);
  return fmt::format("{}", fmt::join(counts_, "."));
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

bool KeptAnswer::Lacks(Reader& reader, int lane) {
  int64_t& skips = reader.skips[static_cast<size_t>(lane)];
  return skips == 0 || skips-- == 0;
}

void KeptAnswer::Add(int lane, std::string_view event) {
  std::string text;
  Readers readers;
  {
    const std::lock_guard lock(mutex_);
    ++counts_[static_cast<size_t>(lane)];
    text = fmt::format("id: {}:{}\n{}", about_.id, PositionText(), event);
    if (about_.keeps) {
      bytes_ += std::ssize(text);
      events_.push_back({.lane = lane, .text = text});
    }
    // A reader that joins later has the event from Attach.
    readers = ReadersOf(lane);
  }
  Send(readers, text);
}

void KeptAnswer::Tell(std::string_view piece) {
  std::string text(piece);
  Readers readers;
  {
    const std::lock_guard lock(mutex_);
    if (!piece.starts_with(':')) {
      text = fmt::format("id: {}:{}\n{}", about_.id, PositionText(), piece);
    }
    readers = ReadersOf(/*lane=*/-1);
  }
  Send(readers, text);
}

KeptAnswer::Readers KeptAnswer::ReadersOf(int lane) {
  std::erase_if(readers_, [](const auto& one) { return one->reply->gone().cancelled(); });
  if (!readers_.empty()) read_ = Stopwatch();
  Readers readers;
  for (const auto& reader : readers_) {
    if (lane < 0 || Lacks(*reader, lane)) readers.push_back(reader);
  }
  return readers;
}

void KeptAnswer::Send(const Readers& readers, std::string_view piece) {
  for (const auto& reader : readers) {
    if (!std::exchange(reader->begun, true)) reader->reply->Begin(kEvents);
    reader->reply->Write(piece);
  }
}

void KeptAnswer::Attach(std::shared_ptr<HttpReply> reply, EventCounts has) {
  const std::lock_guard lock(mutex_);
  auto reader = std::make_shared<Reader>();
  reader->reply = std::move(reply);
  reader->skips = has.empty() ? EventCounts(static_cast<size_t>(lanes_)) : std::move(has);
  read_ = Stopwatch();
  was_read_ = true;
  std::string missed;
  for (const Event& event : events_) {
    if (Lacks(*reader, event.lane)) missed += event.text;
  }
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
  std::vector<std::shared_ptr<Reader>> readers;
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
  std::vector<std::shared_ptr<Reader>> readers;
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
