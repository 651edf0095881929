#include "attention/core/restore_text.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>
#include <vector>

namespace godwit {

class TextRestorer {
 public:
  // All are borrowed.
  TextRestorer(SnapshotFolder& folder, std::span<const SnapshotFolder::Piece> pieces,
               int64_t answer, TextCache& text)
      : folder_(folder), pieces_(pieces), answer_(answer), text_(text) {
    assert(text.cache().bytes() == 0);
  }

  int64_t Run() {
    if (!text_.policy().facts().keys_suffice) return 0;
    text_.cache_ = KvCache(text_.cache().shared_pool());  // has skipped nothing
    RestoreKeys();
    LeaveWholeContext();
    const int64_t kept = text_.length() > 0 ? RestoreRest() : 0;
    if (kept == 0) {
      text_.cache_ = KvCache(text_.cache().shared_pool());
      text_.TruncateIndex(0);
    } else {
      text_.Truncate(kept);
    }
    text_.Append(0);
    return kept;
  }

 private:
  // Ranks that share a context go on from all of it, or from nothing.
  void LeaveWholeContext() {
    const int64_t context = text_.placement().merged_from();
    if (context == INT64_MAX) return;
    text_.cache_.Truncate(text_.length() < context ? 0 : context);
  }

  // Returns the place from which the text can go on; 0: there is none.
  int64_t RestoreRest() {
    RestoreIndex();
    return text_.states().any() ? RestoreStates() : text_.RestartPoint(text_.length(), answer_);
  }

  void RestoreKeys() {
    for (const auto& [name, end] : pieces_) {
      auto snapshot = folder_.Open(name);
      if (snapshot == nullptr) break;
      text_.cache_.Restore(snapshot, end);
      chain_.push_back(std::move(snapshot));
    }
  }

  void RestoreIndex() {
    DerivedIndex* const index = text_.policy_->index();
    if (index == nullptr) return;
    const auto saved = folder_.OpenIndex(pieces_, index->Save().kind);
    if (saved != nullptr) index->Restore(text_.cache(), saved->index());
  }

  // Restores states from the last place of the chain from which the text can go on. Returns the
  // place; 0: there is none.
  int64_t RestoreStates() {
    const StateLayout& layout = text_.geometry().states;
    int64_t end = text_.length();
    for (size_t i = chain_.size(); i-- > 0; end = std::min(end, chain_[i]->info().begin)) {
      const SnapshotInfo& info = chain_[i]->info();
      if (info.layout.states.layers != layout.layers ||
          info.layout.states.floats != layout.floats) {
        continue;
      }
      for (int64_t state = std::ssize(info.states) - 1; state >= 0; --state) {
        const int64_t at = info.states[state];
        if (at > end || !CanGoOnFrom(at)) continue;
        try {
          text_.states_.Restore(at, chain_[i]->State(state));
          return at;
        } catch (const DamagedSnapshot& damage) {
          folder_.RemoveDamaged(damage);
          break;
        }
      }
    }
    return 0;
  }

  bool CanGoOnFrom(int64_t position) const {
    return text_.AllowedRestart(position, answer_) == position &&
           text_.HoldsSeenKeys(text_.policy(), position);
  }

  SnapshotFolder& folder_;
  const std::span<const SnapshotFolder::Piece> pieces_;
  const int64_t answer_;
  TextCache& text_;
  std::vector<std::shared_ptr<const Snapshot>> chain_;
};

int64_t RestoreText(SnapshotFolder& folder, std::span<const SnapshotFolder::Piece> pieces,
                    int64_t answer, TextCache& text) {
  return TextRestorer(folder, pieces, answer, text).Run();
}

}  // namespace godwit
