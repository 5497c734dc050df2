"""How many captions of earlier steps a tokenizer has come to cut into other tokens.

A shared vocabulary that grows with each language cuts known texts anew: merges learned from German fire on Italian
words, and new rows stand where trained ones stood. No mask over rows can prevent this forgetting, so it is reported
beside what was forgotten (CLL-CLIP's vocabulary; see `model_updates.parts.shared_table`).
"""

from app.bench.material import HELD_OUT, Material, Slice
from model_updates.encoder import Encoder
from model_updates.vocabulary import Vocabulary


class Segmentation:
    """Remembers how the held-out captions of each step were cut when it was taught."""

    def __init__(self, material: Material) -> None:
        self._slices = [one for one in material.slices if one.kind == HELD_OUT and not one.unseen]
        self._when_taught: dict[str, list[list[int]]] = {}

    def after(self, encoder: Encoder, step: int) -> float | None:
        """Returns the share of captions, percent, mean over earlier steps' slices, that are cut otherwise by now.

        Step 0 is before the first one. None where the encoder has no vocabulary of ours, or nothing was known before
        the step.
        """
        vocabulary = encoder.vocabulary
        if vocabulary is None:
            return None
        shares = []
        for one in self._slices:
            if one.since == step:
                self._when_taught[one.digest] = _cut(vocabulary, one)
            elif one.since < step:
                pairs = zip(self._when_taught[one.digest], _cut(vocabulary, one), strict=True)
                shares.append(sum(then != now for then, now in pairs) / len(one.captions))
        return round(100 * sum(shares) / len(shares), 2) if shares else None


def _cut(vocabulary: Vocabulary, one: Slice) -> list[list[int]]:
    return vocabulary.encode([text for _, text in one.captions], one.key.language)
