# SPDX-License-Identifier: Apache-2.0
"""Containers with a part of a GPU: what they see, what they are refused, what outlives what."""

import os
import re
import shutil
import subprocess
import time

import pytest

import containers
from cluster import wait_for
from gpu_cluster import GpuCluster, body_of, started_cluster
from runtimes import Session, run
from world import BUILD

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def cluster():
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with started_cluster(ALIQUOT_IMAGE_ALLOW="host rootfs:*") as made:
        yield made


def run_python(cluster, amount, program, **more):
    return run(cluster, 'exec python3 -c "$MAIN"', **body_of(amount, program, **more))


def begin_python(cluster, amount, program, **more):
    return Session(cluster, 'exec python3 -c "$MAIN"', **body_of(amount, program, **more))


def test_half_of_a_share(cluster):
    """Document 002: 8 GB are 2 fGPU; a session of 0.5 fGPU sees 2 GB, and gets no more."""
    shown, log = run_python(cluster, "0.5", """
say("total", info()[1])
say("within", alloc(1500))
say("over", alloc(600))
say("left", info()[0] < 600)
""")
    assert shown["result"] == "SUCCESS", (shown, log)
    assert log.splitlines() == ["total 2048", "within 0", "over 2", "left True"]
    wait_for(lambda: cluster.card.show()[0]["used"] == 0, 30, "the card to be empty")


def test_two_containers_on_one_device(cluster):
    """Neither sees or takes what is the other's."""
    program = """
say("got", alloc(3000), alloc(1500), info()[1])
time.sleep(600)
"""
    sessions = [begin_python(cluster, "1", program) for _ in range(2)]
    for session in sessions:
        session.wait_log("got 0 2 4096")
    used = [client["memory"] >> 20 for client in cluster.card.show()[0]["clients"]]
    assert len(used) == 2 and all(3000 <= mib < 3200 for mib in used), used
    for session in sessions:
        session.end(forced=True)
    for session in sessions:
        session.wait()
    wait_for(lambda: cluster.card.show()[0]["used"] == 0, 30, "the card to be empty")


def test_every_process_of_the_container_counts(cluster):
    """Also one without the others' environment; and memory of the dead is free again."""
    _, log = run_python(cluster, "0.5", """
import os, subprocess
hold = subprocess.Popen(["python3", "-c", os.environ["CUDA"] + "say(alloc(1000)); time.sleep(600)"],
                        stdout=subprocess.PIPE, env={"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]})
hold.stdout.readline()
say("beside it", alloc(1000))
hold.kill()
while alloc(1000): time.sleep(0.05)
say("without it", 0)
""")
    assert log.splitlines() == ["beside it 2", "without it 0"]


NEW_PROCESSES = r"""
import os, subprocess
say("own", alloc(1000))
child = os.environ["CUDA"].replace("start()\n", "") + (
    "result = cuda.cuInit(0)\n"
    "if result == 0: start(); result = (alloc(600), alloc(600))\n"
    "say(result)\n")
while True:
    said = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout
    say("child", said.strip(), "own", alloc(2000))
    time.sleep(0.1)
"""


def test_agent_killed_under_a_container(cluster):
    """What was granted stays; new processes have to wait for the next agent, and the next but one."""
    session = begin_python(cluster, "0.5", NEW_PROCESSES)
    session.wait_log("child (0, 2) own 2")
    said = cluster.folder / "agent/kernels" / session.kernel["id"] / "run/1/log"
    for _ in range(2):
        cluster.programs["agent"].kill()
        before = said.read_text().count("child 802")
        wait_for(lambda: said.read_text().count("child 802") > before, 60, said.read_text)
        cluster.start_agent()
        wait_for(lambda: session.log.rstrip().endswith("child (0, 2) own 2"), 60,
                 lambda: session.log)
    log = session.log
    session.end(forced=True)
    session.wait()
    assert set(log.splitlines()) == {"own 0", "child (0, 2) own 2", "child 802 own 2"}, log
    wait_for(lambda: cluster.card.show()[0]["used"] == 0, 30, "the card to be empty")


def why(session):
    return session.client.get(f"/aliquot/v1/sessions/{session.id}/why").body.decode()


def test_death_by_a_full_slice(cluster):
    """The reason says so if a program fails after it was refused memory."""
    session = begin_python(cluster, "0.5", "must(alloc(3000))")
    shown = session.wait()
    assert (shown["reason"], shown["result"]) == ("gpu-out-of-memory", "FAILURE"), session.log
    assert run_python(cluster, "0.5", "must(alloc(100)); exit(3)")[0]["reason"] == "task-failed"


def test_a_share_becomes_another(cluster):
    """The administrator makes shares smaller: nobody loses what he has, nobody gets more."""
    session = begin_python(cluster, "0.5", """
say("had", alloc(1500))
while True:
    say(info()[1], alloc(100), info()[0] < 1024)
    time.sleep(0.1)
""")
    session.wait_log("2048 0 ")
    cluster.write_cards("2G")
    session.wait_log("1024 2 True")
    cluster.write_cards("4G")
    wait_for(lambda: session.log.rstrip().splitlines()[-1].startswith("2048 "), 30,
             lambda: session.log)
    session.end(forced=True)
    session.wait()


# ---- images that nothing can be held in ----

@pytest.fixture
def bare(cluster):
    """A root file system with one static program and no loader."""
    root = cluster.folder / "bare"
    root.mkdir(exist_ok=True)
    shutil.copy(BUILD / "aliquot-runner", root / "hello")
    yield root
    shutil.rmtree(root)


def test_image_without_a_loader(cluster, bare):
    session = Session(cluster, "/hello --version", image=f"rootfs:{bare}", **body_of("0.5", ""))
    assert session.wait()["status"] == "ERROR"
    assert "has no /lib64/ld-linux" in why(session), why(session)
    assert run(cluster, "/hello --version", image=f"rootfs:{bare}")[0]["result"] == "SUCCESS"


def test_image_with_another_loader(cluster, bare):
    (bare / "lib").mkdir()
    (bare / "lib" / "ld-musl-x86_64.so.1").touch()
    session = Session(cluster, "/hello --version", image=f"rootfs:{bare}", **body_of("0.5", ""))
    assert session.wait()["status"] == "ERROR"
    assert "musl" in why(session), why(session)


def test_image_with_a_broken_loader(cluster, bare):
    """What is there but does not work is found out in the container, before the program."""
    (bare / "lib64").mkdir()
    (bare / "lib64" / "ld-linux-x86-64.so.2").write_text("no loader")
    session = Session(cluster, "/hello --version", image=f"rootfs:{bare}", **body_of("0.5", ""))
    assert session.wait()["status"] == "ERROR"
    assert "execute: " in why(session), why(session)
    assert "aliquot-runner 0" not in session.log


def libraries_of(program):
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def test_own_preloads_of_an_image_are_kept(cluster, bare):
    for path in {"/bin/sh", *libraries_of("/bin/sh")}:
        target = bare / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (bare / "etc").mkdir()
    (bare / "etc" / "ld.so.preload").write_text("/lib/of-its-own.so")
    shown, log = run(cluster, "while read line; do echo got $line; done < /etc/ld.so.preload",
                     image=f"rootfs:{bare}", **body_of("0.5", ""))
    assert shown["result"] == "SUCCESS", (shown, log)
    assert "got /lib/of-its-own.so\ngot /opt/kernel/libaliquot-gpu.so\n" in log
    assert "'/lib/of-its-own.so' from /etc/ld.so.preload cannot be preloaded" in log


def test_node_whose_library_cannot_be_loaded(tmp_path):
    """Neither does anything start there, nor where images need no loader by the setting."""
    if why_not := containers.why_not("crun"):
        pytest.skip(why_not)
    broken = tmp_path / "libaliquot-gpu.so"
    broken.write_text("no library")
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(BUILD / "aliquot-runner", bare / "hello")
    with GpuCluster(ALIQUOT_IMAGE_ALLOW="host rootfs:*", ALIQUOT_GPU_LIBRARY=str(broken),
                    ALIQUOT_GPU_ALLOW_UNENFORCED="true") as cluster:
        os.chmod(tmp_path, 0o755)
        cluster.start_manager()
        cluster.start_agent()
        session = begin_python(cluster, "0.5", "say(1)")
        assert session.wait()["status"] == "ERROR"
        assert "the loader does not load the library" in why(session), why(session)
        shown, log = run(cluster, "/hello --version", image=f"rootfs:{bare}", **body_of("0.5", ""))
        assert shown["result"] == "SUCCESS", (shown, log)
        assert "allow-unenforced" in cluster.agent()["runtime_notes"]
        cluster.check_nothing_left()
        cluster.stop()
