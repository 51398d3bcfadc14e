# SPDX-License-Identifier: Apache-2.0
"""Containers go on while their agent is replaced by one of another version, and by the former one
again: the two are different builds, in folders of their own."""

import contextlib
import os
import shutil
import subprocess

import pytest

from cluster import Cluster, interactive, wait_for, wait_status
from runtimes import RUNTIMES, Session, exit_code, settings_of
from terminal import Terminal
from world import BUILD

pytestmark = pytest.mark.engines

NEXT = "9.9.9"


def install(folder, agent):
    """The programs of a version, as a package would bring them."""
    folder.mkdir()
    for path in BUILD.iterdir():
        if path.is_file() and path.name.startswith(("aliquot-", "libaliquot-")) \
                and os.access(path, os.X_OK) and path.name != "aliquot-agent":
            shutil.copy2(path, folder / path.name)
    shutil.copy2(agent, folder / "aliquot-agent")
    return folder


@pytest.fixture(params=RUNTIMES[1:])
def cluster(request):
    with Cluster(**settings_of(request.param)) as cluster:
        yield cluster


def version(path):
    return subprocess.run([path, "--version"], capture_output=True, text=True,
                          check=True).stdout.split()[1]


def replace(cluster, folder):
    """kill -9, and the other version where the former one's files are gone, too."""
    agent = cluster.programs["agent"]
    former = os.path.dirname(agent.command[0])
    agent.kill()
    shutil.rmtree(former)
    agent.command[0] = str(folder / "aliquot-agent")
    agent.start()
    wanted = version(agent.command[0])
    return wait_for(lambda: (shown := cluster.agent()).get("connected")
                    and shown["version"] == wanted and shown, 60, f"an agent of {wanted}")


def start(cluster, session, body):
    reply = cluster.client().post("/session", body)
    assert reply.status == 201, reply
    wait_status(cluster.client(), session, "RUNNING")


def execute(cluster, session, *words):
    done = cluster.cli("exec", session, *words)
    assert done.returncode == 0, done
    return done.stdout


@contextlib.contextmanager
def attached(cluster, session):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "vt100"}
    shell = Terminal(str(BUILD / "aliquot"), "session", "attach", session, env=env)
    yield shell
    shell.send(b"\x10\x11")
    assert shell.wait() == 0


def gate(cluster, number):
    """Lets the programs pass this point; by a command in the container."""
    assert execute(cluster, "worker", "sh", "-c", f"touch pass-{number}; echo done") == "done\n"


def test_upgrade_and_downgrade(cluster):
    old = install(cluster.folder / "old", BUILD / "aliquot-agent")
    new = install(cluster.folder / "new", BUILD / "tests/system/aliquot-agent-next")
    again = install(cluster.folder / "again", BUILD / "aliquot-agent")
    assert version(new / "aliquot-agent") == NEXT != version(old / "aliquot-agent")
    cluster.start_manager()
    cluster.join()
    cluster.start_program("agent", old / "aliquot-agent", "--state", cluster.folder / "agent",
                          ALIQUOT_ID="agent")
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")

    worker = Session(cluster, "for n in 1 2; do echo step $n; while [ ! -e pass-$n ]; do "
                              "sleep 0.05; done; sleep 1; done; echo last; exit 7", name="worker")
    start(cluster, "shell", interactive("shell", image="host"))
    worker.wait_log("step 1")
    with attached(cluster, "shell") as shell:
        shell.send(b"mine=4; echo $((mine+3))7\r")
        shell.expect(b"77")
    held = cluster.agent()["occupied_slots"]
    assert held["cpu"] == "2"

    assert replace(cluster, new)["occupied_slots"] == held
    gate(cluster, 1)  # 'exec' goes on
    worker.wait_log("step 2")
    assert worker.log == "step 1\nstep 2\n"  # the log goes on, and has the former part
    with attached(cluster, "shell") as shell:
        shell.expect(b"77")  # what was there before
        shell.send(b"echo $((mine+3))8\r")
        shell.expect(b"78")  # and the same shell
    later = Session(cluster, "echo by the next; while [ ! -e go ]; do sleep 0.05; done; sleep 1; "
                    "exit 3",
                    name="later")
    later.wait_log("by the next")

    assert replace(cluster, again)["occupied_slots"]["cpu"] == "3"
    gate(cluster, 2)
    assert exit_code(worker.wait()) == 7 and worker.log.endswith("step 2\nlast\n")
    execute(cluster, "later", "touch", "go")
    assert exit_code(later.wait()) == 3
    assert wait_status(cluster.client(), "shell", "RUNNING")["kernels"][0]["exit_code"] is None
    cluster.client().send("DELETE", "/session/shell?forced=true")
    wait_status(cluster.client(), "shell", "TERMINATED")
    wait_for(lambda: cluster.agent()["occupied_slots"].get("cpu", "0") == "0", 30, "the ledger")
    cluster.check_nothing_left()
    cluster.check_audits()
    cluster.stop()


def test_streams_break_with_their_agent(cluster):
    """A command and a terminal end for their users, who are told; both can be had again."""
    cluster.start_manager()
    cluster.start_agent()
    start(cluster, "shell", interactive("shell", image="host"))
    env = {**cluster.env, **cluster.cli_env(), "TERM": "vt100"}
    shell = Terminal(str(BUILD / "aliquot"), "session", "attach", "shell", env=env)
    shell.send(b"echo $((40+2))\r")
    shell.expect(b"42")
    with subprocess.Popen([BUILD / "aliquot", "exec", "shell", "sh", "-c",
                           "sleep 1000 & trap 'touch hung-up; kill -9 $!; exit' HUP; "
                           "echo ready; wait"], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout.readline() == b"ready\n"
        cluster.programs["agent"].kill()
        assert command.wait(60) == 125
    assert shell.wait() != 0
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    # refused until the agent has heard of the container's monitor
    wait_for(lambda: "there" in cluster.cli("exec", "shell", "sh", "-c",
                                            "test -e hung-up && echo there").stdout, 60, "SIGHUP")
    with attached(cluster, "shell") as again:
        again.expect(b"42")
    cluster.client().send("DELETE", "/session/shell?forced=true")
    wait_status(cluster.client(), "shell", "TERMINATED")
    cluster.check_nothing_left()
    cluster.stop()


def test_folders_go_with_an_agent_that_holds_nothing(cluster):
    """Not while a container runs, and not those of the agent that took over."""
    cluster.start_manager()
    cluster.start_agent()
    agent = cluster.programs["agent"]

    def instances():
        return list((cluster.folder / "run").glob("*/kernels"))

    worker = Session(cluster, "echo ready; sleep 1000")
    worker.wait_log("ready")
    agent.stop()
    assert len(instances()) == 1
    agent.start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    second = cluster.run("aliquot-agent", "--state", cluster.folder / "agent")
    assert "another agent runs" in second.stderr and len(instances()) == 1
    worker.end(forced=True)
    worker.wait()
    agent.stop()
    assert not instances() and not list((cluster.folder / "run").glob("*/stage"))
    agent.start()
    assert exit_code(Session(cluster, "exit 5").wait()) == 5
    cluster.check_nothing_left()
    cluster.stop()
