"""A photo library on the command line, over REST, in Python and on the page: whatever happens to it, all four agree.

The library is the one of `tests/photo_library.py`, taken in, searched, moved, deleted and watched by one home. What is
on the disk says what each of the four has to show.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urljoin

import httpx
import pytest
from playwright.sync_api import Page, expect

import perennial
from app.desk.hits import SearchRequest
from ingest.pair import image_id_of
from tests.app.commands.running import document, run
from tests.app.server.served import Served, make_home, served
from tests.app.ui.browsing import IN_A_BROWSER, TILES, choose, open_page, settle, unfold
from tests.ingest.material import picture
from tests.photo_library import LibraryFile, write_library

pytestmark = IN_A_BROWSER
MANY = 1000
NEW = picture(7, size=(64, 64))
Hits = list[tuple[str, frozenset[str]]]
"""Of each hit its id, and the paths of its files that are there."""


class Door(Protocol):
    """One of the ways in."""

    def find(self, **asked: Any) -> Hits:
        """Returns what a search finds, in its order."""
        ...

    def original(self, image_id: str) -> bytes:
        """Returns a picture's file."""
        ...

    def report(self, chunk: str) -> set[tuple[str, str, str]]:
        """Returns place, code and sentence of what was not taken in."""
        ...

    def refusal(self, where: str) -> str:
        """Returns what is said to a filter that cannot be read."""
        ...

    def years(self, where: str) -> dict[str, int]:
        """Returns how many pictures that pass a filter were taken in each year."""
        ...


def _hits(documents: Sequence[Mapping[str, Any]]) -> Hits:
    def paths(hit: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(one["place"] for one in hit["sources"] if one["kind"] == "file" and not one["gone"])

    return [(hit["id"], paths(hit)) for hit in documents]


def _refused(rows: Sequence[Mapping[str, str]]) -> set[tuple[str, str, str]]:
    return {(row["where"], row["code"], row["sentence"]) for row in rows if row["outcome"] == "rejected"}


@dataclass
class CommandLine:
    home: Path
    scratch: Path

    def find(self, **asked: Any) -> Hits:
        options = [part for name, value in asked.items() if name != "text" for part in (f"--{name}", value)]
        words = [asked["text"]] if "text" in asked else []
        return _hits(document("search", *words, "-k", str(MANY), *options, home=self.home)["hits"])

    def original(self, image_id: str) -> bytes:
        saved = self.scratch / image_id
        said = run("pictures", image_id, "--save", saved, home=self.home)
        assert said.exit_code == 0, said.output
        return saved.read_bytes()

    def report(self, chunk: str) -> set[tuple[str, str, str]]:
        return _refused(document("check", chunk, home=self.home)["report"]["rows"])

    def refusal(self, where: str) -> str:
        return str(document("search", "--where", where, home=self.home, code=2)["error"])

    def years(self, where: str) -> dict[str, int]:
        counted = document("search", "--facets", "--where", where, home=self.home)
        return {one["value"]: one["count"] for one in counted["years"]}


@dataclass
class Rest:
    client: httpx.Client

    def find(self, **asked: Any) -> Hits:
        answer = self.client.post("/v1/search", json={"k": MANY, **asked})
        assert answer.status_code == 200, answer.text
        return _hits(answer.json()["hits"])

    def original(self, image_id: str) -> bytes:
        return self.client.get(f"/v1/images/{image_id}/original").raise_for_status().content

    def report(self, chunk: str) -> set[tuple[str, str, str]]:
        return _refused(self.client.get(f"/v1/chunks/{chunk}").json()["report"]["rows"])

    def refusal(self, where: str) -> str:
        return str(self.client.post("/v1/search", json={"where": where}).json()["error"])

    def years(self, where: str) -> dict[str, int]:
        counted = self.client.post("/v1/facets", json={"where": where}).json()
        return {one["value"]: one["count"] for one in counted["years"]}


@dataclass
class InPython:
    home: perennial.Perennial

    def find(self, **asked: Any) -> Hits:
        return [
            (hit.id, frozenset(one.place for one in hit.sources if one.kind == "file" and not one.gone))
            for hit in self.home.search(k=MANY, **asked)
        ]

    def original(self, image_id: str) -> bytes:
        return self.home.desk.original(image_id).data

    def report(self, chunk: str) -> set[tuple[str, str, str]]:
        return _refused(self.home.desk.chunk(chunk).report["rows"])

    def refusal(self, where: str) -> str:
        with pytest.raises(perennial.ERRORS) as refused:
            self.home.search(where=where)
        return str(refused.value)

    def years(self, where: str) -> dict[str, int]:
        counted = self.home.desk.facets(SearchRequest(where=where))
        return {one.value: one.count for one in counted.years}


@dataclass
class OnThePage:
    page: Page
    url: str
    looked_at: dict[str, frozenset[str]] = field(default_factory=dict)
    """Where the pictures lie whose originals were asked for."""

    def find(self, **asked: Any) -> Hits:
        """Goes down to the end; places are shown of one picture at a time (`places`), so there are none here."""
        open_page(self.page, f"{self.url}/?{urlencode(asked)}")
        expect(
            self.page.locator(f"{TILES}, .state").first
        ).to_be_visible()  # it asks without Gradio, perhaps later
        while self.page.locator("#more").is_visible():
            self.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            settle(self.page)
        ids = self.page.locator(f"{TILES} > a").evaluate_all("all => all.map((one) => one.dataset.id)")
        return [(one, frozenset()) for one in ids]

    def places(self, image_id: str) -> frozenset[str]:
        """Opens a picture large and reads where it lies."""
        open_page(self.page, f"{self.url}/?picture={image_id}")
        expect(self.page.locator("#viewer .places")).to_be_visible()
        return frozenset(self.page.locator("#viewer .places li:not(.gone) span").all_inner_texts())

    def original(self, image_id: str) -> bytes:
        self.looked_at[image_id] = self.places(image_id)
        link = self.page.locator("#viewer a.chip").last.get_attribute("href")
        return self.page.request.get(urljoin(self.url, str(link))).body()

    def report(self, chunk: str) -> set[tuple[str, str, str]]:
        open_page(self.page, f"{self.url}/admin/")
        choose(self.page, "#known", chunk)
        self.page.click("#use-known")
        expect(self.page.locator("#check-verdict h2")).to_be_visible()
        unfold(self.page, "What was taken in")
        expect(self.page.locator("#report-csv")).to_be_visible()
        with self.page.expect_download() as saved:
            self.page.click("#report-csv")
        text = Path(saved.value.path()).read_text(encoding="utf-8-sig")
        return _refused(list(csv.DictReader(io.StringIO(text))))

    def refusal(self, where: str) -> str:
        open_page(self.page, f"{self.url}/?where={quote(where)}")
        return self.page.locator("#results, #status, .state").all_inner_texts()[0]

    def years(self, where: str) -> dict[str, int]:
        open_page(self.page, f"{self.url}/?where={quote(where)}")
        self.page.click("#filters button")
        line = next(line for line in self.page.locator("#facets").inner_text().splitlines() if "Year" in line)
        return {year: int(count) for year, count in re.findall(r"(\d{4}) (\d+)", line)}


@dataclass
class Walk:
    """One home, four doors to it, and the folders that it knows."""

    doors: dict[str, Door]
    on_page: OnThePage
    rest: Rest
    folders: Sequence[Path]
    pictures: Collection[str]  # ids of all that are pictures

    def on_disk(self) -> dict[str, str]:
        """By path the id of each picture that lies in the folders."""
        files = [one for folder in self.folders for one in folder.rglob("*") if one.is_file()]
        found = {str(one): image_id_of(one.read_bytes()) for one in files if not one.is_symlink()}
        return {path: image_id for path, image_id in found.items() if image_id in self.pictures}

    def agree(self, wanted: Mapping[str, str], *, without: str = "") -> None:
        """Holds the doors to what is on the disk; the server hears of what others do a moment later."""
        deadline = time.monotonic() + 60
        while _by_path(self.rest.find()) != wanted and time.monotonic() < deadline:
            time.sleep(0.1)
        found = {name: door.find() for name, door in self.doors.items() if name != without}
        for name in ("command line", "REST", "Python"):
            assert _by_path(found[name]) == wanted, name
        for name, hits in found.items():
            assert [one for one, _ in hits] == [one for one, _ in found["REST"]], name


def _by_path(hits: Hits) -> dict[str, str]:
    return {path: image_id for image_id, paths in hits for path in paths}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[LibraryFile]]:
    folder = tmp_path_factory.mktemp("walk") / "Photos"
    return folder, write_library(folder, files=180)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, library: tuple[Path, list[LibraryFile]]
) -> Iterator[Served]:
    """A server that watches a folder which is not there yet, like that of a camera."""
    settings = make_home(tmp_path_factory.mktemp("home"), watch=[library[0].parent / "Camera"])
    with served(settings, with_pages=True) as running:
        yield running


def test_four_doors_show_one_library(
    server: Served,
    library: tuple[Path, list[LibraryFile]],
    page: Page,
    tmp_path: Path,
) -> None:
    folder, files = library
    with server.client() as client, perennial.open(server.settings.home) as home:
        rest, on_page = Rest(client), OnThePage(page, server.url)
        command_line = CommandLine(server.settings.home, tmp_path)
        doors: dict[str, Door] = {
            "command line": command_line,
            "REST": rest,
            "Python": InPython(home),
            "page": on_page,
        }
        known = [(folder / file.path).read_bytes() for file in files if file.fate == "picture"] + [NEW]
        folders = [folder, folder.parent / "Camera"]
        walk = Walk(doors, on_page, rest, folders, set(map(image_id_of, known)))

        added = document("add", folder, home=server.settings.home)
        wanted = walk.on_disk()
        assert added["new_images"] == len(set(wanted.values()))
        walk.agree(wanted)
        _the_same_is_refused(walk, files, added["chunk_id"])
        _the_same_is_found(walk, folder)
        _originals_are_the_files(walk, wanted)

        shutil.move(folder / "2016" / "2016-08 Bretagne", folder / "Bretagne")
        shutil.move(folder / "Panorama.jpg" / "teil 1.jpg", folder / "2017" / "östlich.jpg")
        moved = home.add(folder).report
        assert (moved["new_images"], moved["gone"]) == (0, 0)
        walk.agree(walk.on_disk(), without="page")  # whose answer has ids alone, and those are as before

        shutil.rmtree(folder / "2021" / "Garten" / "RAW")
        shutil.rmtree(folder / "Beste Bilder")  # copies, of which the originals are still there
        gone = document("add", folder, home=server.settings.home)
        assert gone["gone"] == 6
        walk.agree(walk.on_disk())

        _a_watched_folder_is_followed(walk, folder)


def _the_same_is_refused(walk: Walk, files: Sequence[LibraryFile], chunk: str) -> None:
    reports = {name: door.report(chunk) for name, door in walk.doors.items()}
    expected = {(file.path, file.code) for file in files if file.fate == "refused"}
    for name, report in reports.items():
        assert {(where, code) for where, code, _ in report} == expected, name
        assert report == reports["REST"], name
        assert all(sentence for _, _, sentence in report)
    said = {name: door.refusal("taken = 2024 AND (") for name, door in walk.doors.items()}
    assert said["REST"]
    for name, words in said.items():
        assert said["REST"].removesuffix(".") in words, name


def _the_same_is_found(walk: Walk, folder: Path) -> None:
    for asked in (
        {"text": "a red boat"},
        {"where": f'folder = "{folder / "2017" / "東京"}" AND NOT taken = none'},
        {"text": "a house at night", "where": "taken = 2019 OR (camera ~ canon AND width >= 200)"},
        {"where": "format = heif"},
    ):
        found = {name: door.find(**asked) for name, door in walk.doors.items()}
        assert found["REST"], asked
        for name, hits in found.items():
            assert [one for one, _ in hits] == [one for one, _ in found["REST"]], (name, asked)
    years = {name: door.years("NOT taken = none AND width >= 200") for name, door in walk.doors.items()}
    assert len(years["REST"]) == 6
    assert all(counted == years["REST"] for counted in years.values()), years


def _originals_are_the_files(walk: Walk, wanted: Mapping[str, str]) -> None:
    for ending in (".JPG", ".HEIC", ".DNG", "\U0001f382.jpg", ".gif"):
        path = next(one for one in sorted(wanted) if one.endswith(ending))
        image_id = wanted[path]
        for name, door in walk.doors.items():
            assert door.original(image_id) == Path(path).read_bytes(), (name, path)
        at = {one for one, other in wanted.items() if other == image_id}
        assert walk.on_page.looked_at[image_id] == at


def _a_watched_folder_is_followed(walk: Walk, folder: Path) -> None:
    camera = folder.parent / "Camera"
    camera.mkdir()
    for number, file in enumerate(sorted((folder / "2014" / "Hochzeit Müller").iterdir())[:3]):
        (camera / f"{number}.jpg").write_bytes(file.read_bytes())
    (camera / "new.png").write_bytes(NEW)
    walk.agree(walk.on_disk(), without="page")
    (camera / "new.png").rename(camera / "better name.png")
    (camera / "0.jpg").unlink()
    walk.agree(walk.on_disk(), without="page")
    (camera / "better name.png").unlink()
    walk.agree(walk.on_disk())
