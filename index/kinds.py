"""Which kinds of index are offered; apart from FAISS, so that settings can be read without loading it."""

import re

FACTORIES = "Flat, SQfp16, SQ8, IVF<lists>,Flat, IVF<lists>,SQfp16, IVF<lists>,SQ8 and HNSW<links>"
_OFFERED = re.compile(r"(IVF[1-9][0-9]*,)?(Flat|SQfp16|SQ8)|HNSW[1-9][0-9]*(,Flat)?")


def is_offered(factory: str) -> bool:
    """Whether a FAISS factory string is one of the kinds that give their vectors back."""
    return _OFFERED.fullmatch(factory) is not None
