#include "dist/local.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/next_poll.h"

namespace godwit {

class LocalWorld::Member : public Communicator {
 public:
  Member(LocalWorld& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.size_; }
  std::string NameOf(int rank) const override { return "rank " + std::to_string(rank); }

 protected:
  void Exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                const CancelToken* cancel) override {
    std::unique_lock lock(world_.mutex_);
    if (world_.delay_ms_ > 0) {
      const std::chrono::duration<double, std::milli> delay(world_.delay_ms_);
      lock.unlock();
      std::this_thread::sleep_for(delay);
      lock.lock();
    }
    for (const auto& [to, data] : outgoing) {
      if (world_.silent_[rank_]) continue;
      world_.frames_[{rank_, to}].emplace_back(data.begin(), data.end());
    }
    world_.changed_.notify_all();
    for (const Incoming& one : incoming) {
      std::deque<Frame>& frames = world_.frames_[{one.from, rank_}];
      while (frames.empty()) {
        if (world_.left_ && world_.left_->first != rank_) {
          ThrowLeft(world_.left_->first, world_.left_->second);
        }
        if (cancel != nullptr) cancel->ThrowIfCancelled();
        if (world_.silent_[one.from]) ThrowLost(one.from, 0);
        world_.changed_.wait_until(lock, NextPoll());
      }
      const Frame frame = std::move(frames.front());
      frames.pop_front();
      if (frame.size() != one.data.size()) {
        ThrowOutOfStep(one.from, std::ssize(frame), std::ssize(one.data));
      }
      std::ranges::copy(frame, one.data.begin());
    }
  }

  void SendFarewell(std::string_view why) noexcept override {
    const std::lock_guard lock(world_.mutex_);
    if (world_.silent_[rank_]) return;
    if (!world_.left_) world_.left_.emplace(rank_, why);
    world_.changed_.notify_all();
  }

 private:
  LocalWorld& world_;
  int rank_;
};

LocalWorld::LocalWorld(int size) : size_(size), silent_(size) {}

std::shared_ptr<Communicator> LocalWorld::Rank(int rank) {
  return std::make_shared<Member>(*this, rank);
}

void LocalWorld::Silence(int rank) {
  const std::lock_guard lock(mutex_);
  silent_[rank] = true;
}

void LocalWorld::Delay(double ms) {
  const std::lock_guard lock(mutex_);
  delay_ms_ = ms;
}

}  // namespace godwit
