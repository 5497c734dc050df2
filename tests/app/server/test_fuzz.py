"""REST under schemathesis: what its description allows or forbids is answered without a fault of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
)

from app.server.api_jobs import router
from app.server.routes import desk_router
from tests.app.server.served import Served, make_home, sample_upload, served

_CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


def _described() -> list[tuple[str, str]]:
    """Every path and method of REST, before a server runs."""
    app = FastAPI()
    for one in (router, desk_router()):
        app.router.routes.extend(one.routes)
    return [(path, method) for path, methods in app.openapi()["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that only queues jobs: a process for each would load torch and say no more about REST."""
    with served(make_home(tmp_path_factory.mktemp("home")), with_jobs=False) as running:
        yield running


@pytest.fixture(scope="module")
def description(server: Served) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{server.url}/v1/openapi.json")


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fits", "does-not"])
@pytest.mark.parametrize(("path", "method"), _described())
def test_no_request_finds_a_fault_of_ours(
    description: schemathesis.BaseSchema, path: str, method: str, mode: GenerationMode, count: int
) -> None:
    cases = description[path][method].as_strategy(generation_mode=mode)

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,  # the same cases every time: a suite must not fail by chance
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def ask(case: Case[Any]) -> None:
        case.call_and_validate(checks=_CHECKS)

    try:
        ask()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE
        pytest.skip("nothing about this request can be wrong: its path takes any text")


@pytest.mark.parametrize(("path", "method"), _described())
def test_an_unknown_query_field_is_refused_by_name(server: Served, path: str, method: str) -> None:
    address = re.sub(r"\{\w+\}", "r1", path)
    with server.client() as client:
        answer = client.request(method, address, params={"langauge": "de"})
    assert answer.status_code == 422
    assert "'langauge'" in answer.json()["error"]


def test_an_unknown_form_field_is_refused_by_name(server: Served, tmp_path: Path) -> None:
    upload = sample_upload(tmp_path / "scenes.zip", first=50, count=2)
    with server.client() as client, upload.open("rb") as file:
        answer = client.post("/v1/chunks", files={"file": file}, data={"langauge": "de"})
    assert answer.status_code == 422
    assert "'langauge'" in answer.json()["error"]
    assert "Did you mean 'language'?" in answer.json()["error"]
