#include "dist/mpi.h"

#include <cstdlib>

#include "base/error.h"

#ifdef GODWIT_MPI
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#endif

namespace godwit {
namespace {

int FromEnvironment(const char* of_openmpi, const char* of_others, int otherwise) {
  for (const char* name : {of_openmpi, of_others}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return otherwise;
}

}  // namespace

int MpiRank() { return FromEnvironment("OMPI_COMM_WORLD_RANK", "PMI_RANK", 0); }
int MpiSize() { return FromEnvironment("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", 1); }

#ifndef GODWIT_MPI

bool HasMpi() { return false; }

std::shared_ptr<Communicator> JoinMpi(double /*silence_s*/) {
  Throw(ErrorKind::kUnsupported,
        "{} ranks were started, but this godwit was built without MPI: install it with ./setup "
        "--mpi and build again",
        MpiSize());
}

#else

bool HasMpi() { return true; }

namespace {

enum Tag : int { kFrame = 1, kBeat, kFarewell };
constexpr std::chrono::milliseconds kBeatEvery{100};
constexpr size_t kMaxFarewell = 1024, kMaxHostName = 64;

void Check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text;
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  Throw(ErrorKind::kIo, "MPI could not {}: {}", what,
        std::string_view(text.data(), static_cast<size_t>(length)));
}

// Ranks over MPI. Open MPI 4 ends or hangs if a rank is lost, so no call waits inside it. Requests
// are started and tested under a lock that the heartbeat takes, too.
class MpiRanks : public Communicator {
 public:
  explicit MpiRanks(double silence_s) : silence_s_(silence_s) {
    int provided = 0;
    Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "start");
    if (provided < MPI_THREAD_SERIALIZED) {
      Throw(ErrorKind::kUnsupported, "this MPI serves one thread of a process only");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    const auto size = static_cast<size_t>(size_);
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    MPI_Get_processor_name(name.data(), &length);
    std::vector<char> names(size * kMaxHostName);
    MPI_Allgather(name.data(), kMaxHostName, MPI_CHAR, names.data(), kMaxHostName, MPI_CHAR,
                  MPI_COMM_WORLD);
    for (size_t rank = 0; rank < size; ++rank) {
      const char* const host = &names[rank * kMaxHostName];
      hosts_.emplace_back(host, strnlen(host, kMaxHostName));
    }
    missed_.assign(size, 0);
    beats_.assign(size, MPI_REQUEST_NULL);
    thread_ = std::thread([this] { SendHeartbeats(); });
  }

  ~MpiRanks() override {
    if (std::uncaught_exceptions() > 0) Leave("an error of its own");
    try {
      if (!gone_) Barrier(nullptr);
    } catch (const std::exception&) {  // a rank that has left
    }
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    closed_.notify_all();
    thread_.join();
    // MPI_Finalize would wait for lost ranks; mpirun ends them when this process ends.
    if (!gone_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string NameOf(int rank) const override {
    return fmt::format("rank {} ({})", rank, hosts_[rank]);
  }

 protected:
  void Exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                const CancelToken* cancel) override {
    // The frames' memory outlives the call if it fails, because MPI may still write there.
    pending_.clear();
    requests_.assign(incoming.size() + outgoing.size(), MPI_REQUEST_NULL);
    statuses_.resize(requests_.size());
    pending_.reserve(requests_.size());
    {
      const std::lock_guard lock(mutex_);
      size_t i = 0;
      for (const auto& [from, data] : incoming) {
        auto& buffer = pending_.emplace_back(data.size());
        Check(MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, from, kFrame,
                        MPI_COMM_WORLD, &requests_[i++]),
              "receive");
      }
      for (const auto& [to, data] : outgoing) {
        const auto& buffer = pending_.emplace_back(data.begin(), data.end());
        Check(MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, to, kFrame,
                        MPI_COMM_WORLD, &requests_[i++]),
              "send");
      }
    }
    Wait(cancel);
    for (size_t i = 0; i < incoming.size(); ++i) {
      int bytes = 0;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
      const auto expected = std::ssize(incoming[i].data);
      if (bytes != expected) ThrowOutOfStep(incoming[i].from, bytes, expected);
      std::ranges::copy(pending_[i], incoming[i].data.begin());
    }
  }

  void SendFarewell(std::string_view why) noexcept override {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    farewell_ = why.substr(0, kMaxFarewell);
    std::vector<MPI_Request> sent;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      MPI_Isend(farewell_.data(), static_cast<int>(farewell_.size()), MPI_CHAR, other, kFarewell,
                MPI_COMM_WORLD, &sent.emplace_back());
    }
    // A farewell is so short that it needs no receiver, but some networks work only when tested.
    for (int done = 0, turn = 0; done == 0 && turn < 1000; ++turn) {
      MPI_Testall(static_cast<int>(sent.size()), sent.data(), &done, MPI_STATUSES_IGNORE);
    }
  }

 private:
  void Wait(const CancelToken* cancel) {
    constexpr int kTurnsToHurry = 2000;
    for (int turn = 0;; ++turn) {
      {
        const std::lock_guard lock(mutex_);
        ReceiveFarewells();  // first: a rank's messages arrive before its farewell
        int done = 0;
        Check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                          statuses_.data()),
              "exchange frames: the ranks are out of step");
        if (done != 0) return;
        if (left_) ThrowLeft(left_->first, left_->second);
        if (lost_) ThrowLost(*lost_, silence_s_);
      }
      if (cancel != nullptr) cancel->ThrowIfCancelled();
      if (turn < kTurnsToHurry) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
  }

  // The heartbeat thread. Silence is counted in beats of this process, so that a process that was
  // itself stopped does not take the others for lost.
  void SendHeartbeats() {
    std::unique_lock lock(mutex_);
    while (!closing_ && !gone_) {
      for (int other = 0; other < size_; ++other) {
        if (other == rank_) continue;
        int done = 0;
        MPI_Test(&beats_[other], &done, MPI_STATUS_IGNORE);
        if (done == 0) continue;
        MPI_Isend(&kNothing, 0, MPI_BYTE, other, kBeat, MPI_COMM_WORLD, &beats_[other]);
      }
      closed_.wait_until(lock, std::chrono::system_clock::now() + kBeatEvery,
                         [&] { return closing_; });
      if (gone_) return;
      ReceiveHeartbeats();
      const double most = silence_s_ / std::chrono::duration<double>(kBeatEvery).count();
      for (int other = 0; other < size_; ++other) {
        if (other != rank_ && ++missed_[other] > most && !lost_) lost_ = other;
      }
    }
  }

  void ReceiveHeartbeats() {
    int found = 0;
    MPI_Status status;
    while (MPI_Iprobe(MPI_ANY_SOURCE, kBeat, MPI_COMM_WORLD, &found, &status) == MPI_SUCCESS &&
           found != 0) {
      MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, kBeat, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      missed_[status.MPI_SOURCE] = 0;
    }
  }

  void ReceiveFarewells() {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kFarewell, MPI_COMM_WORLD, &found, &status);
    if (found == 0 || left_) return;
    std::array<char, kMaxFarewell> text;
    int length = 0;
    MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, status.MPI_SOURCE, kFarewell,
             MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &length);
    left_.emplace(status.MPI_SOURCE, std::string(text.data(), length));
  }

  static constexpr std::byte kNothing{};

  double silence_s_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::string> hosts_;

  std::mutex mutex_;  // guards MPI's calls and the fields below
  std::condition_variable closed_;
  bool closing_ = false;
  bool gone_ = false;  // this rank has left
  std::string farewell_;
  std::vector<std::vector<std::byte> > pending_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> missed_;  // beats, of each rank
  std::vector<MPI_Request> beats_;
  std::optional<int> lost_;
  std::optional<std::pair<int, std::string> > left_;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<Communicator> JoinMpi(double silence_s) {
  return std::make_shared<MpiRanks>(silence_s);
}

#endif

}  // namespace godwit
