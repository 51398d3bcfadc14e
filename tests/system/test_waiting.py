# SPDX-License-Identifier: Apache-2.0
"""What the command line says of sessions that wait and that have ended, where people stay with
them: 'run', 'exec', 'session attach' and 'logs -f'."""

import contextlib
import subprocess

import pytest

from cluster import Cluster, batch, interactive, wait_status
from terminal import Terminal
from world import BUILD


@pytest.fixture(scope="module")
def cluster():
    with Cluster(TERM="xterm", LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@contextlib.contextmanager
def full(cluster):
    """Nothing more fits."""
    client = cluster.client()
    body = batch("hogs-all", "sleep 1000", image="process")
    body["config"]["resources"]["cpu"] = cluster.agent()["available_slots"]["cpu"]
    assert client.post("/session", body).status == 201
    wait_status(client, "hogs-all", "RUNNING")
    try:
        yield
    finally:
        client.send("DELETE", "/session/hogs-all?forced=true")


@contextlib.contextmanager
def waiting(cluster, name):
    client = cluster.client()
    reply = client.post("/session", interactive(name, image="process"))
    assert reply.status == 201, reply
    try:
        yield name
    finally:
        client.send("DELETE", f"/session/{name}?forced=true")
        wait_status(client, reply.json["sessionId"], "TERMINATED", "CANCELLED")


def start(cluster, *words):
    return subprocess.Popen([str(BUILD / "aliquot"), *words], stdin=subprocess.DEVNULL,
                            env={**cluster.env, **cluster.cli_env()}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def terminal(cluster, *words):
    return Terminal(str(BUILD / "aliquot"), *words, env={**cluster.env, **cluster.cli_env()},
                    columns=120)


NEEDS = "waiting: it needs cpu=1 more on agent"


# ---- waiting ----

@pytest.mark.gate
def test_run_says_what_it_waits_for(cluster):
    with full(cluster):
        process = start(cluster, "run", "--name", "patient", "-r", "cpu=1", "-r", "mem=64m", "true")
        assert process.stderr.readline() == "patient: waiting\n"
        assert process.stderr.readline() == f"patient: {NEEDS}\n"
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, ""), err


def test_run_tells_its_place_on_a_terminal(cluster):
    with full(cluster):
        person = terminal(cluster, "run", "--name", "in-line", "-r", "cpu=1", "-r", "mem=64m",
                          "true")
        person.expect(f"{NEEDS}; number 1 of 1 in the queue".encode())
    assert person.wait() == 0


def test_run_says_which_time_it_waits_for(cluster):
    process = start(cluster, "run", "--name", "tomorrow", "--starts-at", "24h", "true")
    said = process.stderr.readline()
    assert said.startswith("starts at ") and said.endswith(" at the earliest\n"), said
    assert process.stderr.readline() == "tomorrow: waiting\n"
    assert process.stderr.readline().startswith("tomorrow: waiting: Before start time (")
    cluster.client().send("DELETE", "/session/tomorrow")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 125
    assert "is CANCELLED without having run: it was asked to end" in err


@pytest.mark.gate
def test_attach_waits(cluster):
    with full(cluster), waiting(cluster, "not-yet"):
        person = terminal(cluster, "session", "attach", "not-yet")
        person.expect(NEEDS.encode())
        cluster.client().send("DELETE", "/session/hogs-all?forced=true")
        person.send(b"echo $((6*7)); exit\r")
        person.expect(b"42")
        assert person.wait() == 0


@pytest.mark.gate
def test_exec_waits(cluster):
    with full(cluster), waiting(cluster, "not-yet"):
        process = start(cluster, "exec", "not-yet", "true")
        assert process.stderr.readline() == f"not-yet: {NEEDS}\n"
        cluster.client().send("DELETE", "/session/hogs-all?forced=true")
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, ""), err


def test_logs_follow_waits(cluster):
    with full(cluster):
        reply = cluster.client().post("/session", batch("speaks", "echo here", image="process"))
        assert reply.status == 201, reply
        process = start(cluster, "logs", "-f", "speaks")
        assert process.stderr.readline() == f"speaks: {NEEDS}\n"
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "here\n"), err


def test_what_is_cancelled_meanwhile(cluster):
    with full(cluster), waiting(cluster, "not-yet"):
        process = start(cluster, "exec", "not-yet", "true")
        assert process.stderr.readline() == f"not-yet: {NEEDS}\n"
        cluster.client().send("DELETE", "/session/not-yet")
        out, err = process.communicate(timeout=60)
        assert process.returncode == 125
        assert "'not-yet' is CANCELLED without having run: it was asked to end" in err


# ---- ended ----

@pytest.mark.parametrize("command, says", (
    ("exit 3", "session 'is-over' has ended, with exit status 3: task-failed"),
    ("true", "session 'is-over' has ended, with exit status 0: task-finished")))
def test_exec_and_attach_on_an_ended_one(cluster, command, says):
    client = cluster.client()
    reply = client.post("/session", batch("is-over", command, image="process"))
    wait_status(client, reply.json["sessionId"], "TERMINATED")
    done = cluster.cli("exec", "is-over", "true")
    assert done.returncode == 125 and says in done.stderr and "WebSocket" not in done.stderr
    person = terminal(cluster, "session", "attach", "is-over")
    person.expect(says.encode())
    assert person.wait() == 1


def test_logs_follow_of_an_ended_one(cluster):
    client = cluster.client()
    reply = client.post("/session", batch("has-said", "echo words", image="process"))
    wait_status(client, reply.json["sessionId"], "TERMINATED")
    done = cluster.cli("logs", "-f", "has-said")
    assert (done.returncode, done.stdout, done.stderr) == (0, "words\n", "")


def test_run_says_that_it_was_the_timeout(cluster):
    done = cluster.cli("run", "--name", "too-long", "--timeout", "1s", "-r", "cpu=1", "-r",
                       "mem=64m", "sleep 1000")
    assert done.returncode == 128 + 15
    assert "session 'too-long' was ended: its --timeout of 1 s was over" in done.stderr


def test_run_says_who_ended_it(cluster):
    process = start(cluster, "run", "--name", "disturbed", "-r", "cpu=1", "-r", "mem=64m",
                    "echo here; sleep 1000")
    assert process.stdout.readline() == "here\n"
    cluster.client().send("DELETE", "/session/disturbed?forced=true")
    out, err = process.communicate(timeout=60)
    assert "session 'disturbed' was ended: it was ended by force" in err
