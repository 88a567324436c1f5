"""Where the requests go: the URL taken apart, its addresses, the proxy and the TLS settings.

Everything that can be wrong with a target before a byte is sent is found here.
"""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from legato.errors import TargetError, UsageError
from legato.wire import grpc

_PROXY_FORM = "HTTPS_PROXY must be of the form http://host:port"

Address = tuple[int, tuple[Any, ...]]  # family, socket address


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy that is asked for a tunnel by CONNECT."""

    host: str
    port: int
    authorization: str | None = None

    def request(self, endpoint: Endpoint) -> bytes:
        """The CONNECT request for a tunnel to `endpoint`."""
        lines = [f"CONNECT {endpoint.authority} HTTP/1.1", f"Host: {endpoint.authority}"]
        if self.authorization:
            lines.append(f"Proxy-Authorization: {self.authorization}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The base URL as the `openai` client takes it, taken apart."""

    host: str
    port: int
    path: str
    tls: bool
    proxy: Proxy | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority_shown}{self.path}"

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def authority_shown(self) -> str:
        """The authority as a URL and a Host header show it: no port where it is the default."""
        if self.port == (443 if self.tls else 80):
            return self.authority.rpartition(":")[0]
        return self.authority

    @property
    def is_loopback(self) -> bool:
        """By its name alone: nothing is looked up."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")


def parse_url(url: str) -> Endpoint:
    """`http://host:8000/v1`; a URL without a path gets `/v1`. The proxy is the environment's."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        if parts.scheme in grpc.NAMES:
            raise UsageError(grpc.REFUSAL)
        if "://" in url:
            raise UsageError(f"the URL {url!r} must start with http:// or https://")
        raise UsageError(f"the URL {url!r} has no scheme; did you mean http://{url}?")
    if parts.username is not None or parts.password is not None:
        raise UsageError("the URL holds credentials; give the key by LEGATO_API_KEY or a file")
    if parts.query or parts.fragment:
        raise UsageError("the URL must be the base of an API, without '?' or '#'")
    try:
        port = parts.port
    except ValueError:
        raise UsageError(f"the URL {url!r} has a port that is not 1 to 65535") from None
    if port == 0:
        raise UsageError(f"the URL {url!r} has a port that is not 1 to 65535")
    if not parts.hostname:
        raise UsageError(f"the URL {url!r} names no host")
    _check_host(parts.hostname, url)
    if bad := next((c for c in parts.path if not "!" <= c <= "~"), None):
        raise UsageError(f"the path of the URL {url!r} holds {bad!r}; write it as {quote(bad)}")
    tls = parts.scheme == "https"
    path = parts.path.rstrip("/") or "/v1"
    return Endpoint(
        parts.hostname,
        port or (443 if tls else 80),
        path,
        tls,
        _proxy_for(parts.hostname, port) if tls else None,
    )


def _check_host(host: str, url: str) -> None:
    """A name that the resolver and a Host header can carry, or an address."""
    try:
        host.encode("idna")
    except UnicodeError:
        raise UsageError(f"the URL {url!r} has a host that is no name: {host!r}") from None
    if not host.isascii():
        raise UsageError(f"the host of {url!r} is not ASCII; write {host.encode('idna').decode()}")
    if bad := next((c for c in host if not c.isalnum() and c not in "-._:%"), None):
        raise UsageError(f"the URL {url!r} has a host with {bad!r} in it")


def _proxy_for(host: str, port: int | None) -> Proxy | None:
    address = getproxies_environment().get("https")
    bypassed = proxy_bypass(f"{host}:{port}" if port else host)
    if not address or bypassed:
        return None
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        port_of_proxy = parts.port or 8080
    except ValueError:
        raise UsageError(_PROXY_FORM) from None
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(_PROXY_FORM)
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, port_of_proxy, authorization)


def resolve(endpoint: Endpoint) -> list[Address]:
    """The addresses to connect to, in the resolver's order; the proxy's where there is one."""
    host, port = endpoint.host, endpoint.port
    if endpoint.proxy:
        host, port = endpoint.proxy.host, endpoint.proxy.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no name"
        raise TargetError(f"the host {host!r} cannot be resolved: {why}") from None
    return [(int(family), address) for family, _, _, _, address in found]


def tls_context(insecure: bool) -> ssl.SSLContext:
    """Certificates are verified unless the user said otherwise."""
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
