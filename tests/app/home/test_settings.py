from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.desk.errors import ClusterUnusable, UsageProblem
from app.home.cluster import require_cluster
from app.home.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _clean_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PERENNIAL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))


def test_defaults_need_no_file_and_no_environment() -> None:
    settings = load_settings()
    assert settings.home == Path.home() / ".local/share/perennial"
    assert (settings.host, settings.port) == ("127.0.0.1", 7860)
    assert settings.allow_open is False


def test_a_home_lies_among_the_users_data_unless_an_earlier_one_or_a_name_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert load_settings().home == tmp_path / "ada/.local/share/perennial"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert load_settings().home == tmp_path / "data/perennial"
    (tmp_path / "perennial-home").mkdir()
    assert load_settings().home == tmp_path / "data/perennial"  # a folder that is no home
    (tmp_path / "perennial-home/FORMAT").write_text("1\n")
    assert load_settings().home == Path("perennial-home")
    monkeypatch.setenv("PERENNIAL_HOME", "named")
    assert load_settings().home == Path("named")


def test_the_users_settings_hold_everywhere_and_those_of_a_folder_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/perennial").mkdir(parents=True)
    file = tmp_path / "config/perennial/perennial.toml"
    file.write_text("port = 1001\ndefault_k = 7\n[gate]\nslice_drop = 9.0\n")
    (tmp_path / "perennial.toml").write_text("port = 1002\n[gate]\nsamples = 300\n")
    settings = load_settings()
    assert (settings.port, settings.default_k) == (1002, 7)
    assert (settings.gate.slice_drop, settings.gate.samples) == (9.0, 300)
    file.write_text("port = \n")
    with pytest.raises(UsageProblem, match=rf"settings in {file} cannot be read"):
        load_settings()


def test_later_sources_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perennial.toml").write_text('port = 1001\nhost = "toml"\ndefault_k = 7\n')
    monkeypatch.setenv("PERENNIAL_PORT", "1002")
    monkeypatch.setenv("PERENNIAL_HOST", "environment")
    settings = load_settings(port=1003)
    assert (settings.port, settings.host, settings.default_k) == (1003, "environment", 7)


def test_an_unsaid_flag_leaves_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_HOME", "elsewhere")
    assert load_settings(home=None).home == Path("elsewhere")


def test_gate_settings_from_file_and_environment_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "perennial.toml").write_text("[gate]\nslice_drop = 9.0\nsamples = 300\n")
    monkeypatch.setenv("PERENNIAL_GATE__SLICE_DROP", "3.5")
    policy = load_settings().gate
    assert (policy.slice_drop, policy.samples, policy.pooled_drop) == (3.5, 300, 2.0)


def test_a_policy_the_gate_refuses_is_a_usage_problem() -> None:
    with pytest.raises(UsageProblem, match="confidence is above 0.5 and below 1"):
        load_settings(gate={"confidence": 1.5})


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("prot = 1\n", r"no setting prot; did you mean port\?"),
        ("[gate]\nslicedrop = 1\n", r"no setting gate\.slicedrop; did you mean gate\.slice_drop\?"),
        ("zzz = 1\n", "no setting zzz; there are home, host"),
        ("port = 'many'\n", "setting port cannot be 'many'"),
        ("port = \n", r"settings in perennial\.toml cannot be read"),
    ],
)
def test_a_bad_file_is_refused_with_what_to_do(tmp_path: Path, toml: str, sentence: str) -> None:
    (tmp_path / "perennial.toml").write_text(toml)
    with pytest.raises(UsageProblem, match=sentence):
        load_settings()


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_ALLOW_OPNE", "1")
    with pytest.raises(UsageProblem, match="did you mean PERENNIAL_ALLOW_OPEN"):
        load_settings()


def test_foreign_variables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("PERENNIAL_FAULT", "none")
    assert load_settings().host == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "value"), [("PERENNIAL_GATE", "not json"), ("PERENNIAL_PORT", "tcp://10.0.0.1:80")]
)
def test_an_unreadable_variable_is_a_usage_problem(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageProblem, match="cannot be"):
        load_settings()


def test_origins_may_be_a_comma_separated_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_ORIGINS", "https://a.org, https://b.org")
    assert load_settings().origins == ["https://a.org", "https://b.org"]
    assert Settings(origins=["https://c.org"]).origins == ["https://c.org"]


def test_reading_settings_loads_nothing_heavy() -> None:
    code = (
        "import sys, app.home.settings, app.home.logs; app.home.settings.load_settings();"
        "print([m for m in ('torch', 'faiss', 'gradio', 'numpy', 'sqlalchemy', 'PIL') if m in sys.modules])"
    )
    root = Path(__file__).parents[3]
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("address", ["ray://10.0.0.5:10001", "10.0.0.5", "a b:1", "auto"])
def test_a_cluster_is_named_by_host_and_port(address: str) -> None:
    with pytest.raises(UsageProblem, match="The setting ray cannot be .* Name the cluster by host and port"):
        load_settings(ray=address)


def test_a_cluster_needs_ray_where_it_is_used_and_not_where_it_is_only_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    named = load_settings(ray="local").ray
    with pytest.raises(ClusterUnusable, match=r"setting `ray` .*pip install 'perennial-search\[ray\]'"):
        require_cluster(named)
    require_cluster("")
