"""What is asked of the endpoint before any load: its models, and so whether it answers at all."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from typing import Any

from legato.errors import TargetError, UsageError
from legato.wire.endpoint import Endpoint, resolve, tls_context

_TIMEOUT_S = 10.0

# Servers that say who they are in `/v1/models` and take these fields; others answer 400 to what
# they do not know, so they are not sent them.
_KNOWS_IGNORE_EOS = frozenset({"vllm", "sglang", "metronome", "legato", "llamacpp"})
_KNOWS_CHUNK_USAGE = frozenset({"vllm", "sglang", "metronome", "legato"})


@dataclass(frozen=True, slots=True)
class Target:
    """The endpoint's answer: the model to ask for and what the server understands."""

    model: str
    served_by: str | None

    @property
    def knows_ignore_eos(self) -> bool:
        return self.served_by in _KNOWS_IGNORE_EOS

    @property
    def knows_chunk_usage(self) -> bool:
        return self.served_by in _KNOWS_CHUNK_USAGE


def look(endpoint: Endpoint, headers: dict[str, str], model: str | None, insecure: bool) -> Target:
    """Ask for the models; choose the first, or check the one the user named."""
    status, body = _get(endpoint, "/models", headers, insecure)
    if status in (401, 403):
        raise TargetError(
            f"{endpoint.url} answered {status} to a request for its models: is the key in"
            " LEGATO_API_KEY, OPENAI_API_KEY or --api-key-file right?"
        )
    models = _models(body) if status == 200 else None
    if models is None:
        # Some gateways serve completions only; the user's word has to do then.
        if model is None:
            raise UsageError(
                f"{endpoint.url}/models answered {status} and no list of models: give --model"
            )
        return Target(model, None)
    by_name = {entry["id"]: entry.get("owned_by") for entry in models}
    if model is None:
        if not by_name:
            raise TargetError(f"{endpoint.url} serves no model")
        model = next(iter(by_name))
    elif model not in by_name:
        raise UsageError(f"{endpoint.url} has no model {model!r}; it has {_listed(list(by_name))}")
    return Target(model, by_name[model])


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:10])
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown or "none"


def _models(body: bytes) -> list[dict[str, Any]] | None:
    try:
        entries = json.loads(body)["data"]
        return [entry for entry in entries if isinstance(entry["id"], str)]
    except (ValueError, KeyError, TypeError):
        return None


def _get(
    endpoint: Endpoint, path: str, headers: dict[str, str], insecure: bool
) -> tuple[int, bytes]:
    resolve(endpoint)  # says in a sentence when the name does not exist
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
    try:
        connection.request("GET", endpoint.path + path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(4 * 1024 * 1024)
    except TimeoutError:
        raise TargetError(f"{endpoint.url} did not answer within {_TIMEOUT_S:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise TargetError(
            f"the certificate of {endpoint.url} was refused: {error.verify_message};"
            " --insecure goes on without checking it"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"{endpoint.url} cannot be reached: {_why(error)}") from None
    finally:
        connection.close()


def _why(error: Exception) -> str:
    if isinstance(error, http.client.HTTPException):
        return f"what listens there does not speak HTTP ({type(error).__name__})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no reason given'})"
    if isinstance(error, socket.gaierror | OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
