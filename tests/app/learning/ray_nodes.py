"""A Ray cluster of two simulated nodes, for the tests of what runs on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


@contextmanager
def two_nodes() -> Iterator[Any]:
    """Two nodes of one core; this process belongs to the first."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'perennial-search[ray]'")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("TMPDIR", "/tmp")  # the paths of sockets have to be short
        made = Cluster(initialize_head=True, head_node_args=NODE)
        made.add_node(**NODE)
        yield made
        made.shutdown()


@contextmanager
def one_thread() -> Iterator[None]:
    """More would not fit into a node."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def processes(named: str) -> list[psutil.Process]:
    """Processes of the cluster whose command line has a word in it."""
    return [one for one in psutil.Process().children(recursive=True) if named in _command_of(one)]


def _command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended meanwhile
        return ""
