"""./demo --exit on this machine: what its last line says, and that nothing is left."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from cluster import processes_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "demo"))
import python_images as images  # noqa: E402


def left_behind():
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True).stdout
    return ([line for line in mounts.splitlines() if "aliquot-demo" in line],
            [line for line in links.splitlines() if line.startswith("aq")])


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("containers need root")
    subprocess.run([ROOT / "tools" / "install-packages", "containers", "demo"], check=True)
    for version in images.RELEASES:
        try:
            images.build(version)
        except subprocess.CalledProcessError as e:
            pytest.skip(f"a root file system of {images.RELEASES[version]} cannot be had: {e.stderr}")
    folder = tmp_path_factory.mktemp("demo")
    before = left_behind()
    env = {key: value for key, value in os.environ.items() if not key.startswith("ALIQUOT_")}
    with (folder / "log").open("w+") as log:
        done = subprocess.run([ROOT / "demo", "--exit", "--state", folder / "cluster"], text=True,
                              stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=900,
                              env=env)
        log.seek(0)
        lines = log.read().strip().splitlines()
    assert done.returncode == 0, "\n".join(lines[-40:])
    assert not processes_of(folder)
    assert left_behind() == before
    return json.loads(lines[-1])


def test_demo_shares_of_two_cards(result):
    assert sorted(result["gpu_alloc_map"].values()) == ["0.60", "0.80"]


def test_demo_the_third_waits_and_then_runs(result):
    assert result["queue"]["first"] == ["RUNNING", "RUNNING", "PENDING"]
    assert "cuda.shares: missing=1" in result["queue"]["why"]
    assert result["queue"]["after"] == "RUNNING"
    assert result["queue"]["drained"]["succeeded"] == result["queue"]["drained"]["sessions"]


def test_demo_slices_of_a_simulated_card(result):
    assert [(of["sees_mib"], of["error"]) for of in result["gpu_slices"]] == [(2048, 2)] * 2
    assert all(1700 < of["got_mib"] <= 2048 for of in result["gpu_slices"])


def test_demo_three_pythons(result):
    assert {version: said.split(" loss ")[0] for version, said in result["runtimes"].items()} == {
        version: f"Python {version}" for version in ("3.9", "3.11", "3.13")}


def test_demo_batch_programs(result):
    seen = {name: (of["exit"], of["reason"]) for name, of in result["batch"].items()}
    assert seen == {"succeeds": (0, "task-finished"), "fails": (3, "task-failed"),
                    "too-hungry": (137, "out-of-memory")}


def test_demo_recovery(result):
    assert result["recovery"]["sessions_kept"] == 2 and result["recovery"]["audit"] == "clean"


def test_demo_figures(result):
    assert 0 < result["session_start_ms"]["median"] <= result["session_start_ms"]["p90"]
    assert 1000 < result["manager_rss_kb"] < 100000 and result["total_s"] > 0
