"""Claims about the verb `pictures`, on a home and on the server of it, and about the client's methods behind it."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.client import connect
from app.commands import cli
from app.desk.hits import SearchRequest
from app.desk.pictures import NewItem
from ingest.samples.scene_painting import draw
from ingest.samples.scenes import all_scenes
from tests.app.server.served import PICTURES, Served, make_home, served
from tests.app.server.test_work import ended, hits_after_a_moment


def run(server: Served, door: str, *arguments: str) -> Any:
    place = str(server.settings.home) if door == "--home" else server.url
    return CliRunner().invoke(cli.app, ["pictures", *arguments, door, place])


@pytest.mark.parametrize("door", ["--home", "--server"])
def test_a_picture_is_shown_taken_out_listed_and_put_back(tmp_path: Path, door: str) -> None:
    with served(make_home(tmp_path)) as server, server.client() as client:
        image_id = server.serving.workspace.catalog.gallery_ids()[0]
        shown = run(server, door, image_id[:12])
        assert (shown.exit_code, image_id in shown.stdout) == (0, True), shown.output
        known = json.loads(run(server, door, image_id, "--json").stdout)
        assert {one["language"] for one in known["captions"]} == {"en", "de"}
        assert "No picture was taken out" in run(server, door, "--withheld").stdout

        out = run(server, door, image_id[:12], "--take-out", "--why", "she asked for it", "--json")
        document = json.loads(out.stdout)
        assert [(one["id"], one["changed"]) for one in document["results"]] == [(image_id, True)]
        assert ended(client, document["job"])["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES - 1) == PICTURES - 1
        assert "she asked for it" in run(server, door, "--withheld").stdout
        assert "Taken out by" in run(server, door, image_id).stdout
        again = run(server, door, image_id, "--take-out", "--why", "again")
        assert "were so already" in again.stdout

        back = json.loads(run(server, door, image_id, "--put-back", "--json").stdout)
        assert ended(client, back["job"])["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES) == PICTURES


@pytest.mark.parametrize("door", ["--home", "--server"])
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "Name a picture"),
        (("0" * 64,), 1, "No picture has an id"),
        (("zebra", "--take-out", "--why", "x"), 2, "zebra"),
        (("a" * 12, "--take-out"), 2, "Say why"),
        (("a" * 12, "--take-out", "--put-back"), 2, "Choose one"),
        (("a" * 12, "--withheld"), 2, "takes no names"),
        (("a" * 12, "b" * 12), 2, "one picture is shown"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_says_nothing_is_refused_alike(
    server: Served, door: str, arguments: tuple[str, ...], code: int, says: str
) -> None:
    refused = run(server, door, *arguments)
    assert (refused.exit_code, says.lower() in refused.stderr.lower()) == (code, True), refused.output


def test_the_client_adds_pictures_and_gets_vectors(server: Served) -> None:
    drawn = io.BytesIO()
    draw(list(all_scenes())[200], "flat", seed=1).save(drawn, "PNG")
    hut = base64.b64encode(drawn.getvalue()).decode()
    with connect(server.url) as desk:
        items = [NewItem(image=hut, caption="a hut", language="en"), NewItem(image="bm8gcGljdHVyZQ==")]
        added = desk.add_items(items, name="huts")
        assert [one.status for one in added.results] == [202, 422]
        vectors = desk.embed(["a hut"], [hut], language="en")
        assert [len(one.embedding or ()) for one in vectors.results] == [vectors.dim] * 2
        (refused,) = desk.put_back([desk.search(SearchRequest(text="boat")).hits[0].id]).results
        assert refused.status == 404
        assert "not one that somebody took out" in str(refused.error)
