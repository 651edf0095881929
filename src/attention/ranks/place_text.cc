#include "attention/ranks/place_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "attention/policies/prefill_spec.h"
#include "base/error.h"

namespace godwit {
namespace {

TextPlacement PlaceInRing(const PolicyOptions& options, const PrefillSpec& spec,
                          PolicyFacts& facts) {
  const int ranks = options.ranks->size();
  if (!facts.shows_all) {
    Throw(ErrorKind::kUnsupported,
          "{} ranks that read a context by {} work with the KV policy dense only, not with \"{}\"",
          ranks, spec.ToString(), options.spec);
  }
  facts.prefill = spec.ToString();
  facts.name += fmt::format(", read by {}", facts.prefill);
  facts.explanation += fmt::format(
      " The context is read by {} ranks together and spread over them, {} tokens of each rank at a "
      "time.",
      ranks, spec.ring);
  return TextPlacement::InRing(options.ranks->rank(), ranks, spec.ring);
}

void RefuseForStar(const AttentionGeometry& geometry, const PolicyOptions& options,
                   const PrefillSpec& spec, const PolicyFacts& facts) {
  const int ranks = options.ranks->size();
  if (!spec.star()) {
    Throw(ErrorKind::kInput,
          "{} ranks share a context only with prefill ring, star or auto, not {}", ranks,
          options.prefill.empty() ? "as one text" : "by " + spec.ToString());
  }
  if (spec.overlap > 0) {
    Throw(ErrorKind::kUnsupported,
          "star with an overlap of {} tokens: a rank's first block would see keys that another "
          "rank has not computed yet; leave the overlap out on {} ranks",
          spec.overlap, ranks);
  }
  if (spec.tail > 0) {
    Throw(ErrorKind::kUnsupported,
          "star with a tail of {} tokens: they would see all of the context, and each of {} ranks "
          "has a part of it; leave the tail out",
          spec.tail, ranks);
  }
  if (spec.moves_anchor()) {
    Throw(ErrorKind::kUnsupported, "{}: an anchor that is moved or foreign needs one rank, not {}",
          spec.ToString(), ranks);
  }
  if (!facts.one_rank_reason.empty()) {
    Throw(ErrorKind::kUnsupported, "{} ranks cannot share a text with the KV policy \"{}\": {}",
          ranks, options.spec, facts.one_rank_reason);
  }
  if (spec.block % facts.chosen_tokens != 0) {
    Throw(ErrorKind::kInput,
          "star has blocks of {} tokens on {} ranks, which is no multiple of the {} tokens of "
          "block_size: make it one",
          spec.block, ranks, facts.chosen_tokens);
  }
  if (geometry.learned_positions != 0) {
    Throw(ErrorKind::kUnsupported,
          "a model with learned positions for {} tokens cannot be run on {} ranks",
          geometry.learned_positions, ranks);
  }
  if (std::ranges::any_of(geometry.windows, [](int64_t window) { return window != 0; })) {
    Throw(ErrorKind::kUnsupported,
          "this model has a sliding window or chunks, which see across the blocks of {} ranks: use "
          "prefill ring",
          ranks);
  }
}

TextPlacement PlaceInStar(const AttentionGeometry& geometry, const PolicyOptions& options,
                          const PrefillSpec& spec, PolicyFacts& facts) {
  RefuseForStar(geometry, options, spec, facts);
  const int ranks = options.ranks->size();
  facts.explanation += fmt::format(
      " The blocks are spread over {} ranks.{}", ranks,
      facts.chosen_tokens > 1
          ? " Each rank chooses among its own blocks, in proportion to its share of the context."
          : "");
  TextPlacement::Star star{
      .block = spec.block, .anchor = spec.anchor, .chosen = facts.chosen_tokens};
  if (spec.by_speed) star.speeds = options.rank_speeds;
  star.block_bytes = LayoutOf(geometry, options.kv_type).BytesFor(spec.block);
  return TextPlacement::InStar(options.ranks->rank(), ranks, std::move(star));
}

}  // namespace

TextPlacement PlaceText(const AttentionGeometry& geometry, const PolicyOptions& options,
                        PolicyFacts& alone) {
  if (options.ranks == nullptr || options.ranks->size() == 1) return {};
  if (geometry.states.layers > 0) {
    Throw(ErrorKind::kUnsupported,
          "{} layers of this model are recurrent: they read every token in order, so {} ranks "
          "cannot share a text: run one rank",
          geometry.states.layers, options.ranks->size());
  }
  if (!geometry.layer_shapes.empty() || !geometry.readers.empty()) {
    Throw(ErrorKind::kUnsupported,
          "layers of this model have different heads or read keys of other layers, so {} ranks "
          "cannot share a text: run one rank",
          options.ranks->size());
  }
  if (geometry.key_index) {
    Throw(ErrorKind::kUnsupported,
          "this model itself chooses the {} keys that a token sees, among all keys of the text, so "
          "{} ranks cannot share a text: run one rank",
          geometry.key_index->best, options.ranks->size());
  }
  const PrefillSpec spec = options.prefill.empty() ? PrefillSpec() : ParsePrefill(options.prefill);
  TextPlacement placement = spec.ring > 0 ? PlaceInRing(options, spec, alone)
                                          : PlaceInStar(geometry, options, spec, alone);
  alone.separates_question = true;
  return placement;
}

}  // namespace godwit
