"""What docs/python.md prints, run as it stands on a small real home, and what its sentences promise."""

from __future__ import annotations

import csv
import doctest
import io
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
import pytest
from PIL import Image

import perennial
from app.desk.errors import NoHome, UsageProblem
from app.home.settings import load_settings
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from tests.app.server.served import served
from tests.app.small_home import copy_of, small_home
from tests.forked_starts import COLD

pytestmark = pytest.mark.usefixtures("starts_at_once")

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "python.md"
PICTURES = 60


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new user's folder: photos/ and a table of German captions."""
    drawn = list(scenes.all_scenes())[::60][:PICTURES]
    write_chunk(
        tmp_path / "all.zip", scenes=[(one, "flat", n) for n, one in enumerate(drawn)], languages=["de"]
    )
    (tmp_path / "photos").mkdir()
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("captions.csv").decode())))
        rows[0]["name"] = "a.webp"
        for row in rows:
            row.setdefault("name", Path(row["image"]).name)
            (tmp_path / "photos" / row["name"]).write_bytes(archive.read(row["image"]))
    with (tmp_path / "photos-de.csv").open("w", encoding="utf-8", newline="") as table:
        out = csv.writer(table)
        out.writerow(["image", "caption"])
        out.writerows((f"photos/{row['name']}", row["caption"]) for row in rows)
    for name in ("PERENNIAL_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_the_page_prints_is_what_comes(place: Path) -> None:
    told, _, asked_of_a_server = PAGE.read_text(encoding="utf-8").partition("## A server")
    # The encoder of the default takes 300 MB and half a minute.
    _holds(told.replace("create=True)\n", 'create=True, model="perennial-tiny")\n', 1))
    settings = load_settings(home=place / "ada" / ".perennial")
    with served(settings) as server:
        _holds(">>> import perennial as p\n" + asked_of_a_server.replace("http://127.0.0.1:7860", server.url))


def _holds(text: str) -> None:
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("```"))
    examples = doctest.DocTestParser().get_doctest(lines, {}, PAGE.name, str(PAGE), 0)
    assert examples.examples
    said: list[str] = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=options, verbose=False).run(examples, out=said.append)
    assert not said, "".join(said)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[perennial.Perennial]:
    folder = copy_of(small_home(tmp_path_factory), tmp_path_factory.mktemp("program"))
    with perennial.open(folder) as opened:
        yield opened


def _with_picture(folder: Path, name: str, *, seed: int) -> Path:
    """Makes a folder with one picture, of noise."""
    folder.mkdir()
    noise = np.random.default_rng(seed).integers(0, 255, (70, 90, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / name)
    return folder


def test_importing_it_loads_nothing_heavy_and_no_home() -> None:
    code = (
        "import sys, perennial; perennial.connect; perennial.ERRORS; perennial.Answer;"
        "perennial.connect('http://127.0.0.1:9');"
        "print([m for m in ('torch', 'faiss', 'gradio', 'open_clip', 'transformers') if m in sys.modules])"
    )
    said = subprocess.run([COLD, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_an_answer_shows_its_pictures_in_a_row(home: perennial.Perennial) -> None:
    answer = home.search("a red boat", k=3)
    shown = answer._repr_html_()
    assert shown.count('<img src="data:image/webp;base64,') == 3
    for hit in answer:
        assert f"<figcaption>{hit.score:.3f} {hit.name}</figcaption>" in shown
        assert hit.name.endswith(".webp")
    assert "<p></p>" in shown


def test_a_name_with_signs_of_html_stays_text(home: perennial.Perennial, tmp_path: Path) -> None:
    name = "<b>&amp;.png"
    home.add(_with_picture(tmp_path / "odd", name, seed=1))
    answer = home.search(image=tmp_path / "odd" / name, k=1)
    assert answer[0].path == str(tmp_path / "odd" / name)
    assert "<figcaption>1.000 &lt;b&gt;&amp;amp;.png</figcaption>" in answer._repr_html_()
    assert answer[0].original().data == (tmp_path / "odd" / name).read_bytes()


def test_a_picture_may_be_a_file_its_bytes_or_one_of_pillows(
    home: perennial.Perennial, tmp_path: Path
) -> None:
    first = home.search("a red boat", k=1)[0]
    (tmp_path / "a.webp").write_bytes(home.desk.picture(first.id))
    data = (tmp_path / "a.webp").read_bytes()
    for image in (tmp_path / "a.webp", str(tmp_path / "a.webp"), data, first.image):
        assert home.search(image=image, k=1)[0].id == first.id
    with pytest.raises(UsageProblem, match=r"b\.webp cannot be read: No such file"):
        home.search(image=tmp_path / "b.webp")


def test_what_is_live_stays_loaded_until_another_release_is(
    home: perennial.Perennial, tmp_path: Path
) -> None:
    folder = Path(home.desk.where)
    before = home.search("boat", k=1).release
    loaded = home.desk.snapshot()  # type: ignore[attr-defined]
    assert home.desk.snapshot() is loaded  # type: ignore[attr-defined]
    with perennial.open(folder) as other:
        other.add(_with_picture(tmp_path / "new", "new.png", seed=2))
    found = home.search(image=tmp_path / "new" / "new.png", k=1)
    assert found.release != before
    assert found[0].name == "new.png"
    home.desk.take_out([found[0].id], "a test")
    assert home.search(image=tmp_path / "new" / "new.png", k=1)[0].id != found[0].id


def test_a_home_that_is_not_there_is_not_made_by_a_slip(tmp_path: Path) -> None:
    with pytest.raises(NoHome, match=r"create=True\) makes one"):
        perennial.open(tmp_path / "hoem")
    assert not (tmp_path / "hoem").exists()
    with pytest.raises(perennial.ERRORS, match="default_k"):
        perennial.open(tmp_path / "home", create=True, defaultk=3)


def test_what_it_returns_is_typed(home: perennial.Perennial) -> None:
    hit = assert_type(home.search("boat", k=1)[0], perennial.PictureHit)
    assert assert_type(hit.score, float | None)  # mypy reads this file
    assert (ROOT / "perennial" / "py.typed").exists()  # and that of who installs it
