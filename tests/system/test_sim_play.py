# SPDX-License-Identifier: Apache-2.0
"""`aliquot sim --play` as users call it."""

import json
import os
import subprocess

import pytest

from world import BUILD


def play(seed, *options):
    return subprocess.run([BUILD / "aliquot", "sim", "--play", str(seed), *map(str, options)],
                          capture_output=True, text=True, timeout=600)


@pytest.mark.gate
def test_a_run_with_all_faults():
    done = play(4, "--agents", 8, "--hours", 2, "--faults", "many", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["broken"] is None
    assert report["command"] == ("aliquot sim --play 4 --agents 8 --gpus 2 --hours 2 --sessions 240"
                                 " --faults many")
    assert report["sessions"] > 100 and report["succeeded"] > 50
    assert report["programs"] >= report["succeeded"]
    for fault in ("manager_crashes", "agent_crashes", "machine_crashes", "partitions", "stalls",
                  "disk_faults", "clock_jumps"):
        assert report[fault] > 0, fault
    assert report["sent_again"] > 0
    assert report["sweeps"] > 100 and report["audits"] > 4


def test_the_same_seed_is_the_same_run():
    options = ("--agents", 4, "--hours", 0.5, "--faults", "many")
    first, second = play(3, *options), play(3, *options)
    other = play(4, *options)
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout == second.stdout
    assert first.stdout != other.stdout.replace("seed 4", "seed 3")


def test_the_trace_is_the_same_too():
    traces = [play(5, "--agents", 2, "--hours", 0.2, "--trace").stderr for _ in range(2)]
    assert "manager: s1 session_terminated" in traces[0]
    assert traces[0] == traces[1]


def test_seeds_one_after_another():
    done = play(7, "--agents", 2, "--hours", 0.1, "--faults", "none", "--until-failure", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    seeds = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    assert [line.split(":")[0] for line in seeds] == ["seed 7", "seed 8", "seed 9"]


@pytest.mark.parametrize("options, text", [
    (["--play", "x"], "--play must be a whole number"),
    (["--play", "-1"], "--play must be a whole number"),
    (["--play", "18446744073709551616"], "--play must be a whole number"),
    (["--play", "1", "--agents", "0"], "--agents must be a number from 1 to 5000, not '0'"),
    (["--play", "1", "--agents", "2.5"], "--agents must be a whole number, not '2.5'"),
    (["--play", "1", "--hours", "nan"], "--hours must be a number from 0.1 to 1000, not 'nan'"),
    (["--play", "1", "--faults", "crash,fire"], "stall, disk, clock, not 'fire'"),
    (["--play", "1", "--faults", ","], "--faults is empty"),
    (["--play", "1", "--nodes", "n.csv"], "--nodes replays a trace; --play simulates a cluster"),
    (["--agents", "3"], "--agents needs --play SEED"),
])
def test_bad_options_are_named(options, text):
    done = subprocess.run([BUILD / "aliquot", "sim", *options], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stdout == ""


def test_an_interrupted_run_leaves_no_files(tmp_path):
    run = subprocess.Popen([BUILD / "aliquot", "sim", "--play", "1", "--hours", "500", "--trace"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        for line in run.stderr:
            if "session_enqueued" in line:
                break
        assert list(tmp_path.iterdir())
        run.terminate()
        out, _ = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 1
    assert out == ""
    assert not list(tmp_path.iterdir())
