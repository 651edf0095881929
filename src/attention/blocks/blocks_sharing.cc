#include "attention/blocks/blocks_sharing.h"

namespace godwit {

SharedChoices::SharedChoices(std::shared_ptr<const BlocksGeometry> geometry)
    : geometry_(std::move(geometry)),
      choices_(ToNextLayers(*geometry_)
                   ? 1
                   : static_cast<size_t>(std::max<int64_t>(1, geometry_->choosers))) {}

const ChosenBlocks* SharedChoices::Find(const RowRun& run, int64_t layer, int64_t reader,
                                        int64_t chooser) const {
  const bool leads = geometry_->Leads(layer);
  if (!shares() || (leads && chooser == run.position)) return nullptr;
  // If the chooser was read elsewhere, the first token read here has chosen.
  for (int64_t at = chooser; at < run.position + (leads ? 0 : 1); ++at) {
    const auto* const found = choices_[PlaceOf(layer, reader)].Find(at, HistoryRowAt(run, at));
    if (found != nullptr) return found;
  }
  return nullptr;
}

bool SharedChoices::Remembers(int64_t chooser, int64_t length) const {
  for (int64_t at = chooser; at < length; ++at) {
    const auto* const found = choices_.front().Find(at, PathHistory<ChosenBlocks>::kOfText);
    if (found != nullptr) return true;
  }
  return false;
}

void SharedChoices::Put(const RowRun& run, int64_t layer, int64_t reader, int64_t local,
                        MatrixView<const int32_t> chosen) {
  if (!shares()) return;
  choices_[PlaceOf(layer, reader)].Put(run.position, run.RowAt(run.position), {local, chosen});
}

}  // namespace godwit
