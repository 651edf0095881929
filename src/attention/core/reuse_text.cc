#include "attention/core/reuse_text.h"

#include <cassert>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/move_keys.h"

namespace godwit {
namespace {

void Require(bool holds, std::string_view reason) {
  if (holds) return;
  Throw(ErrorKind::kUnsupported, "passages cannot be taken from the cache {}: read them as a text",
        reason);
}

}  // namespace

class TextReuser {
 public:
  static void Append(const Exec& exec, const TextCache& from, int64_t begin, int64_t count,
                     TextCache& text) {
    const int64_t position = text.length();
    if (count > text.limit_tokens() - position) {
      Throw(ErrorKind::kInput, "{} tokens and {} more exceed the context of {} tokens", position,
            count, text.limit_tokens());
    }
    std::vector<RotaryStep> turns(text.rotaries_.size());
    for (size_t i = 0; i < turns.size(); ++i) {
      turns[i].FillTurn(text.rotaries_[i], begin, position);
    }
    // Pages of saved texts are verified now, since no reading of this text would replace them.
    text.cache_.WillReadAll({0, position});
    text.branches_.clear();
    text.output_.clear();
    text.cache_.Reserve(count);
    try {
      for (int64_t layer = 0; layer < text.geometry_.layers; ++layer) {
        from.cache().WillRead(layer, ops::KvRange{begin, begin + count});
        ops::MoveKeys(exec, text.cache_.layout().OfLayer(layer), layer,
                      {.from = from.cache().View(layer),
                       .from_position = begin,
                       .to = text.cache_.View(layer),
                       .position = position,
                       .rows = count,
                       .turn = turns[text.geometry_.RotaryOf(layer)].table()});
      }
    } catch (...) {
      text.cache_.Truncate(position);
      throw;
    }
    text.Append(count);
  }
};

void RequireReuse(const TextCache& text) {
  const AttentionGeometry& geometry = text.geometry();
  Require(!text.states().any(),
          "for a model with recurrent layers, whose state is of a whole text");
  Require(geometry.learned_positions == 0, "for a model that has learned its positions");
  Require(!geometry.key_index, "for a model that chooses keys by an index of its own");
  Require(geometry.predicting == 0, "beside a layer for multi-token prediction");
  Require(
      !text.cache().layout().centred,
      "in this KV type, whose keys lie around the centre of their place in this model (bf16 has "
      "none)");
  Require(text.placement().merged_from() == INT64_MAX, "where several ranks share a text");
  Require(text.policy().facts().question_dependent_tokens == 0,
          "with a prefill whose last tokens see all before them (tail), wherever a text ends");
  Require(text.policy().facts().keys_suffice,
          "with this KV policy, which derives data from more than keys");
}

void ReuseTokens(const Exec& exec, const TextCache& from, int64_t begin, int64_t count,
                 TextCache& text) {
  RequireReuse(text);
  assert(0 <= begin && 0 <= count && begin + count <= from.length());
  const ops::KvRange dropped = from.cache().dropped();
  Require(dropped.begin >= dropped.end || begin + count <= dropped.begin || dropped.end <= begin,
          "of a text that has forgotten some of them");
  if (count > 0) TextReuser::Append(exec, from, begin, count, text);
}

}  // namespace godwit
