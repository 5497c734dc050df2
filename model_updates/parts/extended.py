"""Strategies that are another one with something beside it: `<name>+er` has a memory, `teir+<name>` other rows."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from model_updates.strategy import Part, State, Strategy

SAID = (
    "paper", "family", "trains", "keeps", "overhead", "language_at_query", "embeds_again", "touches", "needs", "replay",
    "can_forget", "trains_on_all",
)  # fmt: skip


def _as_host(name: str) -> Any:
    return lambda self, *given: getattr(self.host, name)(*given)


class Extended(Strategy):
    """Base of the strategies that do as another one does, and have a part beside it."""

    host_kind: ClassVar[type[Strategy]]  # of the other one
    beside_kind: ClassVar[Callable[[Any], Part]]  # makes the part, for the strategy
    prefix: ClassVar[str] = ""  # of the other one's tensors among those that are carried

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.host: Any = self.add(self.host_kind(self.options))  # the other one
        vars(self.host)["name"] = self.name  # what it refuses was asked for by this name
        self.touches = self.host.touches
        self.beside: Any = self.add(self.beside_kind())  # the part

    @property
    def reads_pictures(self) -> bool:
        return bool(self.host.reads_pictures)

    fits, taught, schedule, foreseen = map(_as_host, ("fits", "taught", "schedule", "foreseen"))

    def carried(self) -> State:
        own, host = self.beside.carried(), self.host.carried()
        kept = {f"{self.prefix}{name}": value for name, value in host.tensors.items()}
        return State({**own.tensors, **kept}, {**host.facts, **own.facts})

    def carry(self, state: State) -> None:
        self.beside.carry(state)
        own = self.beside.carried()
        tensors = {
            name.removeprefix(self.prefix): value
            for name, value in state.tensors.items()
            if name.startswith(self.prefix) and name not in own.tensors
        }
        facts = {name: value for name, value in state.facts.items() if name not in own.facts}
        if tensors or facts:
            self.host.carry(State(tensors, facts, state.update))


def extended(
    kind: type[Strategy], class_name: str, beside: Callable[[Any], Part], **said: Any
) -> type[Strategy]:
    """Makes a strategy that extends another one by what `beside` makes; what is `said` is not as the other one's."""
    body = {name: getattr(kind, name) for name in SAID} | said
    made = {"__module__": beside.__module__, "host_kind": kind, "beside_kind": beside}
    return cast("type[Strategy]", type(class_name, (Extended,), body | made))


def also(keeps: str, more: str) -> str:
    """Returns what a strategy keeps, and something more."""
    return more if keeps.startswith("nothing") else f"{keeps}; {more}"
