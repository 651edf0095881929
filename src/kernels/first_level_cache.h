// How large a core's first-level data cache is, for kernels that fetch ahead.
#pragma once

namespace godwit::kernels {

// Whether the first-level cache holds the next tile of keys and values beside the one in use. It
// does with 48 KiB or more (Zen 5, Sapphire Rapids), not with 32 (Zen 4). Changes speed, never the
// result.
extern const bool kHoldsNextTile;

}  // namespace godwit::kernels
