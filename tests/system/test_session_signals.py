# SPDX-License-Identifier: Apache-2.0
"""A session's program gets the signals that somebody sends it, and none for what becomes of
those who use the session."""

import socket
import struct
import subprocess

import pytest

from cluster import Cluster, batch, running, wait_for, wait_status
from runtimes import settings_of
from terminal import Terminal
from world import BUILD

LARGE = bytes(5 << 20)
IN_CONTAINERS = pytest.mark.parametrize("cluster", ("crun", "runc"), indirect=True)
# All but SIGURG, which Go's runtime sends its own threads: one that runc has not yet taken when it
# executes the container's first program arrives there.
NOTES_SIGNALS = ("for n in 1 2 3 10 12 13 14 15 24 25 28 29; do trap \"echo got $n\" $n; done; "
                 "echo ready; while :; do sleep 1; done")


@pytest.fixture(params=("process", "crun", "runc"), scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.image = "process" if request.param == "process" else "host"
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def noting(cluster):
    """A session whose program writes down each signal."""
    client = cluster.client()
    client.post("/session", {**batch("noting", NOTES_SIGNALS), "image": cluster.image})
    wait_for(lambda: log_of(cluster, "noting") == "ready\n", 60,
             lambda: f"its program: {log_of(cluster, 'noting')!r}")
    yield "noting"
    client.send("DELETE", "/session/noting?forced=true")
    wait_status(client, "noting", "TERMINATED", "CANCELLED")


def log_of(cluster, name):
    return cluster.cli("logs", name).stdout


def start(cluster, *words, **more):
    more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen([BUILD / "aliquot", *words], env={**cluster.env, **cluster.cli_env()},
                            **more)


def run(cluster, *words, data=b""):
    process = start(cluster, *words)
    out, err = process.communicate(data, timeout=100)
    return process.returncode, out, err


def check_unharmed(cluster, noting):
    assert run(cluster, "exec", noting, "echo", "here") == (0, b"here\n", b"")
    assert wait_status(cluster.client(), noting, "RUNNING")
    assert log_of(cluster, noting) == "ready\n"


@pytest.mark.gate
def test_a_command_that_closes_its_input_early(cluster, noting):
    lines = b"".join(b"%d\n" % n for n in range(700000))
    assert len(lines) > len(LARGE) * 9 // 10
    for _ in range(10):
        assert run(cluster, "exec", noting, "head", "-3", data=lines) == (0, b"0\n1\n2\n", b"")
    assert run(cluster, "exec", noting, "sh", "-c", "exec 0<&-; echo closed; sleep 0.5; exit 4",
               data=LARGE) == (4, b"closed\n", b"")
    check_unharmed(cluster, noting)


def test_clients_that_are_killed(cluster, noting):
    for words in (("head", "-c", "1"), ("sh", "-c", "yes & exec sleep 1000"), ("cat",)):
        process = start(cluster, "exec", noting, *words)
        process.stdin.write(b"x" * 50000)
        process.stdin.flush()
        process.stdout.read(1)
        process.kill()
        process.communicate()
    check_unharmed(cluster, noting)


@IN_CONTAINERS
def test_files_that_are_not_moved_to_their_end(cluster, noting, tmp_path):
    (tmp_path / "large").write_bytes(bytes(64 << 20))
    for words in ((tmp_path / "large", f"{noting}:large"), (f"{noting}:/dev/zero", "-")):
        process = start(cluster, "cp", *words)
        process.stdin.close()
        process.stdin = None
        if words[1] == "-":
            process.stdout.read(1)
        process.kill()
        process.communicate()
    check_unharmed(cluster, noting)


def test_a_terminal_that_is_closed(cluster, noting):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "vt100"}
    person = Terminal(str(BUILD / "aliquot"), "exec", noting, "sh", env=env)
    person.send(b"echo $((6*7))\r")
    person.expect(b"42")
    person.hang_up()
    check_unharmed(cluster, noting)


def test_a_terminal_of_the_program_that_is_closed(cluster):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "vt100"}
    with running(cluster.client(), "typed", image=cluster.image):
        person = Terminal(str(BUILD / "aliquot"), "session", "attach", "typed", env=env)
        person.send(b"trap 'echo got a signal' HUP INT TERM PIPE; echo $((6*7))\r")
        person.expect(b"42")
        person.hang_up()
        again = Terminal(str(BUILD / "aliquot"), "session", "attach", "typed", env=env)
        again.send(b"echo $((40+3))\r")
        again.expect(b"43")
        again.send(b"\x10\x11")
        again.wait()
        assert "\ngot a signal" not in log_of(cluster, "typed")


@IN_CONTAINERS
def test_a_peer_that_resets_its_connection(cluster, noting):
    """Of a forwarded port, in the middle of bytes of both sides."""
    serve = ("import socket\nlistener = socket.create_server(('127.0.0.1', 7100))\n"
             "print('listens', flush=True)\npeer = listener.accept()[0]\n"
             "try:\n    while True: peer.sendall(bytes(65536))\nexcept OSError: print('reset')\n")
    with start(cluster, "exec", "-n", noting, "python3", "-c", serve) as server, \
            start(cluster, "port-forward", noting, "0:7100", stdin=subprocess.DEVNULL) as forward:
        try:
            assert server.stdout.readline() == b"listens\n"
            port = int(forward.stdout.readline().split(b" -> ")[0].rpartition(b":")[2])
            with socket.create_connection(("127.0.0.1", port)) as peer:
                assert peer.recv(1)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            assert server.communicate(timeout=60)[0] == b"reset\n"
        finally:
            forward.kill()
            server.kill()
    check_unharmed(cluster, noting)


@pytest.mark.gate
def test_a_program_that_closes_its_own_input(cluster):
    words = ("run", "-q", "-r", "cpu=1", "-r", "mem=64m", "--image", cluster.image, "--")
    status, out, _ = run(cluster, *words, "sh", "-c",
                         "read x; exec 0<&-; sleep 0.5; echo over; exit 3", data=b"\n" + LARGE)
    assert (status, out) == (3, b"over\n")
