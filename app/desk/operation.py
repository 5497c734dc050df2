"""How an operation of the desk is asked over HTTP: said once, beside its method in the protocol.

The server makes a route of it and the client a request; neither says it again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter

Role = Literal["anyone", "contributor", "admin"]
Method = TypeVar("Method", bound=Callable[..., Any])
Record = TypeVar("Record")

_ASKED = "__asked__"


@dataclass(frozen=True)
class SentFile:
    """A file that is answered under its own name and type, such as image/jpeg."""

    name: str
    media: str
    data: bytes


@dataclass(frozen=True)
class Parameter:
    """What an operation is given."""

    name: str  # of the parameter
    kind: Any  # its type, with the limits that REST checks
    default: Any  # `inspect.Parameter.empty` where it must be given


@dataclass(frozen=True)
class Operation:
    """One operation and its route."""

    name: str  # of the method
    says: str  # its docstring
    verb: Literal["GET", "POST"]  # GET where it only reads, else POST
    path: str  # of the route, with the parameters that stand in it
    role: Role  # who may ask
    status: int  # of a good answer
    wraps: str  # the field that holds the answer; empty where the answer is the document
    media: str  # the type of an answer that is a file
    file: str  # what to call it, with parameters of the path; empty for a picture, which is shown
    in_path: Mapping[str, Parameter]  # parameters of the path, by name
    others: Mapping[str, Parameter]  # all the others, which are the query or the body
    returns: Any  # the type of the answer

    @property
    def sends_file(self) -> bool:
        """Whether the answer is a file with a name and type of its own."""
        return inspect.isclass(self.returns) and issubclass(self.returns, SentFile)

    @property
    def body(self) -> Parameter | None:
        """The parameter that is the whole body, if one is."""
        for one in self.others.values():
            if inspect.isclass(one.kind) and issubclass(one.kind, BaseModel):
                return one
        return None


def reads(
    path: str, *, role: Role = "anyone", wraps: str = "", media: str = "", file: str = ""
) -> Callable[[Method], Method]:
    """Says where a method that changes nothing is asked: by GET."""
    return _asked(verb="GET", path=path, role=role, status=200, wraps=wraps, media=media, file=file)


def acts(
    path: str, *, role: Role = "admin", status: int = 200, wraps: str = "", media: str = "", file: str = ""
) -> Callable[[Method], Method]:
    """Says where a method that changes something, or is told much, is asked: by POST."""
    return _asked(verb="POST", path=path, role=role, status=status, wraps=wraps, media=media, file=file)


def _asked(**how: Any) -> Callable[[Method], Method]:
    def mark(method: Method) -> Method:
        setattr(method, _ASKED, how)
        return method

    return mark


@cache
def operations(desk: type) -> dict[str, Operation]:
    """Returns the operations of a protocol that have a route, by the names of their methods."""
    marked = ((name, getattr(desk, name)) for name in dir(desk))
    return {name: _operation(name, method) for name, method in marked if hasattr(method, _ASKED)}


def _operation(name: str, method: Callable[..., Any]) -> Operation:
    how = getattr(method, _ASKED)
    hints = get_type_hints(method, include_extras=True)
    parameters = {
        one.name: Parameter(one.name, hints[one.name], one.default)
        for one in inspect.signature(method).parameters.values()
        if one.name != "self"
    }
    in_path = {key: one for key, one in parameters.items() if f"{{{key}}}" in how["path"]}
    others = {key: one for key, one in parameters.items() if key not in in_path}
    says = inspect.getdoc(method) or ""
    return Operation(name=name, says=says, in_path=in_path, others=others, returns=hints["return"], **how)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Returns what reads and writes records of a type as JSON values."""
    return TypeAdapter(kind)


def document_of(answer: Any, kind: Any = None) -> Any:
    """Returns a record, or a list of records, as JSON values: what REST answers and `--json` prints."""
    adapted = adapter(kind or type(answer))  # type: ignore[arg-type]  # a type is hashable
    return adapted.dump_python(answer, mode="json")


def stored_of(record: Any) -> Any:
    """Returns a record as values for the catalog, in which sentences keep their templates."""
    return adapter(type(record)).dump_python(record)  # type: ignore[arg-type]  # a type is hashable


def grown(kind: type[Record], record: Any, **more: Any) -> Record:
    """Returns a record as one of a kind that has its fields and more."""
    names = _names(type(record))  # type: ignore[arg-type]  # a type is hashable
    return kind(**{name: getattr(record, name) for name in names if name not in more}, **more)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
