"""Pictures on the web, fetched a handful at a time and yielded in the order in which they were asked for.

Whoever writes a table must not reach the network that this machine stands in. So a name is looked up once, each of its
addresses is checked, and the connection goes to one that was found to be public, whatever the name means a moment
later; a redirect is checked like the first address. Proxies that the environment names are not asked.
"""

import socket
from collections import Counter, deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import anyio
import httpcore
import httpx
from anyio.from_thread import start_blocking_portal

from ingest.errors import BadRow
from ingest.limits import Limits
from ingest.readers.container import Skipped
from ingest.readers.names import shown
from ingest.sentence import joined, phrase

AT_ONCE = 6
REDIRECTS = 5
_SECONDS = 120.0  # for one picture, from looking its name up to its last byte
_TIMEOUT = {"connect": 10.0, "read": 20.0, "write": 20.0}
_SILENT = 12  # pictures in a row that a host may not send in time, before it is asked for no more
_LEAST = 100_000  # bytes that asking is taken to cost, beside those that come
_HEADERS = (
    (b"User-Agent", b"perennial-search"),
    (b"Accept", b"image/*,*/*;q=0.8"),
    (b"Accept-Encoding", b"identity"),  # a few bytes that unpack to very many are no picture
)
# Of IPv6 the part that is given out; outside lie, beside much else, IPv4 addresses in another spelling.
_GLOBAL_UNICAST = ip_network("2000::/3")


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Returns whether an address is one machine's on the internet: not private, local, shared, reserved or many's."""
    if isinstance(address, IPv6Address):
        holds_another = address.sixtofour is not None or address.teredo is not None
        return address in _GLOBAL_UNICAST and address.is_global and not holds_another
    return address.is_global and not (address.is_multicast or address.is_reserved)


class Fetcher:
    """Fetches pictures from the public internet, on ports 80 and 443, and from `networks`, on any port."""

    def __init__(
        self, limits: Limits, networks: Sequence[IPv4Network | IPv6Network], most_bytes: float = float("inf")
    ) -> None:
        """Sets the bounds: of one picture `limits.image_bytes`, of all together `most_bytes`."""
        self._limits, self._networks, self.left = limits, networks, most_bytes
        self._silent = Counter[str]()

    def read(self, addresses: Iterable[str]) -> Generator[tuple[str, bytes | Skipped]]:
        """Yields each address with its bytes, or why there are none; closing it ends what is under way."""
        pool = httpcore.AsyncConnectionPool(
            httpx.create_ssl_context(), max_connections=AT_ONCE, network_backend=_Checked(self._networks)
        )
        waiting: deque[tuple[str, Future[bytes | Skipped]]] = deque()
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(pool):
            for address in addresses:
                waiting.append((address, portal.start_task_soon(self._fetched, pool, address)))
                if len(waiting) == AT_ONCE:
                    yield waiting[0][0], waiting.popleft()[1].result()
            for address, future in waiting:
                yield address, future.result()

    async def _fetched(self, pool: httpcore.AsyncConnectionPool, address: str) -> bytes | Skipped:
        code, host = "not_fetched", address.partition("//")[2].partition("/")[0]
        try:
            if self._silent[host] >= _SILENT:
                raise TimeoutError
            with anyio.fail_after(_SECONDS):
                data = await self._followed(pool, address)
            self._silent[host] = 0
            return data
        except BadRow as error:
            code, why = error.code, error.sentence
        except (httpcore.TimeoutException, TimeoutError):
            self._silent[host] += 1
            why = phrase("No answer came in time.")
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            why = phrase("The connection failed ({why}).", why=shown(str(error) or type(error).__name__))
        return Skipped(address, code, joined((f"{shown(address)}:", why)))

    async def _followed(self, pool: httpcore.AsyncConnectionPool, address: str) -> bytes:
        """Returns the bytes at an address, or at that which it leads to."""
        if self.left <= 0:
            raise BadRow("upload_too_large", phrase("One upload may not have so many pictures fetched."))
        self.left -= _LEAST
        url = _checked(address)
        for _ in range(REDIRECTS + 1):
            asked = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
            headers = [(b"Host", url.netloc), *_HEADERS]
            async with pool.stream("GET", asked, headers=headers, extensions={"timeout": _TIMEOUT}) as answer:
                said = httpx.Headers(answer.headers)
                if answer.status not in (301, 302, 303, 307, 308) or not said.get("location"):
                    return await self._body(answer, said.get("content-length", ""))
                url = _checked(url, said["location"])
        raise BadRow("not_fetched", phrase("It leads on to other addresses too often."))

    async def _body(self, answer: httpcore.Response, stated: str) -> bytes:
        if answer.status != 200:
            words = answer.extensions.get("reason_phrase", b"").decode("latin-1")
            said = shown(f"{answer.status} {words}".strip())
            raise BadRow("not_fetched", phrase("The server answered: {said}.", said=said))
        self._require_small(int(stated) if stated.isdecimal() else 0)
        data = bytearray()
        async for block in answer.aiter_stream():
            data += block
            self.left -= len(block)  # what is then refused was sent all the same
            self._require_small(len(data))
        return bytes(data)

    def _require_small(self, size: int) -> None:
        if size > self._limits.image_bytes:
            raise BadRow("image_too_large", self._limits.too_large(size))


class _Checked(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were found to be public, or lie in some networks, and to no other.

    TLS and the request still go by the name: only where the connection leads is settled here.
    """

    def __init__(self, networks: Sequence[IPv4Network | IPv6Network]) -> None:
        self._networks = networks
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        """Looks a host up, the only time that this is done, and connects to the first allowed address that answers."""
        try:
            with anyio.fail_after(timeout):
                answers = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error
        found = dict.fromkeys(ip_address(place[0]) for *_, place in answers)
        sentence = phrase(
            "{host} is {address}: only ports 80 and 443 of the public internet are asked, and networks that the "
            "setting `fetch_networks` opens.",
            host=shown(f"{host}:{port}"),
            address=", ".join(map(str, found)),
        )
        failed: Exception = BadRow("address_refused", sentence)
        for address in found:
            is_open = any(address in network for network in self._networks)
            if is_open or (is_public(address) and port in (80, 443)):
                try:
                    return await self._plain.connect_tcp(str(address), port, timeout)
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    failed = error
        raise failed


def _checked(address: str | httpx.URL, leads_to: str = "") -> httpx.URL:
    """Returns an address that may be asked, or where it leads, as far as its letters say, or raises `BadRow`."""
    try:
        url = httpx.URL(address).join(leads_to) if leads_to else httpx.URL(address)
        is_named = url.scheme in ("http", "https") and bool(url.host) and (url.port or 80) < 65_536
    except (httpx.InvalidURL, ValueError):  # the latter of letters that no name may have
        url, is_named = httpx.URL(""), False
    if not is_named or len(str(url)) > 2000:
        raise BadRow("address_refused", phrase("This is no address of http or https, or leads to none."))
    if url.userinfo:
        raise BadRow("address_refused", phrase("An address with a name and a password in it is not asked."))
    return url
