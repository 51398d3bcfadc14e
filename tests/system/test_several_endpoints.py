# SPDX-License-Identifier: Apache-2.0
"""Clients that know two managers go on when the one that serves is killed and the other takes over.

One database, one manager at a time: it is killed with -9, and starts again at the other address.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from cluster import Cluster, interactive, wait_for, wait_status
from cut_relay import CutRelay
from ports import free_port
from postgres import Server
from runtimes import settings_of
from terminal import Terminal
from world import BUILD

COUNT = 'i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i; sleep 0.2; done; exit 3'
LINES = [f"line {i}" for i in range(1, 61)]

ECHO = """
import socket, threading
def echo(peer):
    with peer:
        while data := peer.recv(65536):
            peer.sendall(data)
listener = socket.create_server(("127.0.0.1", 7000))
while True:
    threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
"""

PIPELINE = """
name: steps
defaults: {image: host, resources: {cpu: 1, mem: 64m}}
tasks:
  first: {command: "sleep 6"}
  second: {needs: [first], command: "true"}
"""


class Pair(Cluster):
    """A cluster whose manager has two addresses, of which one is served."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.addresses = [self.address, ("127.0.0.1", free_port())]

    def move(self):
        """The manager that serves is gone at once; then another one does."""
        self.programs["manager"].kill()
        self.address = next(address for address in self.addresses if address != self.address)
        self.start_manager()

    def cli_env(self, *words):
        return {**super().cli_env(*words), "ALIQUOT_ENDPOINT": self.endpoints()}

    def endpoints(self):
        return ",".join("http://%s:%d" % address for address in self.addresses)

    def start(self, *words, **more):
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                "text": True, **more}
        return subprocess.Popen([BUILD / "aliquot", *words],
                                env={**self.env, **self.cli_env()}, **more)


@contextlib.contextmanager
def database(kind):
    if kind == "file":
        yield {}
    else:
        with Server() as server:
            server.run("CREATE DATABASE cluster")
            yield {"ALIQUOT_MANAGER_DATABASE": server.uri("cluster")}


@pytest.fixture(params=["file", "server"])
def cluster(request):
    with database(request.param) as where, \
            Pair(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host", **where) as cluster:
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_RESOURCE_CPU="16")
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


def ended(process, status):
    out, err = process.communicate(timeout=90)
    assert process.returncode == status, (process.args, process.returncode, out, err)
    return out, err


def first_line(process):
    """Byte by byte, as communicate() gets the rest of the pipe."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(process.stdout.fileno(), 1)
    return line.decode()


def connections(process):
    """How many it has to the managers."""
    inodes = set()
    for file in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(file).removeprefix("socket:[").rstrip("]"))
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == "01" and row[9] in inodes for row in rows)


def echoes(forward, text):
    """A new connection through the port that is forwarded."""
    with socket.create_connection(("127.0.0.1", forward), 40) as peer:
        peer.sendall(text)
        return peer.recv(len(text), socket.MSG_WAITALL) == text


@pytest.mark.gate
def test_what_is_followed_goes_on(cluster):
    client = cluster.client()
    run = cluster.start("run", "--name", "counts", "-r", "cpu=1", "-r", "mem=64m", "--image", "host",
                        "--", "sh", "-c", COUNT)
    wait_for(lambda: client.get("/aliquot/v1/sessions/counts").json.get("status") == "RUNNING", 30,
             "the session")
    readers = {options: cluster.start("logs", "-f", *options, "counts")
               for options in ((), ("--tail", "1"), ("--grep", "0$"), ("-t",))}
    waits = cluster.start("session", "wait", "counts")
    (cluster.folder / "steps.yaml").write_text(PIPELINE)
    steps = cluster.start("pipeline", "run", "--watch", cluster.folder / "steps.yaml")
    begun = {options: first_line(reader) for options, reader in readers.items()}
    wait_for(lambda: connections(waits) == 2 and connections(steps) >= 1, 30, "the clients")

    cluster.move()
    out, err = ended(run, 3)
    assert out.splitlines() == LINES and err.count("does not answer") == 1, (out, err)
    shown = {options: (begun[options] + ended(reader, 0)[0]).splitlines()
             for options, reader in readers.items()}
    assert shown[()] == LINES
    assert shown[("--grep", "0$")] == [line for line in LINES if line.endswith("0")]
    assert [line.split(" ", 1)[1] for line in shown[("-t",)]] == LINES
    last = shown[("--tail", "1")]
    assert last == LINES[-len(last):] and len(last) > 1
    ended(waits, 3)
    ended(steps, 0)


def test_connections_into_sessions(cluster):
    """Those that are cut say what became of their end in the session; new ones are as before."""
    reply = cluster.client().post("/session", interactive("box", image="host"))
    assert reply.status == 201, reply
    wait_status(cluster.client(), "box", "RUNNING")
    done = cluster.cli("exec", "-n", "box", "sh", "-c",
                       'setsid python3 -c "$0" >/dev/null 2>&1 </dev/null &', ECHO)
    assert done.returncode == 0, done
    forward = cluster.start("port-forward", "box", "0:7000")
    port = int(first_line(forward).split(" -> ")[0].rsplit(":", 1)[1])
    wait_for(lambda: echoes(port, b"before"), 60, "the port")
    watcher = Terminal(str(BUILD / "aliquot"), "session", "attach", "box",
                       env={**cluster.env, **cluster.cli_env()})
    watcher.send(b"kept=$((6*7))\r")
    watcher.send(b"echo is-$kept\r")
    watcher.expect(b"is-42")
    command = cluster.start("exec", "-T", "-n", "box", "sh", "-c", "echo begun; sleep 12345")
    assert first_line(command) == "begun\n"

    cluster.move()
    assert "the command gets SIGHUP there" in ended(command, 125)[1]
    watcher.expect(b"connected again", 60)
    watcher.send(b"echo still-$kept\r")
    watcher.expect(b"still-42")
    watcher.send(b"\x10\x11")
    assert watcher.wait() == 0
    assert echoes(port, b"after")
    wait_for(lambda: cluster.cli("exec", "-n", "box", "sh", "-c",
                                 "cat /proc/[0-9]*/cmdline | grep -c 1234[5]").stdout == "0\n", 30,
             "SIGHUP")
    forward.send_signal(signal.SIGINT)
    ended(forward, 0)
    assert cluster.cli("rm", "--wait", "box").returncode == 0


def test_the_first_address_is_dead(cluster):
    """Nobody listens there, and commands do not mention it."""
    cluster.addresses.reverse()
    done = cluster.cli("run", "-r", "cpu=1", "-r", "mem=64m", "--image", "host", "--", "echo",
                       "reached")
    assert (done.returncode, done.stdout) == (0, "reached\n"), done
    assert "aliquot: " not in done.stderr, done
    login = {"ALIQUOT_ENDPOINT": "", "ALIQUOT_ACCESS_KEY": "", "ALIQUOT_SECRET_KEY": ""}
    done = cluster.run("aliquot", "login", cluster.endpoints(), "--dev", **login)
    assert done.returncode == 0, done
    done = cluster.run("aliquot", "config", "show", "-o", "json", **login)
    assert cluster.endpoints() in done.stdout, done
    done = cluster.run("aliquot", "ps", **login)
    assert done.returncode == 0, done


def test_nobody_is_there(cluster):
    cluster.programs["manager"].may_end = True
    cluster.programs["manager"].kill()
    done = cluster.cli("ps")
    assert done.returncode == 8 and "cannot reach any manager of http://" in done.stderr, done
    cluster.start_manager()


def test_an_answer_is_lost_with_its_manager(cluster):
    """The line breaks after the request, and its manager is killed: the next one has the answer."""
    relay = CutRelay(cluster.address[1])
    relay.limits = [1]
    served = cluster.addresses[0]
    cluster.addresses[0] = ("127.0.0.1", relay.port)
    made = cluster.start("session", "create", "--name", "once", "-r", "cpu=1", "-r", "mem=64m",
                         "--image", "host", "--", "true")
    cluster.addresses[0] = served
    wait_for(lambda: relay.cuts == 1, 30, "the cut")
    cluster.move()
    out, err = ended(made, 0)
    relay.close()
    assert err.count("asking again") == 1, err
    sessions = [session for session in cluster.sessions() if session["name"] == "once"]
    assert len(sessions) == 1 and sessions[0]["id"] in out, (out, sessions)
    wait_status(cluster.client(), "once", "TERMINATED")
