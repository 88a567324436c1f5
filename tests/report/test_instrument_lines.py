from __future__ import annotations

import summaries

from legato.report.instrument import instrument_lines


def test_everything_that_is_known_has_its_line() -> None:
    assert dict(instrument_lines(summaries.smooth())) == {
        "clock": "the kernel's receive stamps",
        "error": "99 % of gaps are within 0.012 ms of the truth, the one read latest within"
        " 0.12 ms (calibrated floor included)",
        "lag": "the client read a chunk 0.0240 ms (p50), 3.10 ms (p99) after it arrived",
        "merged": "0.2 % of chunks, because the client read late; 0.4 % shared a read for any"
        " reason",
        "CPU": "the busiest worker used 41 % of a core",
        "load": "49.9 of 50 streams open on average",
        "tokens": "counted by the server in every chunk",
    }


def test_salted_and_unsalted_prompts_are_told_apart() -> None:
    summary = summaries.smooth()
    summary["run"]["settings"]["cache_friendly"] = False
    assert "no prefix cache helped" in dict(instrument_lines(summary))["prompts"]
    summary["run"]["settings"]["cache_friendly"] = True
    assert "a prefix cache may have helped" in dict(instrument_lines(summary))["prompts"]


def test_a_proxy_an_unverified_certificate_and_replaced_connections_are_said() -> None:
    summary = summaries.smooth()
    summary["run"]["settings"] |= {"proxy": "proxy.example:3128", "tls": True, "verified": False}
    summary["run"]["retried"] = 2
    assert dict(instrument_lines(summary))["path"] == (
        "through the proxy proxy.example:3128; certificates not verified;"
        " 2 kept connections had been closed and replaced"
    )


def test_what_is_unknown_is_left_out() -> None:
    summary = summaries.smooth()
    summary["instrument"] |= {"lag_us": None, "cpu_share": None, "client_merged_share": None}
    assert [label for label, _ in instrument_lines(summary)] == [
        "clock",
        "error",
        "load",
        "tokens",
    ]


def test_an_error_beyond_loopback_excludes_the_network_card() -> None:
    said = dict(instrument_lines(summaries.open_loop()))["error"]
    assert said.endswith("what the network card held back is not in it")


def test_an_error_without_a_calibrated_floor_says_so() -> None:
    summary = summaries.smooth()
    summary["run"]["calibration"] = None
    said = dict(instrument_lines(summary))["error"]
    assert said.startswith("late reads and the clock added at most 0.012 ms to 99 % of gaps")
    assert said.endswith("not calibrated: run legato calibrate for this machine's floor")
    assert "truth" not in said


def test_where_the_key_came_from_is_said() -> None:
    summary = summaries.smooth()
    summary["run"]["settings"]["key_from"] = "OPENAI_API_KEY"
    assert dict(instrument_lines(summary))["key"] == "from OPENAI_API_KEY"


def test_reads_without_kernel_stamps_are_named() -> None:
    summary = summaries.smooth()
    summary["instrument"]["clock"] = "user"
    assert dict(instrument_lines(summary))["clock"] == (
        "the time of each read: the kernel gave no stamps"
    )


def test_open_loop_gives_how_late_requests_left() -> None:
    assert dict(instrument_lines(summaries.open_loop()))["load"] == (
        "requests left at most 0.410 ms late (p99)"
    )
