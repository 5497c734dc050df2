"""Everything an installation can be told, read in one place and nowhere else.

Later sources win: defaults, `perennial.toml` in the user's folder of settings, the one in the working directory,
PERENNIAL_* in the environment (two underscores reach inside: PERENNIAL_GATE__SLICE_DROP), then what the caller gives
(the command line's flags).
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import fields
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from app.desk.errors import UsageProblem
from app.home.cluster import LOCAL
from index.kinds import AUTO, FACTORIES, is_offered
from ingest.sentence import phrase
from model_updates.checked import explained
from model_updates.gate.report import Policy

if TYPE_CHECKING:
    from app.desk.health import Described

SETTINGS_FILE = "perennial.toml"
PREFIX = "PERENNIAL_"
_INSIDE = "__"
# A variable this like one of ours is a slip of the finger; others (PERENNIAL_SERVICE_HOST, which Kubernetes
# sets by itself) are none of our business.
_LIKENESS = 0.8
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}")


def default_home() -> Path:
    """Returns where a home is looked for and made unless somebody names a place: among the user's data.

    One named `perennial-home` in the working directory, where earlier versions made theirs, stays in use.
    """
    earlier = Path("perennial-home")
    return earlier if (earlier / "FORMAT").exists() else _of_user("XDG_DATA_HOME", ".local/share")


def _of_user(variable: str, otherwise: str) -> Path:
    """Returns our folder in one of the user's; the XDG base directory specification has relative ones ignored."""
    said = Path(os.environ.get(variable, ""))
    return (said if said.is_absolute() else Path.home() / otherwise) / "perennial"


class Settings(BaseSettings):
    """The settings of one installation; `load_settings` makes them with errors that people can read."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=_INSIDE, extra="forbid", frozen=True, validate_default=False
    )

    home: Path = Field(default_factory=default_home)  # The folder that holds everything.
    # Where `serve` listens; beyond loopback only with a password file or `allow_open`.
    host: str = "127.0.0.1"
    # The port on which `serve` listens; 7860 is where Gradio's users look.
    port: int = Field(default=7860, ge=0, le=65535)
    # In how many processes `serve` answers searches and sends pictures; each of them keeps one core at work.
    processes: int = Field(default=1, ge=1, le=64)
    device: Literal["auto", "cpu", "cuda"] = "auto"  # `auto` takes a GPU when there is one.
    # Threads of torch and FAISS; None leaves it to them, but jobs of a server leave one core to searches.
    threads: int | None = Field(default=None, ge=1)
    # The kind of index of galleries above ten thousand pictures; smaller ones are searched exactly. `auto` goes by how
    # quick this machine is: it compares all pictures while that takes up to 20 ms, with half the digits where it would
    # take longer, and beyond looks through lists so widely that 99 of 100 are found that comparing all finds.
    index: str = AUTO
    # Where an encoder has a second text tower (`perennial-photo`), whether it reads `always`, or only `where-needed`:
    # words in languages that the first does not know. That answers sooner, and finds less in the others.
    second_tower: Literal["always", "where-needed"] = "always"
    default_k: int = Field(default=24, ge=1, le=1000)  # Results per search: four rows of six thumbnails.
    # Longer queries are refused; the encoder reads far fewer.
    max_query_characters: int = Field(default=500, ge=1)
    # The largest file the server takes; the command line has no such bound.
    max_upload_bytes: int = Field(default=512 * 1024**2, ge=1)
    # The file of accounts, one a line as `user:role:scrypt$salt$hash`; `perennial account USER ROLE --to FILE` writes
    # one.
    password_file: Path | None = None
    # A reverse proxy signs people in and names them in this header, such as X-Forwarded-User.
    proxy_user_header: str | None = Field(default=None, min_length=1)
    # The header in which the reverse proxy names the groups of people.
    proxy_groups_header: str = "X-Forwarded-Groups"
    # Addresses of the proxy; headers from elsewhere are not believed. Without `proxy_user_header`, the server believes
    # those that are named here for whom they forward a request (X-Forwarded-For, X-Forwarded-Proto).
    proxy_addresses: Annotated[list[str], NoDecode] = ["127.0.0.1", "::1"]
    proxy_admins: Annotated[list[str], NoDecode] = []  # Names or groups of admins.
    # Names or groups of contributors; everybody else may search.
    proxy_contributors: Annotated[list[str], NoDecode] = []
    allow_open: bool = False  # Serve beyond loopback without a password.
    # Folders of this machine that a server watches: what changes in them is taken in, moved or left out by itself.
    watch: Annotated[list[Path], NoDecode] = []
    # Whether a server fetches pictures that uploaded tables name by address.
    allow_fetch: bool = False
    # Networks beside the public internet, such as 10.1.0.0/16, from which pictures may be fetched, on any port.
    fetch_networks: Annotated[list[IPv4Network | IPv6Network], NoDecode] = []
    # From which role on people are told where pictures lie, and are given the files themselves.
    places_for: Literal["searcher", "contributor", "admin"] = "admin"
    # Addresses or networks of an Immich server, such as 172.18.0.0/16. It cannot sign in, and is given vectors alone.
    immich_from: Annotated[list[IPv4Network | IPv6Network], NoDecode] = []
    # The release that gives Immich its vectors; empty for what is live.
    immich_release: str = ""
    # Whether `search` asks a server that runs on the same home, which answers the same sooner.
    ask_server: bool = True
    origins: Annotated[list[str], NoDecode] = []  # Web origins that may call the server, beside its own.
    # Where `serve` has jobs run: `here`, in processes that it starts, or `elsewhere`, by `perennial work`.
    jobs: Literal["here", "elsewhere"] = "here"
    # How far jobs stand back for other work of the machine, 0 to 19; 0 where nobody searches meanwhile.
    niceness: int = Field(default=10, ge=0, le=19)
    # The share of live queries that a candidate in the shadow is asked too, where nobody says another.
    shadow_share: float = Field(default=0.2, gt=0, le=1)
    # Where pictures are embedded when that takes more than a minute here: the address of a Ray cluster, such as
    # 10.0.0.5:6379, of which this machine is a node; `local` for a Ray that is started for it; empty for this process.
    ray: str = ""
    # In how many processes of that cluster an update trains that would take more than a minute here; 1 for this one.
    training_workers: int = Field(default=1, ge=1, le=64)
    poll_seconds: float = Field(default=1.0, gt=0)  # How often servers and `follow` look for something new.
    gate: Policy = Policy()  # The gate's policy.
    # Messages of this severity and above are logged.
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("home", "password_file")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()

    @field_validator(
        *("origins", "watch", "fetch_networks", "immich_from"),
        *("proxy_addresses", "proxy_admins", "proxy_contributors"),
        mode="before",
    )
    @classmethod
    def _split(cls, value: Any) -> Any:
        """Takes `https://a.org,https://b.org`, since the environment has no lists."""
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return value

    @field_validator("index")
    @classmethod
    def _offered(cls, factory: str) -> str:
        if factory != AUTO and not is_offered(factory):
            raise ValueError(f"There is no index kind {factory!r}. Choose one of {AUTO}, {FACTORIES}.")
        return factory

    @field_validator("ray")
    @classmethod
    def _usable(cls, address: str) -> str:
        if address not in ("", LOCAL) and not _HOST_AND_PORT.fullmatch(address):
            raise ValueError(
                "Name the cluster by host and port, as `ray start` prints them (10.0.0.5:6379), or say local. "
                "Pictures are read on this machine, so it has to be a node of the cluster; ray:// does not make it one."
            )
        return address

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Says which sources there are, strongest first."""
        files = (Path(SETTINGS_FILE), _of_user("XDG_CONFIG_HOME", ".config") / SETTINGS_FILE)
        return init_settings, env_settings, *(_read(settings_cls, file) for file in files)


def _read(settings_cls: type[BaseSettings], file: Path) -> TomlConfigSettingsSource:
    try:
        return TomlConfigSettingsSource(settings_cls, file)
    except (tomllib.TOMLDecodeError, OSError) as error:
        raise UsageProblem(f"The settings in {file} cannot be read: {error}.") from error


def settings_file(home: Path) -> Path | None:
    """Returns the strongest file of settings that there is, or the one that a backup brought into a home."""
    places = (
        Path(SETTINGS_FILE),
        _of_user("XDG_CONFIG_HOME", ".config") / SETTINGS_FILE,
        home / SETTINGS_FILE,
    )
    return next((place for place in places if place.is_file()), None)


def load_settings(**flags: Any) -> Settings:
    """Reads the settings; of what the command line says, None means that nothing was said.

    Raises:
        UsageProblem: A name is unknown (the sentence names the nearest), a value cannot be used, or the file
            is no TOML.
    """
    _refuse_misspelt_variables()
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UsageProblem(" ".join(_sentence(problem) for problem in error.errors())) from error
    except SettingsError as error:
        raise UsageProblem(f"The environment's {PREFIX}* settings cannot be read: {error}.") from error


def described(settings: Settings) -> list[Described]:
    """Returns every setting in the order of their declaration; none of them is a secret."""
    from app.desk.health import Described

    says = explained(Settings)
    own = [
        (name, field.get_default(call_default_factory=True), getattr(settings, name))
        for name, field in Settings.model_fields.items()
        if name != "gate"
    ]
    gate = [(f"gate.{one.name}", one.default, getattr(settings.gate, one.name)) for one in fields(Policy)]
    return [
        Described(
            name,
            _shown(value),
            _shown(default),
            says.get(name, phrase("Of the gate's policy (docs/gate.md).")),
        )
        for name, default, value in [*own, *gate]
    ]


def _shown(value: object) -> str:
    if value is None:
        return "–"
    return ", ".join(map(str, value)) or "–" if isinstance(value, list) else str(value)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name most like this one, if any is like it at all."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def _refuse_misspelt_variables() -> None:
    known = {name.upper() for name in Settings.model_fields}
    known |= {f"GATE{_INSIDE}{one.name.upper()}" for one in fields(Policy)}
    for variable in sorted(os.environ):
        name = variable.removeprefix(PREFIX)
        if name == variable or name in known:
            continue
        like = difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS)
        if like:
            raise UsageProblem(f"There is no setting {variable}; did you mean {PREFIX}{like[0]}?")


def _sentence(problem: Any) -> str:
    """One problem that pydantic found, as a sentence."""
    path = [str(part) for part in problem["loc"]]
    name = ".".join(path)
    if problem["type"] not in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"The setting {name} cannot be {problem['input']!r}: {problem['msg']}."
    known = [one.name for one in fields(Policy)] if len(path) > 1 else list(Settings.model_fields)
    like = nearest(path[-1], known)
    hint = f"did you mean {'.'.join([*path[:-1], like])}?" if like else f"there are {', '.join(known)}."
    return f"There is no setting {name}; {hint}"
