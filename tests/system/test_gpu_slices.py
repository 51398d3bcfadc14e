"""Containers with a part of a GPU: what they see, what they are refused, what outlives what."""

import time

import pytest

import containers
from cluster import wait_for
from gpu_cluster import GpuCluster, body_of
from test_runtime import Session, run


@pytest.fixture(scope="module")
def cluster():
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with GpuCluster() as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.check_nothing_left()
        made.check_audits()
        made.stop()


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
    for times in (1, 2):
        cluster.programs["agent"].kill()
        time.sleep(1)
        cluster.start_agent()
        wait_for(lambda: session.log.rstrip().endswith("child (0, 2) own 2")
                 and session.log.count("child 802") >= times, 30, lambda: session.log)
    log = session.log
    session.end(forced=True)
    session.wait()
    assert set(log.splitlines()) == {"own 0", "child (0, 2) own 2", "child 802 own 2"}, log
    wait_for(lambda: cluster.card.show()[0]["used"] == 0, 30, "the card to be empty")
