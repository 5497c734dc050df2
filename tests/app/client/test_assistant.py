"""Claims about the tools for assistants, called by the protocol's own client."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp
import pytest
from PIL import Image

from app.client import connect
from app.client.assistant import assistant_server
from tests.app.server.served import Served

ROOT = Path(__file__).parents[3]


def _with(server: Served, act: Callable[[mcp.Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        with connect(server.url) as desk:
            async with mcp.Client(assistant_server(desk)) as assistant:
                return await act(assistant)

    return asyncio.run(run())


def _call(server: Served, name: str, **arguments: Any) -> Any:
    return _with(server, lambda assistant: assistant.call_tool(name, arguments))


def test_an_assistant_is_told_of_tools_that_only_read(server: Served) -> None:
    tools = _with(server, lambda assistant: assistant.list_tools()).tools
    assert {tool.name for tool in tools} == {
        "search_pictures",
        "count_pictures",
        "compare_releases",
        "list_releases",
        "show_picture",
    }
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)


def test_an_assistant_searches_and_looks_at_what_it_found(server: Served) -> None:
    found = _call(server, "search_pictures", text="a red boat", k=2)
    first = json.loads(found.content[0].text)["pictures"][0]
    assert first["captions"]
    shown = _call(server, "show_picture", picture_id=first["id"]).content[0]
    assert shown.mime_type == "image/webp"
    assert Image.open(io.BytesIO(base64.b64decode(shown.data))).format == "WEBP"


def test_an_assistant_is_shown_the_first_hits_and_told_where_they_lie(server: Served) -> None:
    found = _call(server, "search_pictures", text="a red boat", k=4, thumbnails=2).content
    told = json.loads(found[0].text)
    assert [one.type for one in found] == ["text", "image", "image"]
    assert len(told["pictures"]) == 4
    assert all(place.endswith(".webp") for one in told["pictures"] for place in one["seen_at"])
    with connect(server.url) as desk:
        first, second = (desk.thumbnail(one["id"]) for one in told["pictures"][:2])
    assert [base64.b64decode(one.data) for one in found[1:]] == [first, second]
    assert len(_call(server, "search_pictures", text="a red boat", thumbnails=0).content) == 1


def test_an_assistant_narrows_a_search_by_what_it_counted(server: Served) -> None:
    counted = json.loads(_call(server, "count_pictures").content[0].text)
    domain, language = (counted[facet][0] for facet in ("domains", "languages"))
    where = f"domain = {domain['value']} AND language = {language['value']}"
    left = json.loads(_call(server, "count_pictures", where=where).content[0].text)
    assert left["languages"][0] == language
    found = json.loads(_call(server, "search_pictures", text="boat", where=where, k=50).content[0].text)
    assert len(found["pictures"]) == language["count"]
    refused = _call(server, "search_pictures", text="boat", where="colour = red")
    assert refused.is_error
    assert "colour" in refused.content[0].text


def test_an_assistant_is_told_how_to_go_about_it(server: Served) -> None:
    listed = _with(server, lambda assistant: assistant.list_prompts()).prompts
    assert [(one.name, [part.name for part in one.arguments]) for one in listed] == [
        ("find_pictures", ["wanted"])
    ]
    prompt = _with(server, lambda assistant: assistant.get_prompt("find_pictures", {"wanted": "two {dogs}"}))
    said = prompt.messages[0].content.text
    assert "show: two {dogs}" in said
    tools = {tool.name for tool in _with(server, lambda assistant: assistant.list_tools()).tools}
    assert set(re.findall(r"[a-z]+_pictures?", said)) - {"find_pictures"} <= tools


def test_an_assistant_compares_releases(server: Served) -> None:
    listed = _call(server, "list_releases")
    assert "r1-" in str(listed.content)
    compared = json.loads(_call(server, "compare_releases", text="boat", a="r1", b="r2").content[0].text)
    assert 0 <= compared["overlap"] <= 1


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("search_pictures", {"text": " "}, "nothing to look for"),
        ("compare_releases", {"text": "boat", "a": "r1", "b": "r99"}, "r99"),
        ("show_picture", {"picture_id": "0" * 64}, "0000"),
        ("show_picture", {"picture_id": "../releases"}, "picture_id"),
    ],
)
def test_what_cannot_be_done_is_told_as_a_sentence(
    server: Served, name: str, arguments: dict[str, Any], said: str
) -> None:
    answer = _call(server, name, **arguments)
    assert answer.is_error
    assert said in answer.content[0].text
    assert "Traceback" not in answer.content[0].text


def test_the_verb_speaks_the_protocol_on_standard_streams(server: Served) -> None:
    async def ask() -> Any:
        command = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "perennial", "mcp", "--server", server.url],
            cwd=str(ROOT),
            env={"PYTHONPATH": str(ROOT)},
        )
        async with mcp.Client(mcp.stdio_client(command)) as assistant:
            return await assistant.call_tool("list_releases", {})

    assert "r1-" in str(asyncio.run(ask()).content)


def test_without_the_package_the_verb_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; from typer.testing import CliRunner; from app.commands.cli import app;"
        "r = CliRunner().invoke(app, ['mcp', '--server', 'http://127.0.0.1:9']); print(r.exit_code, r.stderr)"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("2 ")
    assert "perennial-search[mcp]" in said.stdout
