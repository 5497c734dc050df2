"""Claims about compose.yaml: its settings exist, its processes can share a home, and Prometheus finds the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.home.settings import PREFIX, Settings

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return services


def test_every_setting_of_a_service_is_one_that_there_is(services: dict[str, Any]) -> None:
    named = {
        name: value for service in services.values() for name, value in service.get("environment", {}).items()
    }
    assert "PERENNIAL_JOBS" in named
    Settings(**{name.removeprefix(PREFIX).lower(): value for name, value in named.items()})


def test_workers_share_the_servers_process_ids_and_home(services: dict[str, Any]) -> None:
    assert services["perennial"]["environment"]["PERENNIAL_JOBS"] == "elsewhere"
    for name in ("worker", "worker-gpu"):
        assert services[name]["pid"] == "service:perennial"
        assert services[name]["volumes"] == services["perennial"]["volumes"]
        assert services[name]["command"] == ["perennial", "work"]
    assert services["worker-gpu"]["profiles"] == ["gpu"]
    assert "profiles" not in services["worker"]


def test_only_the_server_and_prometheus_listen_and_only_on_loopback(services: dict[str, Any]) -> None:
    listening = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert set(listening) == {"perennial", "prometheus"}
    assert all(port.startswith("127.0.0.1:") for ports in listening.values() for port in ports)


def test_prometheus_reads_the_file_that_scrapes_the_server(services: dict[str, Any]) -> None:
    mounted = services["prometheus"]["volumes"][0].split(":")[0]
    (job,) = yaml.safe_load((ROOT / mounted).read_text(encoding="utf-8"))["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["perennial:7860"]
    secret = Path(job["basic_auth"]["password_file"]).name
    assert secret in services["prometheus"]["secrets"]


def test_machines_of_one_home_have_disks_of_their_own_and_no_key_in_the_file() -> None:
    text = (ROOT / "compose.scale.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    first, second = services["first"], services["second"]
    named = {name: value for name, value in first["environment"].items() if name.startswith(PREFIX)}
    Settings(**{name.removeprefix(PREFIX).lower(): value for name, value in named.items()})
    assert first["environment"] == second["environment"]
    assert {*first["volumes"]}.isdisjoint(second["volumes"])
    assert first["hostname"] != second["hostname"]  # by which machines are told apart
    assert all(
        port.startswith("127.0.0.1:") for service in services.values() for port in service.get("ports", ())
    )
    assert "PASSWORD:" not in text
    assert "SECRET_ACCESS_KEY:" not in text
    for option in ("--to postgresql://perennial@database/perennial", "--objects s3://pictures/museum"):
        assert option in second["command"][-1]
        assert option in text.partition("x-machine")[0].replace("\\\n#", "")
    for extra in ("postgres", "s3"):
        assert extra in (ROOT / "Dockerfile").read_text(encoding="utf-8")
