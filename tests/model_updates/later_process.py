"""A process that knows nothing but version folders: it opens each, asks it, and teaches it one update more."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.routes import BASE
from model_updates.strategy import State
from model_updates.versions import load_state, load_version
from tests.model_updates.contract import carry, made, run, second_context
from tests.model_updates.tiny import DOMAIN, NEGATIVE, draw, image_ids, toy_pairs

ANSWERS, TAUGHT, FAILED = "answers.safetensors", "taught.safetensors", "failed.txt"
ROOT = Path(__file__).parents[2]


def start(folder: Path) -> None:
    """Runs this module on a folder of versions, each named for its strategy; what fails is left out of the results."""
    command = [sys.executable, "-m", "tests.model_updates.later_process", folder, torch.get_num_threads()]
    subprocess.run(list(map(str, command)), cwd=ROOT, check=True)


def answers(encoder: Encoder) -> dict[str, Tensor]:
    """Vectors of German and English texts, of pictures of each domain and an unknown one, and the domains guessed."""
    pictures = [draw(f"{image_id}{style}") for image_id in image_ids() for style in ("", f" {NEGATIVE}")]
    domains = dict.fromkeys((DOMAIN, "unknown", *encoder.image_routes))
    found = {tag: encoder.encode_texts([p.text for p in toy_pairs(tag)], tag) for tag in ("de", "en")}
    found |= {f"of {domain}": encoder.encode_images(pictures, domain) for domain in domains}
    places = {BASE: 0, **{route: n for n, route in enumerate(encoder.image_routes, start=1)}}
    guessed = [places[route] for route in encoder.guess_routes(encoder.trunk_features(pictures))]
    return {name: torch.from_numpy(rows) for name, rows in found.items()} | {"guessed": torch.tensor(guessed)}


def _look(folder: Path) -> None:
    name = folder.name
    encoder = load_version(folder).encoder
    save_file(answers(encoder), folder / ANSWERS)
    strategy = made(name)
    carry(strategy, load_state(folder, name) or State())
    run(strategy, second_context(name, encoder))
    state = {key: value.detach().clone().contiguous() for key, value in encoder.state().items()}
    save_file(state, folder / TAUGHT)


def _main(folder: Path, threads: int) -> None:
    torch.set_num_threads(threads)
    for version in sorted(path for path in folder.iterdir() if path.is_dir()):
        try:
            _look(version)
        except Exception:  # noqa: BLE001 - one strategy's failure is that strategy's
            traceback.print_exc()


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
