// StateCache: the states of one text's recurrent layers (state_layout.h, ops/state_piece.h). It
// stands beside the table of keys of the text's KvCache and advances with it.
//
// The last page is that of the tile in which the text goes on. A few earlier ones are kept, to
// which the text can return: the one before with its rows, and the others without. A step writes
// rows behind the text's end, and states into pages that it reserved: until it ends, nothing that
// the text remembers has changed. Forks share all pages. Rows that a fork is about to write are
// copied first. Not thread-safe, except Fork and the
// destructor, which other texts need not know of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/state_pool.h"
#include "ops/state_piece.h"
#include "tensor/workspace.h"

namespace godwit {

class StateCache {
 public:
  // pool: null for a model without recurrent layers, which remembers nothing.
  explicit StateCache(std::shared_ptr<StatePool> pool);
  StateCache(StateCache&&) = default;
  StateCache& operator=(StateCache&&) = default;

  // A fork: the same text, and later another one.
  StateCache Fork() const;

  // Whether the model has recurrent layers. All else is without effect if it has none, and
  // positions are then not counted.
  bool any() const { return pool_ != nullptr; }
  int64_t length() const { return length_; }
  int64_t bytes() const;

  // Reserves pages for a step of exactly so many tokens, or for a tree of draft tokens
  // (Segment::parents). Earlier reservations end. Throws Error(kMemory) with everything as it was.
  void Reserve(int64_t tokens);
  void ReserveTree(std::span<const int32_t> parents);
  // Gives back what is reserved: the step did not happen.
  void Release() noexcept;
  // Gives back all pages but the last, when their memory is needed elsewhere. The text can then
  // return to its last tile alone. False: there were none.
  bool ReleaseKept() noexcept;

  // The number of pieces of the reserved step, and the pieces of a layer. first_row: the text's
  // first row in the step. The lists of rows lie in the workspace.
  int64_t pieces() const;
  void FillPieces(Workspace& workspace, int64_t layer, int64_t first_row,
                  ops::StatePiece* pieces) const;

  // Ends a step of as many tokens as were reserved.
  void Append(int64_t tokens);
  // Ends a step of a tree: keeps the path that ends with `row`.
  void Accept(int64_t row);

  // Forgets the positions >= length. Only to where the text can return: the tile's page is there.
  bool CanTruncate(int64_t length) const;
  void Truncate(int64_t length);
  // The last position, up to `length`, to which the text can return; 0 always is one.
  int64_t RestartPoint(int64_t length) const;

  // The beginnings of tiles, behind the text's beginning, whose states are held, ascending.
  std::vector<int64_t> Positions() const;
  // The state of a layer at one of these positions [floats].
  std::span<const float> StateAt(int64_t position, int64_t layer) const;
  // Makes a new text go on from a state of all layers [layers, floats] at a tile's beginning.
  // Throws Error(kMemory).
  void Restore(int64_t position, std::span<const std::byte> state);

 private:
  struct Page {
    int64_t tile = -1;
    StateBlock state = {};
    StateBlock rows = {};  // none: the text can return to the tile's beginning alone
  };

  // A reserved tree of draft tokens. Its rows lie in blocks of their own, row after row. A row that
  // ends a tile has a block for the state behind it.
  struct Tree {
    std::vector<int32_t> parents = {};
    std::vector<int64_t> positions = {};  // of the rows
    std::vector<StateBlock> rows = {};
    std::vector<std::pair<int64_t, Page>> ends = {};  // row, page without rows
    std::vector<Page> tiles = {};  // that a path may enter, ascending, without states
  };

  const StateLayout& layout() const { return pool_->layout(); }
  float* State(const Page& page, int64_t layer) const;
  float* Row(const StateBlock& rows, int64_t layer, int64_t slot) const;
  // Blocks for a step: states of pages, and rows. The text's last page gets what it lacks, too.
  struct Blocks {
    std::vector<StateBlock> states;
    std::vector<StateBlock> rows;
  };
  Blocks TakeBlocks(int64_t states, int64_t rows);
  const Page* Find(int64_t tile) const;
  const Page& PageOfStep(int64_t tile) const;
  const StateBlock& RowsOfStep(int64_t tile) const;
  const Page* EndOf(int64_t row) const;
  float* TreeRow(int64_t layer, int64_t row) const;
  void FillTree(Workspace& workspace, int64_t layer, int64_t first_row,
                ops::StatePiece* pieces) const;
  void DropUnkept() noexcept;

  std::shared_ptr<StatePool> pool_;
  int64_t length_ = 0;
  std::vector<Page> pages_;     // by tile, ascending; none before the first step
  std::vector<Page> reserved_;  // of later tiles, ascending
  int64_t reserved_tokens_ = 0;
  Tree tree_;
};

}  // namespace godwit
