#!/usr/bin/env python3
"""Writes the grids of GGUF's types IQ2 and IQ3, src/weights/gguf_grids.cc, from gguf's package.

A block of these types names places in a grid, whose entries are the magnitudes of 8 or 4 neighbours.
The grids are part of the format. An entry is packed here: 2 bits for each magnitude of IQ2, 3 bits for
each of IQ3, the first in the lowest bits.

  python tools/make_gguf_grids.py
"""

from pathlib import Path

from gguf import quants

OUT = Path(__file__).resolve().parent.parent / "src" / "weights" / "gguf_grids.cc"
HEADER = '''// Made by tools/make_gguf_grids.py from gguf's Python package.
#include "weights/gguf_grids.h"

namespace godwit {

// clang-format off
'''


def packed(kind):
    """The entries of a type's grid, and the magnitudes that their digits stand for."""
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape).astype(int)
    magnitudes = sorted({int(x) for x in grid.flat})
    bits = 2 if len(magnitudes) <= 4 else 3
    digits = {x: i for i, x in enumerate(magnitudes)}
    entries = [sum(digits[int(x)] << bits * i for i, x in enumerate(row)) for row in grid]
    return entries, magnitudes


def main():
    text = HEADER
    for name in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"):
        entries, magnitudes = packed(getattr(quants, name))
        expected = [8, 25, 43] if name.startswith("IQ2") else None
        print(name, len(entries), magnitudes)
        assert expected is None or magnitudes == expected
        words = name.split("_")
        variable = "k" + words[0].capitalize() + words[1].capitalize() + "Grid"
        text += f"\nconst uint16_t {variable}[{len(entries)}] = {{\n"
        for i in range(0, len(entries), 12):
            text += "    " + ", ".join(str(x) for x in entries[i:i + 12]) + ",\n"
        text += "};\n"
    OUT.write_text(text + "\n// clang-format on\n\n}  // namespace godwit\n")


if __name__ == "__main__":
    main()
