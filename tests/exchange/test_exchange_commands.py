"""`legato import` and `legato export` as their user runs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "samples"


def legato(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "legato.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("legato: ")
    assert done.stderr.count("\n") == 1


def test_an_import_lies_beside_its_file_says_what_is_missing_and_can_be_reported(
    tmp_path: Path,
) -> None:
    file = tmp_path / "result.json"
    shutil.copy(SAMPLES / "vllm-chat.json", file)
    done = legato("import", file)
    assert done.returncode == 0
    first, *missing = done.stdout.splitlines()
    assert first == f"{tmp_path / 'result.parquet'}: 6 streams of vllm"
    assert missing
    assert all(line.startswith("missing: ") for line in missing)
    summary = json.loads(legato("report", tmp_path / "result.parquet", "--json").stdout)
    assert summary["streams"]["ok"] == 5
    # A second import would overwrite the first.
    assert_refused(legato("import", file))


def test_an_import_can_be_exported_to_standard_output_and_to_a_file(tmp_path: Path) -> None:
    run, out = tmp_path / "run.parquet", tmp_path / "trace.json"
    assert legato("import", SAMPLES / "aiperf-profile_export.jsonl", "--out", run).returncode == 0
    shown = legato("export", run, "--format", "openmetrics")
    assert shown.stdout.endswith("# EOF\n")
    assert legato("export", run, "--format", "chrome-trace", "--out", out).returncode == 0
    assert json.loads(out.read_text())["traceEvents"]
    assert_refused(legato("export", run, "--format", "chrome-trace", "--out", out))


@pytest.mark.parametrize(
    "wrong",
    [
        ["import", "nothing.json"],
        ["import", SAMPLES],
        ["import"],
        ["export", SAMPLES / "vllm-chat.json", "--format", "csv"],
        ["export", "nothing.parquet", "--format", "csv"],
        ["export", "nothing.parquet"],
        ["export", "nothing.parquet", "--format", "xml"],
        ["export", "nothing.parquet", "--format", "openmetrics", "--rows", "chunks"],
    ],
    ids=lambda wrong: " ".join(Path(word).name for word in wrong),
)
def test_wrong_input_is_one_sentence(wrong: list[str | Path]) -> None:
    assert_refused(legato(*wrong))
