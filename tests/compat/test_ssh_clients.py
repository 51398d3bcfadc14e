# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI: apps of a session, and ssh and scp to it.

Sessions have networks, so the story of each client is told in a network namespace of its own.
Run as a program, this file tells one.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import containers  # noqa: E402
import real_client  # noqa: E402
from client import ADMIN  # noqa: E402
from cluster import wait_for  # noqa: E402
from images import archive, programs  # noqa: E402
from ports import free_port  # noqa: E402
from test_container_network import check_all_gone  # noqa: E402
from test_ssh import Session, start  # noqa: E402
from web_terminal import WebTerminal  # noqa: E402

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")
NAMES = (("ssh",), ("session", "ssh"))
COPIES = (("scp",), ("session", "scp"))
NEEDED = ("/usr/sbin/dropbear", "/usr/lib/openssh/sftp-server", "/usr/bin/ssh")
if missing := [path for path in NEEDED if not os.path.exists(path)]:
    pytest.skip(f"{missing[0]} is not installed", allow_module_level=True)


def children(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return []


def remind(pid):
    """Proxies below 'pid' for whose end their command waits, and for nothing else."""
    for child in children(pid):
        remind(child)
        with contextlib.suppress(OSError):
            line = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            waits = "wait" in pathlib.Path(f"/proc/{pid}/wchan").read_text()
            if waits and b"app" in line and b"sshd" in line and children(pid) == [child]:
                os.kill(int(child), signal.SIGINT)


@contextlib.contextmanager
def reminded(server):
    """A proxy overlooks the signal that comes while it closes a connection, and its command then
    waits for it forever."""
    over = threading.Event()

    def watch():
        while not over.wait(5):
            remind(server.process.pid)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextlib.contextmanager
def local_port(bai, name, app):
    """The address here that is an app of the session."""
    port, said = free_port(), bai.home / "said"
    proxy = bai.start(said, "app", name, app, "-b", f"127.0.0.1:{port}")
    try:
        wait_for(lambda: f"127.0.0.1:{port}" in said.read_text(), 120, said.read_text)
        yield "127.0.0.1", port
    finally:
        proxy.kill()  # as soon as it has begun to close a connection, it may overlook SIGINT
        proxy.wait()


def check_apps(bai, name):
    """The session's SSH server, and its terminal."""
    with local_port(bai, name, "sshd") as address:
        for _ in range(2):
            with socket.create_connection(address, 60) as sock:
                assert sock.recv(100).startswith(b"SSH-2.0-")
    with local_port(bai, name, "ttyd") as address, WebTerminal(address) as terminal:
        terminal.type("echo $((6 * 7))\n")
        terminal.wait("42\r\n")  # also behind a prompt: it may come after what was typed


def check_copies(bai, words, name, ssh):
    """There and back."""
    data = os.urandom(100000)
    (bai.home / "one").write_bytes(data)
    for source, target in (("one", "work@localhost:there"), ("work@localhost:there", "two")):
        bai.does(*words, "-p", str(free_port()), name, source, target, **ssh)
    assert (bai.home / "two").read_bytes() == data
    (bai.home / "two").unlink()


def tell(version):
    folder = real_client.install(version)
    server = real_client.Server(folder)
    try:
        with start("crun") as cluster:
            layout = cluster.image.__self__
            layout.image("work", [archive([*programs("sh", "id", "cat")])])
            session = Session(cluster, "box", cluster.image("work"))
            bai = real_client.RealClient(server, cluster.address, ADMIN)
            (bai.home / ".ssh").mkdir(mode=0o700, exist_ok=True)
            ssh = {"PATH": f"{folder / 'venv/bin'}:{os.environ['PATH']}"}
            check_apps(bai, "box")
            with reminded(server):
                for words in NAMES:
                    done = bai.run(*words, "-p", str(free_port()), "box", "id -un; exit 3", **ssh)
                    assert done.returncode == 3 and "work" in done.stdout.splitlines(), done
                for words in COPIES:
                    check_copies(bai, words, "box", ssh)
            session.end()
            check_all_gone(cluster)
    finally:
        server.end()


@pytest.mark.backendai("app", "ssh", "session ssh", "scp", "session scp")
def test_ports_of_a_session(folder, version):
    if why := containers.why_not("crun"):
        pytest.skip(why)
    done = subprocess.run(["unshare", "--net", "--", sys.executable, __file__, version],
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), text=True,
                          capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    real_client.COMMANDS += ["app", *(" ".join(words) for words in (*NAMES, *COPIES))]


if __name__ == "__main__":
    tell(*sys.argv[1:])
