"""What each test costs, in processor time of its own process and of the processes that ended meanwhile.

make test PYTEST="-p tests.processor_time"      # writes processor-time.jsonl
python -m tests.processor_time                  # adds up by file, the dearest first
"""

from __future__ import annotations

import json
import resource
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

FILE = Path("processor-time.jsonl")


def _spent() -> list[float]:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return [one.ru_utime + one.ru_stime for one in used]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Writes a line for each test, its fixtures included."""
    before = _spent()
    answer = yield
    own, children = (after - then for after, then in zip(_spent(), before, strict=True))
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps([item.nodeid, round(own, 3), round(children, 3)]) + "\n")
    return answer


if __name__ == "__main__":
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for line in FILE.read_text(encoding="utf-8").splitlines():
        name, own, children = json.loads(line)
        spent[name.partition("::")[0]][0] += own
        spent[name.partition("::")[0]][1] += children
    for name, (own, children) in sorted(spent.items(), key=lambda one: -sum(one[1])):
        sys.stdout.write(f"{own:8.1f} {children:8.1f}  {name}\n")
    sys.stdout.write(f"{sum(sum(one) for one in spent.values()) / 60:8.1f} minutes in all\n")
