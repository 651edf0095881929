#include "dist/placement.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

class Group : public Communicator {
 public:
  Group(std::shared_ptr<Communicator> all, std::vector<int> members)
      : all_(std::move(all)), members_(std::move(members)) {
    const auto mine = std::ranges::find(members_, all_->rank());
    assert(mine != members_.end());
    rank_ = static_cast<int>(mine - members_.begin());
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string NameOf(int rank) const override { return all_->NameOf(members_[rank]); }

 protected:
  void Exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                const CancelToken* cancel) override {
    std::vector<Outgoing> out(outgoing.begin(), outgoing.end());
    std::vector<Incoming> in(incoming.begin(), incoming.end());
    for (Outgoing& one : out) one.to = members_[one.to];
    for (Incoming& one : in) one.from = members_[one.from];
    ExchangeThrough(*all_, out, in, cancel);
  }

  void SendFarewell(std::string_view why) noexcept override { all_->Leave(why); }

 private:
  std::shared_ptr<Communicator> all_;
  std::vector<int> members_;
  int rank_;
};

}  // namespace

std::shared_ptr<Communicator> GroupOf(std::shared_ptr<Communicator> all, std::vector<int> members) {
  return std::make_shared<Group>(std::move(all), std::move(members));
}

Placement Place(std::shared_ptr<Communicator> all, int tensor_parallel) {
  const int ranks = all == nullptr ? 1 : all->size();
  if (tensor_parallel < 1 || ranks % tensor_parallel != 0) {
    Throw(
        ErrorKind::kInput,
        "{} rank{} cannot share the weights in groups of {}: start a multiple of as many ranks, or "
        "let another number share the weights",
        ranks, ranks == 1 ? "" : "s", tensor_parallel);
  }
  if (all == nullptr) return {};
  if (tensor_parallel == 1) return {.all = all, .tensor = nullptr, .context = all};
  if (tensor_parallel == ranks) return {.all = all, .tensor = all, .context = nullptr};
  const int place = all->rank() % tensor_parallel, first = all->rank() - place;
  std::vector<int> neighbours, alike;
  for (int i = 0; i < tensor_parallel; ++i) neighbours.push_back(first + i);
  for (int rank = place; rank < ranks; rank += tensor_parallel) alike.push_back(rank);
  return {.all = all, .tensor = GroupOf(all, neighbours), .context = GroupOf(all, alike)};
}

}  // namespace godwit
