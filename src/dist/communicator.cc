#include "dist/communicator.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <vector>

#include "base/error.h"

namespace godwit {

void Communicator::ExchangeOrLeave(std::span<const Outgoing> outgoing,
                                   std::span<const Incoming> incoming, const CancelToken* cancel) {
  if (end_) throw Error(*end_);
  if (left_) Throw(ErrorKind::kIo, "{} has left the other ranks", NameOf(rank()));
  for (const Outgoing& one : outgoing) {
    if (std::ssize(one.data) > kMaxFrameBytes) {
      Throw(ErrorKind::kUnsupported, "a frame of {} bytes for another rank, and the most is {}",
            one.data.size(), kMaxFrameBytes);
    }
    sent_bytes_ += std::ssize(one.data);
  }
  try {
    if (cancel != nullptr) cancel->ThrowIfCancelled();
    Exchange(outgoing, incoming, cancel);
  } catch (const Error& error) {
    if (!left_) end_ = error;
    Leave(error.what());
    throw;
  } catch (const std::exception& error) {
    Leave(error.what());
    throw;
  }
}

void Communicator::AllGather(std::span<const std::byte> mine, std::span<std::byte> all,
                             const CancelToken* cancel) {
  assert(all.size() == mine.size() * static_cast<size_t>(size()));
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int other = 0; other < size(); ++other) {
    const auto place = all.subspan(static_cast<size_t>(other) * mine.size(), mine.size());
    if (other == rank()) {
      std::ranges::copy(mine, place.begin());
    } else {
      outgoing.push_back({other, mine});
      incoming.push_back({other, place});
    }
  }
  ExchangeOrLeave(outgoing, incoming, cancel);
}

void Communicator::AllToAll(std::span<const std::byte> mine, std::span<std::byte> theirs,
                            const CancelToken* cancel) {
  assert(theirs.size() == mine.size() && mine.size() % static_cast<size_t>(size()) == 0);
  const size_t bytes = mine.size() / static_cast<size_t>(size());
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int other = 0; other < size(); ++other) {
    const auto to = mine.subspan(static_cast<size_t>(other) * bytes, bytes);
    const auto from = theirs.subspan(static_cast<size_t>(other) * bytes, bytes);
    if (other == rank()) {
      std::ranges::copy(to, from.begin());
    } else {
      outgoing.push_back({other, to});
      incoming.push_back({other, from});
    }
  }
  ExchangeOrLeave(outgoing, incoming, cancel);
}

void Communicator::Broadcast(std::span<std::byte> data, int root, const CancelToken* cancel) {
  if (rank() != root) return Receive(data, root, cancel);
  std::vector<Outgoing> outgoing;
  for (int other = 0; other < size(); ++other) {
    if (other != root) outgoing.push_back({other, data});
  }
  ExchangeOrLeave(outgoing, {}, cancel);
}

void Communicator::Swap(std::span<const std::byte> mine, std::span<std::byte> theirs, int other,
                        const CancelToken* cancel) {
  const Outgoing out{other, mine};
  const Incoming in{other, theirs};
  ExchangeOrLeave({&out, 1}, {&in, 1}, cancel);
}

void Communicator::Barrier(const CancelToken* cancel) { AllGather({}, {}, cancel); }

void Communicator::Send(std::span<const std::byte> data, int to, const CancelToken* cancel) {
  const Outgoing one{to, data};
  ExchangeOrLeave({&one, 1}, {}, cancel);
}

void Communicator::Receive(std::span<std::byte> data, int from, const CancelToken* cancel) {
  const Incoming one{from, data};
  ExchangeOrLeave({}, {&one, 1}, cancel);
}

void Communicator::Leave(std::string_view why) noexcept {
  if (left_.exchange(true)) return;
  SendFarewell(why);
  try {
    if (!end_) {
      end_ = Error(ErrorKind::kIo,
                   fmt::format("{} has left the other ranks: {}", NameOf(rank()), why));
    }
  } catch (const std::exception&) {  // the ranks are not told a reason then
  }
}

void Communicator::ThrowLeft(int rank, std::string_view why) const {
  ThrowWith({.code = ErrorCode::kOtherRank}, ErrorKind::kIo, "{} has ended: {}", NameOf(rank), why);
}

void Communicator::ThrowLost(int rank, double seconds) const {
  Throw(ErrorKind::kIo, "{} is lost: nothing was heard of it for {:.3g} s", NameOf(rank), seconds);
}

void Communicator::ThrowOutOfStep(int rank, int64_t found_bytes, int64_t expected_bytes) const {
  Throw(ErrorKind::kIo, "{} sent {} bytes where {} expected {}: the ranks are out of step",
        NameOf(rank), found_bytes, NameOf(this->rank()), expected_bytes);
}

}  // namespace godwit
