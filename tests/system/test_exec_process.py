# SPDX-License-Identifier: Apache-2.0
"""'aliquot exec' in a session that is a process of its node: its commands are as its program
is, and end with it."""

import os
import pathlib
import signal

import pytest

from cluster import Cluster, batch, running, wait_for, wait_status
from exec_cli import command, run, start
from terminal import Terminal
from world import processes_of

IS_ROOT = os.geteuid() == 0
SHOWS = ("pwd; id -u; id -g; id -G; ulimit -n; nice; umask; cat /proc/self/limits; "
         "grep Cpus_allowed: /proc/self/status; env | grep -v '^_=\\|^SHLVL=' | sort")


@pytest.fixture(scope="module")
def cluster():
    user = {"ALIQUOT_PROCESS_USER": "nobody"} if IS_ROOT else {}
    with Cluster(**user, ALIQUOT_PROCESS_MAX_FILES="500",
                 ALIQUOT_RESOURCE_CPUS="8") as cluster:
        cluster.folder.chmod(0o755)
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(scope="module")
def plain(cluster):
    with running(cluster.client(), "plain"):
        yield "plain"


@pytest.mark.gate
def test_streams_and_status(cluster, plain):
    assert run(cluster, plain, "sh", "-c", "cat; echo out; echo err >&2; exit 7", data=b"in\n") == (
        7, b"in\nout\n", b"err\n")
    assert run(cluster, plain, "sh", "-c", "kill -9 $$")[0] == 137
    assert run(cluster, plain, "head", "-3", data=b"1\n" * (1 << 20)) == (0, b"1\n1\n1\n", b"")
    status, _, said = run(cluster, plain, "no-such-program")
    assert status == 127 and b"no-such-program: execute: No such file or directory" in said
    assert wait_status(cluster.client(), plain, "RUNNING")


@pytest.mark.gate
def test_commands_are_as_the_program_is(cluster):
    client = cluster.client()
    client.post("/session", batch("shows", SHOWS + "; echo over; until test -e enough; do "
                                           "sleep 0.1; done"))
    wait_for(lambda: "over\n" in cluster.cli("logs", "shows").stdout, 60, "the program")
    program = cluster.cli("logs", "shows").stdout.removesuffix("over\n")
    assert run(cluster, "shows", "sh", "-c", SHOWS)[1].decode() == program
    assert "\n500\n" in program and "ALIQUOT_KERNEL_ID=" in program
    assert not IS_ROOT or program.splitlines()[1] == "65534"
    _, said, _ = run(cluster, "-e", "A=b c", "-w", "/usr", "shows", "sh", "-c", "echo $A; pwd")
    assert said == b"b c\n/usr\n"
    run(cluster, "shows", "touch", "enough")
    wait_status(client, "shows", "TERMINATED")


@pytest.mark.gate
def test_terminal(cluster, plain):
    argv, env = command(cluster, plain, "sh")
    shell = Terminal(*map(str, argv), env={**env, "TERM": "vt100"}, rows=31, columns=97)
    shell.send(b"tty; stty size; echo $TERM\r")
    shell.expect(b"/dev/pts/")
    shell.expect(b"31 97")
    shell.expect(b"vt100")
    shell.send(b"trap 'echo interrupted' INT; echo $((40+2))\r")
    shell.expect(b"42")
    shell.send(b"sleep 1000; echo over\r")
    wait_for(lambda: any("sleep 1000" in line for line in processes_of(cluster.folder).values()),
             30, "the command")
    shell.send(b"\x03")
    shell.expect(b"interrupted")
    shell.send(b"exit 5\r")
    assert shell.wait() == 5


def test_signals_reach_the_command_alone(cluster, plain):
    with start(cluster, plain, "sh", "-c", "sleep 1000 & trap 'echo got; kill -9 $!; exit 3' INT;"
                                           " echo ready; wait") as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"got\n" and process.wait(60) == 3
    assert wait_status(cluster.client(), plain, "RUNNING")


def test_a_client_that_goes_takes_its_command_along(cluster, plain):
    with start(cluster, plain, "sh", "-c", "sleep 1000 & trap 'touch gone; kill -9 $!; exit' HUP;"
                                           " echo ready; wait") as process:
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    wait_for(lambda: run(cluster, plain, "test", "-e", "gone")[0] == 0, 30, "SIGHUP")


def started(cluster, name):
    """A command of two processes, one in the background, which the session's name tells."""
    process = start(cluster, name, "sh", "-c", "setsid sh -c 'sleep 1000; : of $0' $0 & echo ready;"
                                               " sleep 1000; : of $0", name)
    assert process.stdout.readline() == b"ready\n"
    assert commands_of(cluster, name)
    return process


def commands_of(cluster, name):
    return [line for line in processes_of(cluster.folder).values() if line.endswith(f" {name} ")]


def check_gone(cluster, name):
    wait_for(lambda: not commands_of(cluster, name), 30, lambda: commands_of(cluster, name))


def test_commands_end_with_the_session(cluster):
    with running(cluster.client(), "short"):
        process = started(cluster, "short")
        cluster.client().send("DELETE", "/session/short?forced=true")
        assert process.wait(60) == 125 and b"ended" in process.stderr.read()
    check_gone(cluster, "short")


def test_a_program_that_ends_takes_commands_along(cluster):
    client = cluster.client()
    client.post("/session", batch("ending", "until test -e enough; do sleep 0.1; done"))
    wait_status(client, "ending", "RUNNING")
    process = started(cluster, "ending")
    assert run(cluster, "ending", "touch", "enough")[0] in (0, 125)
    wait_status(client, "ending", "TERMINATED")
    assert process.wait(60) == 125
    check_gone(cluster, "ending")


def test_an_agent_that_is_killed(cluster, plain):
    process = started(cluster, plain)
    cluster.programs["agent"].kill()
    assert process.wait(60) == 125
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert run(cluster, plain, "echo", "still here") == (0, b"still here\n", b"")


def test_a_monitor_that_is_killed_leaves_nothing(cluster):
    client = cluster.client()
    client.post("/session", batch("lost", "sleep 1000"))
    wait_status(client, "lost", "RUNNING")
    started(cluster, "lost")
    kernel = client.get("/aliquot/v1/sessions/lost").json["kernels"][0]["id"]
    monitors = [pid for pid, line in processes_of(cluster.folder).items()
                if "aliquot-monitor" in line and kernel in line]
    assert len(monitors) == 1
    os.kill(monitors[0], signal.SIGKILL)
    wait_status(client, "lost", "TERMINATED", "ERROR")
    check_gone(cluster, "lost")


def test_a_runner_that_is_killed_is_started_again(cluster, plain):
    assert run(cluster, plain, "true")[0] == 0
    runners = [pid for pid, line in processes_of(cluster.folder).items() if "aliquot-runner" in line]
    assert len(runners) == 1
    os.kill(runners[0], signal.SIGKILL)
    wait_for(lambda: not pathlib.Path(f"/proc/{runners[0]}").exists(), 30, "its end")
    wait_for(lambda: run(cluster, plain, "echo", "again")[:2] == (0, b"again\n"), 30, "another")


def test_what_needs_a_container_says_so(cluster, plain, tmp_path):
    (tmp_path / "file").write_text("x")
    for words in (("cp", tmp_path / "file", f"{plain}:file"), ("eval", plain, "1"),
                  ("port-forward", plain, "--stdio", "80")):
        done = cluster.cli(*words)
        assert done.returncode not in (0, 127) and "container" in done.stderr, (words, done)
