"""`OUT.partial/`: the folder a run captures into, and how it becomes a recording.

It holds `plan.json`, the workers' spools and, while it is decoded, their parts. A finished run
leaves one Parquet file and no folder; an unfinished one leaves the folder, which reads the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from legato import apis
from legato.errors import RecordingError
from legato.reading import read
from legato.recording import PHASES, Recording, RecordingWriter, Stream, table_of
from legato.wire import part, spool
from legato.wire.decode import Decoding, WorkerFacts, decode_worker
from legato.wire.redaction import Redaction
from legato.wire.tokens import load_tokenizer

PLAN = "plan.json"
_BATCH_CHUNKS = 250_000  # per row group: what decode holds in memory at most


def partial_of(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


def create(out: Path, plan: dict[str, Any]) -> Path:
    """Make the folder of a run that is to become `out`."""
    folder = partial_of(out)
    try:
        folder.mkdir(mode=0o700)
        write_plan(folder, plan)
    except FileExistsError:
        raise RecordingError(
            f"{folder} is left from an earlier run: read it with 'legato report {folder}'"
            " or remove it"
        ) from None
    except OSError as error:
        raise RecordingError(f"cannot write {folder}: {error.strerror}") from None
    return folder


def write_plan(folder: Path, plan: dict[str, Any]) -> None:
    """Replace the plan whole: a crash in between leaves the old one."""
    temporary = folder / f"{PLAN}.new"
    temporary.write_text(json.dumps(plan), encoding="utf-8")
    temporary.replace(folder / PLAN)


def load(path: str | Path) -> Recording:
    """A recording from a Parquet file, a folder of them, or what an unfinished run left."""
    path = Path(path)
    if (path / PLAN).is_file():
        return _decode_folder(path)
    return read(path)


def finish(folder: Path, out: Path, partial: bool) -> None:
    """Decode the capture, write `out` atomically and remove the folder with its raw text."""
    plan = _plan(folder)
    workers = spool.workers(folder)
    if len(workers) > 1:
        task = {"folder": str(folder), "decoding": plan["decoding"]}
        facts = part.decode_all([{**task, "worker": worker} for worker in workers])
    else:
        facts = [decode_part(folder, worker, plan["decoding"]) for worker in workers]
    parts = [_part(folder, worker) for worker in workers]
    meta = _meta(plan, facts, partial)
    _merge(parts, out, meta)
    shutil.rmtree(folder)


def _part(folder: Path, worker: int) -> Path:
    return folder / f"part-{worker:03d}.parquet"


def decode_part(folder: Path, worker: int, document: dict[str, Any]) -> dict[str, Any]:
    """One worker's capture into its part of the recording; returns what it says of the run."""
    facts = WorkerFacts()
    with RecordingWriter(_part(folder, worker), {}) as writer:
        for table in _tables(folder, worker, _decoding(document), facts):
            writer.write(table)
    return _facts(facts)


def _decode_folder(folder: Path) -> Recording:
    """What a crash left, decoded in memory; the folder is not touched."""
    plan = _plan(folder)
    decoding = _decoding(plan["decoding"])
    tables, all_facts = [], []
    for worker in spool.workers(folder):
        facts = WorkerFacts()
        tables += list(_tables(folder, worker, decoding, facts))
        all_facts.append(_facts(facts))
    if not tables:
        return Recording(table_of([]), _meta(plan, all_facts, partial=True))
    table = pa.concat_tables(tables).combine_chunks()
    meta = _meta(plan, all_facts, partial=True)
    derived = _Derived(_times(table), meta)
    return Recording(derived.apply(table), meta)


def _tables(
    folder: Path, worker: int, decoding: Decoding, facts: WorkerFacts
) -> Iterator[pa.Table]:
    batch: list[Stream] = []
    chunks = 0
    for stream in decode_worker(folder, worker, decoding, facts):
        batch.append(stream)
        chunks += len(stream.kind) + 1
        if chunks >= _BATCH_CHUNKS:
            yield table_of(batch)
            batch, chunks = [], 0
    if batch:
        yield table_of(batch)


def _plan(folder: Path) -> dict[str, Any]:
    try:
        plan: dict[str, Any] = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        if not isinstance(plan, dict) or not {"meta", "decoding"} <= plan.keys():
            raise ValueError("it is not the plan of a run")
    except (OSError, ValueError) as error:
        raise RecordingError(f"{folder / PLAN} cannot be read: {error}") from None
    return plan


def _decoding(document: dict[str, Any]) -> Decoding:
    values = dict(document)
    tokenizer = values.pop("tokenizer")
    return Decoding(
        api=apis.named(values.pop("api")),
        tokenizer=load_tokenizer(tokenizer) if tokenizer else None,
        redaction=Redaction.read(values.pop("redaction")),
        **values,
    )


# --- what only the whole run knows ------------------------------------------------------------


def _facts(facts: WorkerFacts) -> dict[str, Any]:
    return {
        "document": facts.document,
        "lost_streams": facts.lost_streams,
        "steps": facts.clock.steps,
        "anchor_width_ns": facts.clock.width_ns,
        "lone_chunks": facts.lone_chunks,
        "before_floor": facts.before_floor,
    }


def _meta(plan: dict[str, Any], facts: list[dict[str, Any]], partial: bool) -> dict[str, Any]:
    meta: dict[str, Any] = dict(plan["meta"])
    epoch_ns = plan["decoding"]["epoch_offset_ns"]
    told = [f["document"] for f in facts if f["document"] is not None]
    drains = [d["drain_ns"] + epoch_ns for d in told if d["drain_ns"] is not None]
    workers_lost = plan["decoding"]["workers"] - len(told)
    meta["partial"] = partial or workers_lost > 0
    meta["clock"] = {
        "epoch_offset_ns": epoch_ns,
        "anchor_width_ns": max((f["anchor_width_ns"] for f in facts), default=0),
        "steps": max((f["steps"] for f in facts), default=0),
        "lone_chunks": sum(f["lone_chunks"] for f in facts),
        "before_floor": sum(f["before_floor"] for f in facts),
    }
    meta["load"] = {
        **meta.get("load", {}),
        "drain_ns": min(drains, default=None),
        "lost_streams": sum(f["lost_streams"] for f in facts),
        "workers_lost": workers_lost,
        "cpu_share": max((d["cpu_ns"] / d["wall_ns"] for d in told), default=None),
        "cpu_ns": sum(d["cpu_ns"] for d in told),
        "retried": sum(d["retried"] for d in told),
    }
    return meta


def _merge(parts: list[Path], out: Path, meta: dict[str, Any]) -> None:
    """Parts to one file, a row group at a time, with the columns that need all streams."""
    times = [
        _times(pq.read_table(part, columns=["scheduled_ns", "sent_ns", "ended_ns"]))
        for part in parts
    ]
    derived = _Derived(np.concatenate([*times, np.zeros((0, 3), np.int64)]), meta)
    with RecordingWriter(out, meta) as writer:
        for part in parts:
            file = pq.ParquetFile(part, read_dictionary=["kind.list.element"])
            for group in range(file.num_row_groups):
                writer.write(derived.apply(file.read_row_group(group)))


def _times(table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """(scheduled, sent or else scheduled, ended) of each stream."""
    scheduled = table.column("scheduled_ns")
    sent = pc.coalesce(table.column("sent_ns"), scheduled)
    columns = [np.asarray(c, np.int64) for c in (scheduled, sent, table.column("ended_ns"))]
    return np.stack(columns, axis=1)


class _Derived:
    """`in_flight` and `phase`, which depend on every stream of the run."""

    def __init__(self, times: np.ndarray[Any, np.dtype[np.int64]], meta: dict[str, Any]) -> None:
        self._sent = np.sort(times[:, 1])
        self._ended = np.sort(times[:, 2])
        self._drain_ns = meta["load"]["drain_ns"]
        scheduled = np.sort(times[:, 0])
        warmup = min(meta["settings"].get("warmup") or 0, len(scheduled))
        # The first requests by intended time; those of the same instant go together.
        self._warm_until = int(scheduled[warmup - 1]) if warmup else -1

    def apply(self, table: pa.Table) -> pa.Table:
        scheduled, sent, ended = _times(table).T
        open_then = np.searchsorted(self._sent, sent, "right") - np.searchsorted(
            self._ended, sent, "right"
        )
        phase = np.full(len(sent), PHASES.index("steady"))
        if self._drain_ns is not None:
            phase[ended > self._drain_ns] = PHASES.index("cooldown")
        phase[scheduled <= self._warm_until] = PHASES.index("warmup")
        phases = pa.array(np.asarray(PHASES, dtype=object)[phase], pa.string())
        table = _replaced(table, "in_flight", pa.array(open_then, pa.int32()))
        return _replaced(table, "phase", phases)


def _replaced(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)
