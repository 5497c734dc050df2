"""Claims about decisions on single pairs, where no server is."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.desk.errors import UsageProblem
from app.desk.probes import is_probes
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import held_pairs
from tests.app.small_home import copy_of, small_home


def test_the_probes_stay_as_they_were_drawn(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))
    with Workspace.open(settings) as workspace:
        (probes,) = [chunk for chunk in workspace.catalog.chunks() if is_probes(chunk)]
        pictures = [pair.image_id for pair in workspace.catalog.pairs(chunk=probes.id)]
        number = next(iter(workspace.catalog.pair_numbers(probes.id, pictures).values()))
        with pytest.raises(UsageProblem, match="holds the built-in checks"):
            held_pairs.decide(workspace, probes.id, take_out=[number], by="ada")
        assert workspace.catalog.chunk(probes.id).pairs == probes.pairs
