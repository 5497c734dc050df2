"""Who may come in: the password file, checking a password, and slowing down those who guess.

A line of the file is `user:role:scrypt$salt$hash`; `perennial account USER ROLE --to FILE` asks for a password and
writes one. Searchers search, compare and judge answers; contributors also upload chunks, which wait for an admin's word
before they teach; admins also accept, update, promote and roll back.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from app.desk.errors import NotAllowed, UsageProblem

if TYPE_CHECKING:
    from app.home.settings import Settings

logger = logging.getLogger(__name__)

Role = Literal["searcher", "contributor", "admin"]
ROLES: tuple[Role, ...] = ("searcher", "contributor", "admin")
"""Each may do what those before it may."""
SHORTEST_PASSWORD = 10
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

_LISTED = f"{', '.join(ROLES[:-1])} and {ROLES[-1]}"
_MAY: Mapping[Role, str] = {
    "searcher": "search and compare",
    "contributor": "search, compare and upload",
    "admin": "do everything",
}
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
# 16 MiB and some 50 ms a guess: OWASP's smallest advice for a server that also has other work is 2^14 blocks
# with five lanes; the lanes give way to the limit on attempts.
_COST, _BLOCK, _LANES = 2**14, 8, 1
_MOST_REMEMBERED = 1000
_MOST_TRIED = 20_000
_LONGEST_NAME = 64
_LONGEST_SENT = 254  # as long as an address of mail can be
_GROUP = "group:"  # no name holds a colon, so nobody is called what a group is


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody the server knows."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Returns whether the account has a role or one above it."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def require(self, role: Role) -> Account:
        """Returns the account if it has a role or one above it.

        Raises:
            NotAllowed: it has not.
        """
        if not self.may(role):
            raise NotAllowed(self.refusal(role))
        return self

    def require_admin(self) -> Account:
        """Returns the account if it may change things.

        Raises:
            NotAllowed: it may not.
        """
        return self.require("admin")

    def refusal(self, role: Role) -> str:
        """Says what the account may do and what it would need to be."""
        article = "an" if role == "admin" else "a"
        return (
            f"{self.name} may {_MAY[self.role]}; this needs {article} {role}. Sign in with such an account."
        )


ANYONE = Account("local", "admin")
"""Who everybody is on a server without a password file."""
OWNER = Account("owner", "admin")
"""Who asks through the socket in the home."""
SEARCHER = Account("somebody", "searcher")
"""Who asks where nobody's name matters."""


def require_account(user: str, role: str) -> None:
    """Refuses a name or a role that no account can have.

    Raises:
        UsageProblem: it is none.
    """
    if not _NAME.fullmatch(user):
        raise UsageProblem(f"{user[:64]!r} cannot be a user name: use up to 64 letters, digits and . _ @ -")
    if role not in ROLES:
        raise UsageProblem(f"{role[:64]!r} is no role; the roles are {_LISTED}.")


def password_line(user: str, role: str, password: str) -> str:
    """Returns a line for the password file, with a fresh salt.

    Raises:
        UsageProblem: the name, role or password cannot be used.
    """
    require_account(user, role)
    if len(password) < SHORTEST_PASSWORD:
        raise UsageProblem(
            f"The password has {len(password)} characters; use at least {SHORTEST_PASSWORD}, a sentence for example."
        )
    salt = secrets.token_bytes(16)
    return f"{user}:{role}:scrypt${_text(salt)}${_text(_scrypt(password, salt))}"


@dataclass(frozen=True, slots=True)
class ProxySignIn:
    """Signing in that a reverse proxy has done: it names who is asking in a header."""

    user_header: str  # that holds the name; the proxy must set or remove it on every request
    groups_header: str  # that holds groups, with commas between them
    addresses: frozenset[str]  # of the proxy; a request from anywhere else is not believed
    # Who are admins, or contributors; everybody else searches. `group:NAME` is a group, NAME alone is either.
    admins: frozenset[str]
    contributors: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> ProxySignIn | None:
        """Returns what the settings say; None when there is no such proxy."""
        if settings.proxy_user_header is None:
            return None
        return cls(
            settings.proxy_user_header,
            settings.proxy_groups_header,
            frozenset(settings.proxy_addresses),
            frozenset(settings.proxy_admins),
            frozenset(settings.proxy_contributors),
        )

    def account(self, headers: Mapping[str, str], address: str) -> Account | None:
        """Returns who is asking, or None when the request did not come through the proxy or names nobody.

        Raises:
            NotAllowed: nobody can be called what the proxy says; the sentence repeats it.
        """
        name = _sent(headers, self.user_header).strip()
        if address not in self.addresses or not name:
            return None
        if ":" in name or not name.isprintable() or len(name) > _LONGEST_SENT:
            raise NotAllowed(
                f"The proxy says that you are {name[:80]!r}, which cannot be a user name: use up to {_LONGEST_SENT} "
                "printable characters without a colon."
            )
        groups = {group.strip() for group in _sent(headers, self.groups_header).split(",")}
        called = {name} | groups | {_GROUP + group for group in groups}
        if called & self.admins:
            return Account(name, "admin")
        return Account(name, "contributor" if called & self.contributors else "searcher")


def _sent(headers: Mapping[str, str], name: str) -> str:
    """Returns a header as proxies mean it: names are sent in UTF-8, and frameworks read headers as Latin-1."""
    value = headers.get(name, "")
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


class Passwords:
    """The accounts of a password file, read once."""

    def __init__(self, entries: Mapping[str, tuple[Account, bytes, bytes]]) -> None:
        self._entries = dict(entries)
        self._key = secrets.token_bytes(32)
        self._proven: OrderedDict[bytes, Account] = OrderedDict()
        self._lock = threading.Lock()
        # An unknown name costs as much time as a wrong password, so that names cannot be found out.
        self._nobody = (secrets.token_bytes(16), secrets.token_bytes(64))

    @classmethod
    def load(cls, path: Path) -> Passwords:
        """Reads a password file.

        Raises:
            UsageProblem: it is missing, empty, or a line cannot be read; the sentence names the line.
        """
        try:
            text = path.read_text(encoding="utf-8")
            loose = path.stat().st_mode & 0o007
        except (OSError, UnicodeDecodeError) as error:
            raise UsageProblem(f"The password file {path} cannot be read: {error}.") from error
        if loose:
            logger.warning("everybody on this machine can read the password file; `chmod 600` it")
        entries: dict[str, tuple[Account, bytes, bytes]] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            entry = _parse(line.strip(), number)
            if entry[0].name in entries:
                raise UsageProblem(f"Line {number} of the password file names {entry[0].name} a second time.")
            entries[entry[0].name] = entry
        if not entries:
            raise UsageProblem(
                f"The password file {path} has no account. Add one with `perennial account USER admin --to {path}`."
            )
        return cls(entries)

    def names(self) -> set[str]:
        """Returns the names of all accounts."""
        return set(self._entries)

    def account(self, name: str | None) -> Account | None:
        """Returns the account of a name that has signed in already."""
        entry = self._entries.get(name or "")
        return entry[0] if entry else None

    def remembered(self, credentials: str) -> Account | None:
        """Returns whom these Basic credentials have been found to belong to, at no cost."""
        with self._lock:
            return self._proven.get(self._digest(credentials))

    def check(self, user: str, password: str) -> Account | None:
        """Returns whose a name and a password are; takes some 50 ms."""
        entry = self._entries.get(user)
        account, salt, expected = entry if entry else (None, *self._nobody)
        return account if hmac.compare_digest(_scrypt(password, salt), expected) else None

    def remember(self, credentials: str, account: Account) -> None:
        """Knows from now on whose these Basic credentials are."""
        with self._lock:
            self._proven[self._digest(credentials)] = account
            while len(self._proven) > _MOST_REMEMBERED:
                self._proven.popitem(last=False)

    def _digest(self, credentials: str) -> bytes:
        return hmac.digest(self._key, credentials.encode("utf-8", "replace"), "sha256")


def required_passwords(settings: Settings) -> Passwords | None:
    """Returns the accounts of the password file, if there is one.

    Raises:
        UsageProblem: the file cannot be read, or the server would be open to the network and nobody said that it may.
    """
    if settings.password_file is not None:
        return Passwords.load(settings.password_file)
    is_closed = settings.proxy_user_header is not None or settings.host in LOOPBACK
    if not is_closed and not settings.allow_open:
        raise UsageProblem(
            f"Serving on {settings.host} would let everybody on the network upload and promote. Give a password "
            "file (PERENNIAL_PASSWORD_FILE; `perennial account USER ROLE --to FILE` writes it), or say "
            "that this is meant (PERENNIAL_ALLOW_OPEN=1), or serve on 127.0.0.1."
        )
    return None


class Attempts:
    """Tries to sign in, by address and by name: after a few within a minute, either waits a minute.

    A try counts from its beginning, so that many at once are no way around; a right password takes it back. A name has
    more of them than an address: somebody else's guesses keep its owner out, too, unless the server knows them already.
    """

    def __init__(
        self,
        *,
        by_address: int = 5,
        by_name: int = 20,
        seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = {"address": by_address, "name": by_name}
        self._seconds = seconds
        self._clock = clock
        self._tries: OrderedDict[tuple[str, str], list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, address: str, name: str) -> float:
        """Counts a try; returns the seconds that address or name must wait instead, 0 where this one may go on."""
        now, keys = self._clock(), _keys(address, name)
        with self._lock:
            recent = {
                key: [at for at in self._tries.get(key, []) if at > now - self._seconds] for key in keys
            }
            full = [tries[-1] for key, tries in recent.items() if len(tries) >= self._most[key[0]]]
            if full:
                return max(full) + self._seconds - now
            for key, tries in recent.items():
                self._tries[key] = [*tries, now]
                self._tries.move_to_end(key)
            while len(self._tries) > _MOST_TRIED:
                self._tries.popitem(last=False)
        return 0.0

    def forget(self, address: str, name: str) -> None:
        """Takes a try back: the password was right, or was not looked at."""
        with self._lock:
            for key in _keys(address, name):
                if self._tries.get(key):
                    self._tries[key].pop()


def _keys(address: str, name: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Who has one address of IPv6 mostly has all that begin like it."""
    try:
        known = ip_address(address)
    except ValueError:  # a socket of this machine
        return ("address", address), ("name", name)
    network = ip_network((known, 64), strict=False) if known.version == 6 else known
    return ("address", str(network)), ("name", name)


def parted(credentials: str) -> tuple[str, str]:
    """Returns the name and the password of Basic credentials (the base64 part of the header); of others, nobody's."""
    try:
        user, _, password = base64.b64decode(credentials, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return user[:_LONGEST_NAME], password


def _parse(line: str, number: int) -> tuple[Account, bytes, bytes]:
    parts = line.split(":")
    secret = parts[2].split("$") if len(parts) == 3 else []
    if len(secret) != 3 or secret[0] != "scrypt" or parts[1] not in ROLES or not _NAME.fullmatch(parts[0]):
        raise UsageProblem(
            f"Line {number} of the password file is not `user:role:scrypt$salt$hash` with one of the roles "
            f"{_LISTED}. `perennial account USER ROLE --to FILE` writes such a line."
        )
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in secret[1:])
    except binascii.Error as error:
        raise UsageProblem(
            f"The hash in line {number} of the password file is damaged; make it again."
        ) from error
    return Account(parts[0], parts[1]), salt, digest


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8"), salt=salt, n=_COST, r=_BLOCK, p=_LANES, maxmem=64 * 1024**2, dklen=64
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
