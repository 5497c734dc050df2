"""Which kinds of index are offered, and which one suits how many vectors.

Apart from FAISS, so that settings can be read without loading it.
"""

import re

FACTORIES = "Flat, SQfp16, SQ8, IVF<lists>,Flat, IVF<lists>,SQfp16, IVF<lists>,SQ8 and HNSW<links>"
AUTO = "auto"
EXACT_BELOW = 10_000  # vectors; an exact search among fewer takes well under a millisecond
# From so many numbers on, 200,000 vectors of 512, reading all of them takes one thread 17 ms of its processor, and one
# that other programs hold up longer than 20. As float16 they take 7, half the room, and find the same.
HALVED_FROM = 100_000_000
_OFFERED = re.compile(r"(IVF[1-9][0-9]*,)?(Flat|SQfp16|SQ8)|HNSW[1-9][0-9]*(,Flat)?")


def is_offered(factory: str) -> bool:
    """Whether a FAISS factory string is one of the kinds that give their vectors back."""
    return _OFFERED.fullmatch(factory) is not None


def fitting(factory: str, count: int, dim: int) -> str:
    """Returns the kind that so many vectors get where one is asked for; `auto` leaves it to their number."""
    if count < EXACT_BELOW:
        return "Flat"
    if factory == AUTO:
        return "SQfp16" if count * dim >= HALVED_FROM else "Flat"
    return factory
