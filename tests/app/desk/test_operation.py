"""Claims about operations: what a method says of its route is what the server and the client go by."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import pytest
from fastapi.routing import APIRoute
from pydantic import Field

from app.desk.desk import Desk
from app.desk.operation import acts, adapter, document_of, grown, operations, reads
from app.desk.troubles import exit_code_of, explain, invalid_sentence, trouble_of
from app.server.routes import desk_router
from ingest.errors import BadUpload, UnknownChunk, UnknownLanguage
from model_updates.errors import UnknownStrategy


@dataclass(frozen=True)
class Boat:
    name: str
    masts: int = 1


@dataclass(frozen=True)
class NamedBoat(Boat):
    owner: str = ""


class Harbour(Protocol):
    @reads("/boats/{name}", wraps="boat")
    def boat(self, name: str, masts: Annotated[int, Field(ge=1)] = 1) -> Boat:
        """Returns a boat."""

    @acts("/boats", role="contributor", status=202)
    def add(self, names: Sequence[str]) -> list[Boat]:
        """Adds boats."""

    def sail(self) -> None:
        """Has no route."""


def test_a_route_is_read_from_the_method() -> None:
    found = operations(Harbour)
    assert set(found) == {"boat", "add"}
    boat = found["boat"]
    assert (boat.verb, boat.role, boat.wraps, boat.returns) == ("GET", "anyone", "boat", Boat)
    assert (set(boat.in_path), set(boat.others)) == ({"name"}, {"masts"})
    assert (found["add"].verb, found["add"].role, found["add"].status) == ("POST", "contributor", 202)


def test_every_operation_with_a_route_has_it_in_rest() -> None:
    routes = {
        (route.path, *sorted(route.methods or ()))
        for route in desk_router().routes
        if isinstance(route, APIRoute)
    }
    assert routes == {(one.path, one.verb) for one in operations(Desk).values()}


def test_a_record_comes_back_from_what_is_sent() -> None:
    sent = document_of(NamedBoat("Ada", 2, owner="sam"))
    assert adapter(NamedBoat).validate_python(sent | {"a newer field": 1}) == NamedBoat("Ada", 2, "sam")
    assert grown(NamedBoat, Boat("Ada", 3), owner="kim") == NamedBoat("Ada", 3, "kim")


@pytest.mark.parametrize(
    ("error", "status", "code", "exit_code"),
    [
        (UnknownChunk("there is no chunk"), 404, "unknown_chunk", 1),
        (UnknownLanguage("there is no such language"), 422, "unknown_language", 2),
        (UnknownStrategy("there is none"), 422, "unknown_strategy", 2),
        (BadUpload("empty", "there is nothing in it"), 422, "empty", 1),
    ],
)
def test_an_error_says_the_same_through_every_door(
    error: Exception, status: int, code: str, exit_code: int
) -> None:
    trouble = trouble_of(error)
    assert (trouble.status, trouble.code, trouble.exit_code) == (status, code, exit_code)
    assert trouble.sentence == f"{str(error)[0].upper()}{str(error)[1:]}."
    assert exit_code_of(code, status) == exit_code


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        ("invalid_request", 422, 2),
        ("starting", 503, 5),
        ("server_ending", 503, 5),
        ("commit_not_reached", 503, 5),
        ("too_large", 413, 1),
        ("catalog_held", 503, 1),
    ],
)
def test_the_code_that_a_server_says_is_the_exit_code_of_a_home(
    code: str, status: int, exit_code: int
) -> None:
    assert exit_code_of(code, status) == exit_code


def test_what_nobody_foresaw_is_left_to_the_edge() -> None:
    assert explain(KeyError("x")) is None
    full = explain(OSError(28, "No space left on device", "/a"))
    assert full is not None
    assert (full.code, full.status) == ("no_space", 507)
    only_read = explain(OSError(30, "Read-only file system", "/mnt/backup"))
    assert only_read is not None
    assert only_read.sentence.startswith("/mnt/backup may not be written here")


@pytest.mark.parametrize(
    ("readable", "said"), [(True, "/a may not be written here"), (False, "/a: Permission denied.")]
)
def test_what_may_only_be_read_is_told_from_what_may_not_even_be_read(
    monkeypatch: pytest.MonkeyPatch, readable: bool, said: str
) -> None:
    monkeypatch.setattr("os.access", lambda _, asked: readable and asked == os.R_OK)  # root may do everything
    told = explain(PermissionError(errno.EACCES, "Permission denied", "/a"))
    assert told is not None
    assert told.sentence.startswith(said)


def test_an_unknown_field_is_named_before_what_is_missing() -> None:
    problems = [
        {"type": "missing", "loc": ("body", "query"), "msg": "Field required"},
        {"type": "extra_forbidden", "loc": ("query",), "msg": "There is no field 'langauge'."},
    ]
    assert invalid_sentence(problems) == "There is no field 'langauge'. query: Field required."
