"""What is asked of the endpoint before any load: its models, and so whether it answers at all."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from dataclasses import dataclass, replace

from legato.apis import Api
from legato.apis.api import with_model
from legato.errors import TargetError, UsageError
from legato.wire import grpc
from legato.wire.endpoint import Endpoint, resolve, tls_context

_TIMEOUT_S = 10.0
_PROBE_TIMEOUT_S = 2.0
_UNNAMED = "unnamed"  # the model of a server that neither takes nor tells a name


@dataclass(frozen=True, slots=True)
class Target:
    """The endpoint's answer: the model to ask for and who serves it."""

    model: str
    served_by: str | None


def look(
    api: Api, endpoint: Endpoint, headers: dict[str, str], model: str | None, insecure: bool
) -> Target:
    """Ask for the models; choose the first, or check the one the user named."""
    if api.listing is None:
        return _unlisted(api, endpoint, headers, model, insecure)
    if "{model}" in api.listing.path and model is None:
        raise UsageError(f"--api {api.name} needs --model: its server lists none")
    path = with_model(api.listing.path, model or "")
    status, body = _get(endpoint, path, headers, insecure)
    _check_key(endpoint, status)
    models = _models(api, body) if status == 200 else None
    if models is None:
        return _word_for_it(api, endpoint, path, status, model)
    return _chosen(api, endpoint, models, model)


def _unlisted(
    api: Api, endpoint: Endpoint, headers: dict[str, str], model: str | None, insecure: bool
) -> Target:
    """Where there is no list to ask for, any answer shows that the endpoint can be reached."""
    if api.names_model and model is None:
        raise UsageError(f"the API {api.name} names a model in each request: give --model")
    _get(endpoint, "/", headers, insecure)
    return Target(model or _UNNAMED, None)


def _check_key(endpoint: Endpoint, status: int) -> None:
    if status in (401, 403):
        raise TargetError(
            f"{endpoint.url} answered {status} to a request for its models: is the key in"
            " LEGATO_API_KEY, OPENAI_API_KEY or --api-key-file right?"
        )


def _word_for_it(api: Api, endpoint: Endpoint, path: str, status: int, model: str | None) -> Target:
    """Some gateways serve answers only; the user's word has to do then."""
    if "{model}" in api.path and 400 <= status < 500:
        raise UsageError(f"{endpoint.url} has no model {model!r}: {path} answered {status}")
    if model is None and api.names_model:
        raise UsageError(
            f"{endpoint.url}{path} answered {status} and no list of models:"
            f" {_base_meant(endpoint)}give --model"
        )
    return Target(model or _UNNAMED, None)


def _base_meant(endpoint: Endpoint) -> str:
    """What was meant where a URL goes on after the usual base."""
    before, base, after = endpoint.path.partition("/v1/")
    if not after:
        return ""
    meant = replace(endpoint, path=before + base.rstrip("/"))
    return f"did you mean {meant.url}? If not, "


def _chosen(
    api: Api, endpoint: Endpoint, models: dict[str, str | None], model: str | None
) -> Target:
    first = next(iter(models), None)
    if first is None:
        raise TargetError(f"{endpoint.url} serves no model")
    if not api.names_model:
        return Target(model or first, models[first])
    if model is None:
        model = first
    elif model not in models:
        raise UsageError(f"{endpoint.url} has no model {model!r}; it has {_listed(list(models))}")
    return Target(model, models[model])


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:10])
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown


def _models(api: Api, body: bytes) -> dict[str, str | None] | None:
    assert api.listing is not None
    try:
        models = api.listing.models(json.loads(body))
        return {name: by if isinstance(by, str) else None for name, by in models.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _get(
    endpoint: Endpoint, path: str, headers: dict[str, str], insecure: bool
) -> tuple[int, bytes]:
    resolve(endpoint)  # says in a sentence when the name does not exist
    connection = _connection(endpoint, insecure)
    try:
        connection.request("GET", endpoint.path + path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(4 * 1024 * 1024)
    except ssl.SSLCertVerificationError as error:
        raise TargetError(
            f"the certificate of {endpoint.url} was refused: {error.verify_message};"
            " --insecure goes on without checking it"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        if _only_http2(endpoint, error):
            raise TargetError(
                f"{endpoint.url} speaks only HTTP/2, as gRPC does, and legato measures streams"
                f" over HTTP/1.1: {grpc.INSTEAD}"
            ) from None
        if isinstance(error, TimeoutError):
            raise TargetError(f"{endpoint.url} did not answer within {_TIMEOUT_S:g} s") from None
        raise TargetError(f"{endpoint.url} cannot be reached: {_why(error)}") from None
    finally:
        connection.close()


def _connection(endpoint: Endpoint, insecure: bool) -> http.client.HTTPConnection:
    host, port = endpoint.host, endpoint.port
    if endpoint.proxy:
        host, port = endpoint.proxy.host, endpoint.proxy.port
    connection: http.client.HTTPConnection
    if endpoint.tls:
        connection = http.client.HTTPSConnection(
            host, port, timeout=_TIMEOUT_S, context=tls_context(insecure)
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    if endpoint.proxy:
        authorization = endpoint.proxy.authorization
        tunnel = {"Proxy-Authorization": authorization} if authorization else {}
        connection.set_tunnel(endpoint.host, endpoint.port, tunnel)
    return connection


def _only_http2(endpoint: Endpoint, error: Exception) -> bool:
    """Is what failed as HTTP/1.1 a gRPC port? Some answer with HTTP/2 anyway; the others are
    asked in HTTP/2."""
    if isinstance(error, http.client.BadStatusLine):
        answer = str(error.args[0]).encode("latin-1", "replace")
        if grpc.is_settings_frame(answer):
            return True
    if isinstance(error, ssl.SSLError):
        return "NO_APPLICATION_PROTOCOL" in (error.reason or "")
    if endpoint.tls or isinstance(error, ConnectionRefusedError | socket.gaierror):
        return False
    with (
        contextlib.suppress(OSError),
        socket.create_connection((endpoint.host, endpoint.port), _PROBE_TIMEOUT_S) as probe,
    ):
        probe.sendall(grpc.HTTP2_PREFACE)
        return grpc.is_settings_frame(probe.recv(grpc.FRAME_HEAD_BYTES, socket.MSG_WAITALL))
    return False


def _why(error: Exception) -> str:
    if isinstance(error, http.client.HTTPException):
        return f"what listens there does not speak HTTP ({type(error).__name__})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no reason given'})"
    if isinstance(error, socket.gaierror | OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
