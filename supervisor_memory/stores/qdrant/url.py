"""Makes a client from the text of QDRANT_URL, which is configuration and never comes from a model.

    http://localhost:6333, https://…    a server; without a port it is 6333
    :memory:                            in this process, gone with it
    ./qdrant                            a directory, for one process

Addresses where a cloud gives its machines their credentials (such as 169.254.169.254) are refused: otherwise
anybody who can write the setting could make memory read them. No redirect is followed.
"""

import ipaddress
import math
import re
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from qdrant_client import QdrantClient

from supervisor_memory.errors import BackendUnavailable, SettingsError

IN_MEMORY: Final = ":memory:"
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_IS_DIRECTORY: Final = re.compile(r"(?!.*://)([./~].*|.*[/\\].*)", re.DOTALL)
_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.\-]+:\d+(/.*)?\Z")
_DEFAULT_PORT: Final = 6333
_METADATA_NAMES: Final = frozenset({"metadata.google.internal", "metadata.goog"})
# Alibaba, Azure, Oracle, AWS over IPv6; the others' are link-local
_TEXTS: Final = ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
_METADATA: Final = frozenset(map(ipaddress.ip_address, _TEXTS))


def is_server(url: str) -> bool:
    """Whether a text is the address of a server, not a directory or ":memory:"."""
    is_local = url == IN_MEMORY or _IS_DIRECTORY.match(url) is not None
    return not is_local or _HOST_AND_PORT.match(url) is not None


def connect(
    url: str,
    *,
    key: str | None = None,
    ca: Path | None = None,
    link_local: bool = False,
    seconds: float = 5.0,
) -> QdrantClient:
    """Make a client for an address. A server is not asked anything yet.

    Args:
        key: The API key of the server.
        ca: Certificates to trust instead of the system's.
        link_local: Whether link-local and metadata addresses are fine.
        seconds: How long the client waits for bytes. Not a deadline.

    Raises:
        SettingsError: the address is invalid or refused.
        BackendUnavailable: another process has opened the directory.
    """
    if url == IN_MEMORY:
        return QdrantClient(IN_MEMORY)
    if not is_server(url):
        return _opened(Path(url).expanduser())
    of_http: dict[str, Any] = {"follow_redirects": False}
    if ca is not None:
        of_http["verify"] = _trusting(ca)
    return QdrantClient(
        url=checked_url(url, link_local=link_local),
        api_key=key,
        timeout=math.ceil(seconds),
        check_compatibility=False,  # asks from a thread of its own; `health` tells the server's version
        **of_http,
    )


def checked_url(url: str, *, link_local: bool = False) -> str:
    """Return the address of a server, or refuse it.

    Raises:
        SettingsError: the address is invalid, or memory may not go there.
    """
    if "://" not in url:
        raise _refused(url, f"has no scheme; write http://{url}, or ./{url} for a directory")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _refused("…", f"is no address ({error})") from error
    if "@" in parts.netloc:
        raise _refused("…@…", "holds a user or a password; put the API key into QDRANT_KEY")
    if parts.scheme not in ("http", "https"):
        raise _refused(url, "is neither http nor https")
    if not host or re.search(r"[\s\x00-\x1f\\]", url):
        raise _refused(url, "names no host")
    if parts.query or parts.fragment:
        raise _refused(url.partition("?")[0], "goes on after '?' or '#'; put the API key into QDRANT_KEY")
    if not link_local and (bad := _not_to_be_asked(host, port or _DEFAULT_PORT)):
        raise _refused(
            url,
            f"leads to {bad}, a link-local or metadata address, where no Qdrant should be; if one is, set "
            "QDRANT_LINK_LOCAL=true",
        )
    return url


def _not_to_be_asked(host: str, port: int) -> str | None:
    """The address or name to refuse; None when all is well, or the name cannot be resolved yet."""
    if host.rstrip(".").lower() in _METADATA_NAMES:
        return host
    # Resolved rather than read: 2852039166 and 0xa9fea9fe are 169.254.169.254, too.
    return next((str(address) for address in _addresses(host, port) if _is_refused(address)), None)


def _addresses(host: str, port: int) -> Iterable[_Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(address[0]).partition("%")[0]) for *_, address in found]


def _is_refused(address: _Address) -> bool:
    inside = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    return bool(inside.is_link_local or inside in _METADATA)


def _trusting(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca))
    except OSError as error:
        told = f"QDRANT_CA={str(ca)!r} cannot be read as certificates ({error}); pass a PEM file"
        raise SettingsError(told, path=str(ca)) from error


def _opened(directory: Path) -> QdrantClient:
    try:
        return QdrantClient(path=str(directory), force_disable_check_same_thread=True)
    except Exception as error:
        raise BackendUnavailable(
            f"QDRANT_URL={str(directory)!r} cannot be opened ({type(error).__name__}); one process at a time "
            "can use a directory, more need a server",
            path=str(directory),
        ) from error


def _refused(url: str, why: str) -> SettingsError:
    return SettingsError(f"QDRANT_URL={url!r} {why}", url=url)
