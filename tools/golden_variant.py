"""The ingredients of one golden checkpoint. The lists are in golden_variants_*.py."""

import copy
from dataclasses import dataclass, field

# The tests' tolerance, as a share of the largest logit; golden_test.cc accepts a quarter of it. A
# golden must show a mistake at ten times this.
TOLERANCE = 2e-4
MIN_EFFECT = 10 * TOLERANCE


@dataclass
class Variant:
    family: str
    name: str
    config: dict  # config.json in the published form, with model_type
    n_tokens: int = 40
    dtype: str = "float32"  # the engine's type of weights; golden_test.cc asks for it
    stored: str | None = None  # the file's type; none: bfloat16, which is half as large, for float32
    contrasts: list = field(default_factory=list)  # config overrides that must change the logits
    min_effect: float = MIN_EFFECT  # by at least this
    score_gain: float = 2.0  # scale of the query and key weights: how uneven attention is
    context: int | None = None  # length that the dynamic rotary base was computed for
    new_style: bool = False  # leave config.json as transformers writes it
    max_shard_size: str | None = None
    extra: str | None = None  # one of make_goldens.EXTRAS: tensors to tolerate

    @property
    def path(self):
        return f"{self.family}/{self.name}"

    @property
    def stored_dtype(self):
        return self.stored or {"float32": "bfloat16"}.get(self.dtype, self.dtype)


def merged(base, overrides):
    """base with overrides; a value of `...` removes the key."""
    result = copy.deepcopy(base) | copy.deepcopy(overrides)
    return {key: value for key, value in result.items() if value is not ...}


# The exact GELU and its two tanh forms are so close that only sharp attention tells them apart.
GELU = {"score_gain": 4.0, "min_effect": 2 * TOLERANCE}
