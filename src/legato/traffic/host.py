"""Facts of this machine that a reader of a figure may need: they go into the recording."""

from __future__ import annotations

import ipaddress
import os
import platform
import socket
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import legato

_SYS = Path("/sys")
_INTERFACE_SETTINGS = ("mtu", "speed", "gro_flush_timeout", "napi_defer_hard_irqs")


def facts(remote: str) -> dict[str, Any]:
    """What there is to know of the machine and of the way to `remote` (an address)."""
    loopback = ipaddress.ip_address(remote.partition("%")[0]).is_loopback
    interface = "lo" if loopback else _interface_to(remote)
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "governor": _read(_SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "loopback": loopback,
        "interface": interface,
        "interface_settings": {
            name: _read(_SYS / "class/net" / (interface or "") / name)
            for name in _INTERFACE_SETTINGS
            if interface
        },
    }


def versions() -> dict[str, str]:
    found = {"legato": legato.__version__, "python": platform.python_version()}
    for package in ("numpy", "pyarrow", "tokenizers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def cpu_times() -> tuple[int, int] | None:
    """(ticks of all CPUs, ticks stolen by the hypervisor) since the machine started."""
    text = _read(Path("/proc/stat"))
    if text is None:
        return None
    ticks = [int(number) for number in text.splitlines()[0].split()[1:9]]
    return sum(ticks), ticks[7]


def steal_share(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    """The share of CPU time that the hypervisor took between two `cpu_times`."""
    if before is None or after is None or after[0] <= before[0]:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _interface_to(remote: str) -> str | None:
    """The interface the kernel would route to `remote` by."""
    family = socket.AF_INET6 if ":" in remote else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((remote, 9))  # a datagram socket's connect sends nothing
            local = probe.getsockname()[0]
    except OSError:
        return None
    return _interface_of(local)


def _interface_of(local: str) -> str | None:
    import fcntl
    import struct

    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), 0x8915, request)  # SIOCGIFADDR
            except OSError:
                continue
            if socket.inet_ntoa(answer[20:24]) == local:
                return name
    return None
