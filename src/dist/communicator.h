// Communicator: several processes, the ranks 0 to size() - 1, that work on one text together.
//
// All of them make the same calls in the same order. A rank that cannot go on leaves. Every other
// rank's next call then ends in an Error that names it. A rank that has not been heard of for too
// long is treated alike. There is no way back: after an Error no rank sends any more, and every
// further call throws it again. The calls come from one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "godwit/error.h"

namespace godwit {

class Communicator {
 public:
  static constexpr int64_t kMaxFrameBytes = int64_t{64} << 20;

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The name of a rank for messages: "rank 2 (its host)".
  virtual std::string NameOf(int rank) const = 0;

  // The functions below throw Error(kIo) where a rank has left or is lost, or sends another number
  // of bytes than is expected, and Error(kCancelled). cancel may be null.

  // all [size(), mine.size()]: the data of every rank, in the order of ranks.
  void AllGather(std::span<const std::byte> mine, std::span<std::byte> all,
                 const CancelToken* cancel);
  // mine, theirs [size(), n bytes]: part r of `mine` becomes the part of this rank in rank r's
  // `theirs`.
  void AllToAll(std::span<const std::byte> mine, std::span<std::byte> theirs,
                const CancelToken* cancel);
  // data: becomes the data of `root`.
  void Broadcast(std::span<std::byte> data, int root, const CancelToken* cancel);
  // Sends mine to one other rank and receives theirs from it, side by side. It makes the same call.
  void Swap(std::span<const std::byte> mine, std::span<std::byte> theirs, int other,
            const CancelToken* cancel);
  // Waits until all ranks have come so far.
  void Barrier(const CancelToken* cancel);
  // Data between two ranks, in order.
  void Send(std::span<const std::byte> data, int to, const CancelToken* cancel);
  void Receive(std::span<std::byte> data, int from, const CancelToken* cancel);

  // Ends this rank's part, and tells the others why. The errors of all name the rank that left
  // first.
  void Leave(std::string_view why) noexcept;
  // Whether this rank has left, by itself or since a call failed. Any thread may ask.
  bool left() const { return left_; }

  // The bytes of frames sent, to all ranks together.
  int64_t sent_bytes() const { return sent_bytes_; }

 protected:
  struct Outgoing {
    int to;
    std::span<const std::byte> data;
  };
  struct Incoming {
    int from;
    std::span<std::byte> data;
  };
  // Sends and receives all of these, one for each rank at most, side by side.
  virtual void Exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                        const CancelToken* cancel) = 0;
  virtual void SendFarewell(std::string_view why) noexcept = 0;
  // The exchange of another communicator, for one that speaks through it.
  static void ExchangeThrough(Communicator& other, std::span<const Outgoing> outgoing,
                              std::span<const Incoming> incoming, const CancelToken* cancel) {
    other.ExchangeOrLeave(outgoing, incoming, cancel);
  }

  [[noreturn]] void ThrowLeft(int rank, std::string_view why) const;
  [[noreturn]] void ThrowLost(int rank, double seconds) const;
  [[noreturn]] void ThrowOutOfStep(int rank, int64_t found_bytes, int64_t expected_bytes) const;

 private:
  void ExchangeOrLeave(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                       const CancelToken* cancel);

  int64_t sent_bytes_ = 0;
  std::atomic<bool> left_{false};
  std::optional<Error> end_;  // the error of every further call
};

}  // namespace godwit
