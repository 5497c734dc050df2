"""A sequence: which chunks are taught in which order, and what is measured; one small TOML file.

    name = "languages"
    about = "Twelve languages of emoji names, one after another."
    encoder = "perennial-tiny"
    seeds = 3
    orders = ["given", "reversed", "shuffled"]
    chunks = ["names"]
    domains = ["noto"]
    [base]
    languages = ["en"]
    [[steps]]
    languages = ["de"]
    [[steps]]
    languages = ["fr"]
    [[strategies]]
    name = "teir"
    options = { apply_to = "update" }

`chunks`, `languages` and `domains` of a step narrow what its pairs are; where a step does not say, the sequence does.
"""

from __future__ import annotations

import hashlib
import json
import random
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from app.desk.errors import UsageProblem

Order = Literal["given", "reversed", "shuffled"]
OWN, LIVE = "own", "live"
"""A sequence that is made from a home's own chunks, and the encoder that is live there."""
# Raised when code changes what a cell would find: finished cells of an older one are then run again.
REVISION = 2


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(_Table):
    """Which pairs of the home: those of some chunks, in some languages, of some domains."""

    name: str = ""  # of the step; its languages and domains where nothing is said
    chunks: tuple[str, ...] = ()  # ids, or names that their uploads had
    languages: tuple[str, ...] = ()  # of the captions; empty for all
    domains: tuple[str, ...] = ()  # of the pictures; empty for all


class SequenceStep(Choice):
    """One update of the sequence."""

    # "2/5" for the second of five random parts of the training pictures
    part: str = Field(default="", pattern=r"^(\d+/\d+)?$")
    # taught by this one whatever is compared, as the first training from scratch is; such a step keeps its place in
    # every order
    strategy: str = ""
    options: Mapping[str, Any] = {}  # of that strategy

    @property
    def share(self) -> tuple[int, int]:
        """Which of how many parts, both from 1."""
        one, _, of = (self.part or "1/1").partition("/")
        return int(one), int(of)

    @model_validator(mode="after")
    def _inside(self) -> SequenceStep:
        one, of = self.share
        if not 1 <= one <= of:
            raise ValueError(f"part is one of so many, such as 2/5, got {self.part}")
        return self


AnyChoice = TypeVar("AnyChoice", bound=Choice)


class StrategyRun(_Table):
    """A strategy to run, with its options."""

    name: str
    options: Mapping[str, Any] = {}

    @property
    def label(self) -> str:
        """The name with its options, such as ``teir,apply_to=update``: what tables and files call it."""
        said = [f"{key}={value}" for key, value in sorted(self.options.items())]
        return ",".join([self.name, *said])


class BenchSequence(_Table):
    """What is run; see the module's example."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")  # of the sequence; names the folder of its results
    about: str = ""  # one sentence
    # what every run starts from, as `init --model` takes it; or "live", the home's own
    encoder: str = "perennial-tiny"
    scratch: bool = False  # whether its weights are drawn anew by the seed
    seeds: tuple[int, ...] = (0, 1, 2)  # how many, or which
    # of the steps; the first seed takes the first order, and so on around
    orders: tuple[Order, ...] = ("given",)
    chunks: tuple[str, ...] = ()  # of steps that name none
    languages: tuple[str, ...] = ()  # of steps that name none
    domains: tuple[str, ...] = ()  # of steps that name none
    # what the encoder knows before the first step: measured from the start, never taught
    base: Choice | None = None
    # what no step teaches: measured from the start, too, but no part of any average
    unseen: Choice | None = None
    # pictures to classify after every step, their captions being the names of the classes; never taught
    probe: Choice | None = None
    steps: tuple[SequenceStep, ...] = Field(min_length=1)  # the updates
    strategies: tuple[StrategyRun, ...] = ()  # what is compared
    # of strategies by name, options in place of their own defaults (see `read_sequence`)
    tuned: Mapping[str, Mapping[str, Any]] = {}
    # of strategies by name, options that this sequence asks for, over those that were tuned
    defaults: Mapping[str, Mapping[str, Any]] = {}
    epochs: int = Field(default=0, ge=0)  # of every strategy that counts epochs; 0 leaves each its own
    batch_size: int = Field(default=0, ge=0)  # of every strategy; 0 leaves each its own
    # captions that were trained on, a slice, that are looked up again
    trained: int = Field(default=300, ge=1)
    # "all" pictures of the sequence from the start, or "growing" with the steps
    gallery: Literal["all", "growing"] = "all"
    # let a strategy that can forget choose its epoch by old captions, too, as an update of the product does. The
    # papers choose by the new chunk alone.
    watch_known: bool = True

    @field_validator("seeds", mode="before")
    @classmethod
    def _counted(cls, value: object) -> object:
        return tuple(range(value)) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _distinct(self) -> BenchSequence:
        names = [step_name(self.filled(step)) for step in self.steps]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two steps are called {twice[0]!r}; give each a name")
        if not self.seeds:
            raise ValueError("a sequence needs at least one seed")
        return self

    def filled(self, choice: AnyChoice) -> AnyChoice:
        """Returns a choice with what the sequence says where it says nothing."""
        return choice.model_copy(
            update={
                "chunks": choice.chunks or self.chunks,
                "languages": choice.languages or self.languages,
                "domains": choice.domains or self.domains,
            }
        )

    def ordered(self, seed: int) -> tuple[SequenceStep, ...]:
        """Returns the steps in the order that a seed takes them; those of a fixed strategy keep their place."""
        order = self.orders[self.seeds.index(seed) % len(self.orders)]
        free = [step for step in self.steps if not step.strategy]
        if order == "reversed":
            free.reverse()
        elif order == "shuffled":
            random.Random(f"order:{seed}").shuffle(free)
        turn = iter(free)
        return tuple(self.filled(step if step.strategy else next(turn)) for step in self.steps)

    def options_of(self, compared: StrategyRun) -> dict[str, Any]:
        """Returns the options that a strategy runs with: what was tuned, over it the sequence's, then its line's."""
        name = compared.name
        return {**self.tuned.get(name, {}), **self.defaults.get(name, {}), **compared.options}

    def digest(self, compared: StrategyRun) -> str:
        """Returns the sha256 (hex) of what decides a strategy's run, other strategies and seeds left out."""
        said = self.model_dump(mode="json", exclude={"strategies", "seeds", "about", "tuned", "defaults"})
        said |= {"strategy": compared.name, "options": self.options_of(compared), "revision": REVISION}
        if len(self.steps) > 1 and trains_on_all(compared.name):
            said["validation"] = "of all chunks"  # until 2026-11-22 it was the newest one's
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def trains_on_all(name: str) -> bool:
    """Whether what is compared is a strategy whose every update trains on all chunks so far."""
    from model_updates.references import REFERENCES
    from model_updates.strategies import strategy_named

    return name not in REFERENCES and strategy_named(name).trains_on_all


def step_name(choice: Choice) -> str:
    """Returns what a step is called: its name, else its languages and domains."""
    said = choice.name or " ".join([*choice.languages, *choice.domains]) or " ".join(choice.chunks)
    part = choice.part if isinstance(choice, SequenceStep) else ""
    return said if choice.name or not part else f"{said} {part}"


def read_sequence(path: Path) -> BenchSequence:
    """Reads a sequence file.

    Its key ``tuned`` may name another TOML file beside it, which holds a table of options for each strategy.

    Raises:
        UsageProblem: there is none, it is not TOML, or it says something that cannot be run; the sentence names it.
    """
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        if isinstance(said.get("tuned"), str):
            said["tuned"] = tomllib.loads((path.parent / said["tuned"]).read_text(encoding="utf-8"))
        return BenchSequence.model_validate(said)
    except FileNotFoundError as error:
        raise UsageProblem(f"There is no file {error.filename!r}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path.name} is not a TOML file: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        said_of_it = first["msg"].removeprefix("Value error, ")
        raise UsageProblem(f"{path.name}, {where}: {said_of_it}.") from error
