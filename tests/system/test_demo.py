# SPDX-License-Identifier: Apache-2.0
"""./demo --exit on this machine: what its last line says, and that nothing is left."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import fetched
from world import ROOT, World, own_network, processes_of

sys.path += [str(ROOT / "tools"), str(ROOT / "tools" / "demo")]
import commands  # noqa: E402
import folders  # noqa: E402
import python_images as images  # noqa: E402

pytestmark = pytest.mark.gate

UPLINK = ("ip link add up0 type veth peer name up1", "ip addr add 192.0.2.2/24 dev up0",
          "ip link set up0 up", "ip link set up1 up", "ip route add default via 192.0.2.1")


def left_behind(inside):
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    links = subprocess.run(inside("ip", "-brief", "link"), capture_output=True, text=True).stdout
    return ([line for line in mounts.splitlines() if "aliquot-demo" in line],
            [line for line in links.splitlines() if line.startswith("aq")])


def run_demo(world, inside):
    for command in UPLINK:
        subprocess.run(inside(*command.split()), check=True)
    before = left_behind(inside)
    with (world.folder / "log").open("w+") as log:
        done = subprocess.run(inside(ROOT / "demo", "--exit", "--state", world.folder / "cluster"),
                              text=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                              timeout=900, env=world.env)
        log.seek(0)
        lines = log.read().strip().splitlines()
    assert done.returncode == 0, "\n".join(lines[-40:])
    assert not processes_of(world.folder)
    assert left_behind(inside) == before
    return json.loads(lines[-1])


@pytest.fixture(scope="module")
def result():
    """Networks and all, but not those of the machine; the images are kept from one time to the next."""
    if os.geteuid() != 0:
        pytest.skip("containers need root")
    subprocess.run([ROOT / "tools" / "install-packages", "containers", "demo"], check=True)
    try:
        with folders.locked_cache(lambda: None):
            for version in images.RELEASES:
                images.build(version)
    except commands.Failed as e:
        fetched.missing("images for the demo", f"{e}: {e.last_lines}")
    with World(XDG_CACHE_HOME=str(folders.cache_dir().parent)) as world, own_network() as inside:
        return run_demo(world, inside)


def test_demo_shares_of_two_cards(result):
    assert sorted(result["gpu_alloc_map"].values()) == ["0.60", "0.80"]


def test_demo_the_third_waits_and_then_runs(result):
    assert result["queue"]["first"] == ["RUNNING", "RUNNING", "PENDING"]
    assert "cuda.shares: 1 missing" in result["queue"]["why"]
    assert result["queue"]["after"] == "RUNNING"
    assert result["queue"]["drained"]["succeeded"] == result["queue"]["drained"]["sessions"]


def test_demo_console_and_folders(result):
    assert result["console"] is True
    assert result["folders"]["mean"] in ("170.0", None)  # None: no file system for it


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


def test_demo_notebook(result):
    """By the words that the demo shows at its end."""
    assert 0 < result["notebook_s"]


def test_demo_recovery(result):
    assert result["recovery"]["sessions_kept"] == 2 and result["recovery"]["audit"] == "clean"


def test_demo_figures(result):
    assert 0 < result["session_start_ms"]["median"] <= result["session_start_ms"]["p90"]
    assert 1000 < result["manager_rss_kb"] < 100000 and result["total_s"] > 0
