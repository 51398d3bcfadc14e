# SPDX-License-Identifier: Apache-2.0
"""Sessions as hosts of OpenSSH's ssh, scp and sftp, and of rsync: through the manager, by
"aliquot ssh", "scp" and "ssh-config". No port of a node is used.

As in test_ssh.py each story has a network namespace of its own. Run as a program, this file
tells one.
"""

import contextlib
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from client import ADMIN, USER
from cluster import wait_for
from containers import pids_of
from images import archive, programs
from terminal import Terminal
from test_container_network import check_all_gone, in_gate, tell_apart
from test_ssh import Session, start
from world import BUILD

NEEDED = ("/usr/sbin/dropbear", "/usr/lib/openssh/sftp-server", "/usr/bin/ssh", "/usr/bin/rsync")
if missing := [path for path in NEEDED if not os.path.exists(path)]:
    pytest.skip(f"{missing[0]} is not installed", allow_module_level=True)


class Person:
    """Who has a home folder, and types commands."""

    def __init__(self, cluster, key=ADMIN):
        self.cluster, self.home = cluster, cluster.folder / f"home-{key[0]}"
        self.home.mkdir()
        self.env = {**cluster.env, **cluster.cli_env(key), "HOME": str(self.home), "TERM": "xterm"}
        for name in [name for name in self.env if name.startswith("XDG_")]:
            del self.env[name]

    def run(self, *words, data=None, timeout=120):
        return subprocess.run(list(map(str, words)), env=self.env, input=data, cwd=self.home,
                              capture_output=True, text=True, timeout=timeout, check=False,
                              **({} if data is not None else {"stdin": subprocess.DEVNULL}))

    def aliquot(self, *words, **more):
        return self.run(BUILD / "aliquot", *words, **more)

    def does(self, *words, **more):
        done = self.run(*words, **more)
        assert done.returncode == 0, (words, done)
        return done.stdout

    def config(self):
        return ("-F", self.home / ".ssh/config")


def servers(cluster):
    """Processes of SSH servers and tunnels in the cluster's containers."""
    found = []
    for pid in pids_of(cluster.folder):
        with contextlib.suppress(OSError):
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            found += [line] * (b"--connect" in line or b"dropbear" in line)
    return found


def prepared(cluster):
    """An image with what these programs want on the other side."""
    layout = cluster.image.__self__
    layout.image("work", [archive([*programs("sh", "env", "id", "cat", "tty", "sleep", "ls", "rsync",
                                             "scp", "stty")])])
    return cluster.image("work")


def story_of_ssh(cluster):
    """Commands, input, output, exit statuses, a terminal; the keys are nobody else's."""
    person, session = Person(cluster), Session(cluster, "box", prepared(cluster))
    done = person.aliquot("ssh", "box", "--", "id -un; pwd; echo to the errors >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "work\n/home/work\n"), done
    assert done.stderr == "to the errors\n", done
    big = "x" * (4 << 20)
    assert person.does(BUILD / "aliquot", "ssh", "box", "cat", data=big) == big
    folder = person.home / ".cache/aliquot/ssh"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
        "box.key": 0o600, "box.known": 0o600}
    assert (folder / "box.key").read_bytes() == session.config("home/id_container").read_bytes()
    assert ((folder / "box.known").read_text().split(" ", 1)[1]
            == session.config("ssh/known_hosts").read_text().split(" ", 1)[1])

    screen = Terminal(str(BUILD / "aliquot"), "ssh", "box", "-t", "tty; stty size; exit 9",
                      env=person.env, rows=31, columns=77)
    screen.expect(b"/dev/pts/")
    screen.expect(b"31 77")
    assert screen.wait() == 9
    session.end()


def story_of_files(cluster):
    """scp as it is, by SFTP and by itself, folders, there and back."""
    person, session = Person(cluster), Session(cluster, "box", prepared(cluster))
    data = os.urandom(3 << 20)
    (person.home / "one").write_bytes(data)
    (person.home / "tree/below").mkdir(parents=True)
    (person.home / "tree/below/two").write_text("two")
    person.does(BUILD / "aliquot", "scp", "-q", "-r", "one", "tree", "box:")
    person.does(BUILD / "aliquot", "scp", "-q", "-O", "-p", "one", "box:tree/three")
    (person.home / "back").mkdir()
    person.does(BUILD / "aliquot", "scp", "-q", "-r", "box:tree", "box:one", "back")
    assert (person.home / "back/one").read_bytes() == data
    assert (person.home / "back/tree/below/two").read_text() == "two"
    assert (person.home / "back/tree/three").read_bytes() == data
    done = person.aliquot("scp", "box:nowhere", ".")
    assert done.returncode == 1 and "nowhere" in done.stderr, done
    for words in (("one", "two"), ("box:one", "other:two"), (":one", "box:"), ("one",)):
        done = person.aliquot("scp", *words)
        assert done.returncode == 125 and "aliquot: " in done.stderr, (words, done)
    session.end()


def story_of_plain_programs(cluster):
    """ssh, sftp and rsync by the entry, which works before any key was fetched, and for the next
    session of its name."""
    person, session = Person(cluster), Session(cluster, "Box", prepared(cluster))
    (person.home / ".ssh").mkdir()
    (person.home / ".ssh/config").write_text("Host elsewhere\n    Port 29\n")
    for _ in range(2):
        person.does(BUILD / "aliquot", "ssh-config", "--write")
    text = (person.home / ".ssh/config").read_text()
    assert text.startswith("Include ") and text.count("Include ") == 1, text
    assert text.endswith("Host elsewhere\n    Port 29\n"), text
    assert not (person.home / ".cache").exists()
    assert person.does("ssh", *person.config(), "Box.aliquot", "id -un") == "work\n"
    assert person.does(BUILD / "aliquot", "ssh-config", "Box") \
        == (person.home / ".config/aliquot/ssh_config").read_text()

    data = os.urandom(1 << 20)
    (person.home / "tree").mkdir()
    (person.home / "tree/file").write_bytes(data)
    person.does("sftp", *person.config(), "-b", "-", "Box.aliquot",
                data="mkdir there\nput tree/file there/copy\nget there/copy back\n")
    assert (person.home / "back").read_bytes() == data
    shell = " ".join(map(str, ("ssh", *person.config())))
    for target in ("Box.aliquot:mirror/", "again/"):
        person.does("rsync", "-a", "-e", shell,
                    "tree/" if target[-2] == "r" else "Box.aliquot:mirror/", target)
    assert (person.home / "again/file").read_bytes() == data

    first = person.home / ".cache/aliquot/ssh/Box.known"
    before = first.read_text()
    session.end()
    session = Session(cluster, "Box", prepared(cluster))
    assert person.does("ssh", *person.config(), "Box.aliquot", "id -un") == "work\n"
    assert first.read_text() != before, "another host has another key"
    session.end()


def story_of_a_forwarded_port(cluster):
    """OpenSSH's own forwarding, through the connection that is ours."""
    person, session = Person(cluster), Session(cluster, "box", prepared(cluster))
    assert "sshd  tcp       2200   running" in person.aliquot("app", "box").stdout
    with subprocess.Popen([BUILD / "aliquot", "app", "box", "sshd", "-b", "127.0.0.1:0"],
                          env=person.env, stdout=subprocess.PIPE, text=True) as app:
        port = int(app.stdout.readline().rsplit(":", 1)[1])
        done = person.does("ssh-keyscan", "-p", port, "127.0.0.1")
        assert session.config("ssh/known_hosts").read_text().split()[2] in done
        app.terminate()
        assert app.wait(30) == 0
    session.end()


def story_of_who_may_not(cluster):
    """Another's session, one that has ended, one without a server."""
    person, other = Person(cluster), Person(cluster, USER)
    session = Session(cluster, "box", prepared(cluster))
    for words in (("ssh", "box"), ("ssh", "--stdio", session.id), ("scp", "box:x", "."),
                  ("port-forward", "box", "2200"), ("app", "box"), ("ssh-config", "box")):
        done = other.aliquot(*words)
        assert done.returncode in (5, 125), (words, done)
        assert "you have no session" in done.stderr, done
    assert cluster.client(USER).get(f"/aliquot/v1/sessions/{session.id}/ssh").status == 404
    assert not (other.home / ".cache").exists()
    session.end()
    done = person.aliquot("ssh", "box", "true")
    assert done.returncode == 125 and "box" in done.stderr and "ended" in done.stderr, done
    session = Session(cluster, "plain", cluster.image("shellless"))
    done = person.aliquot("ssh", "plain", "true")
    assert done.returncode == 125 and "has no SSH server" in done.stderr, done
    session.end()


def story_of_a_manager_that_is_killed(cluster):
    """Who is logged in is told; and of a client that is killed nothing is left."""
    person, session = Person(cluster), Session(cluster, "box", prepared(cluster))
    with subprocess.Popen([BUILD / "aliquot", "ssh", "box", "sleep 1000"], env=person.env,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as client:
        wait_for(lambda: len(servers(cluster)) >= 2, 30, "a server")
        cluster.programs["manager"].kill()
        assert client.wait(60) == 255
        assert "broke off" in client.stderr.read()
    cluster.start_manager()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    wait_for(lambda: not servers(cluster), 30, "the end of the server")
    with subprocess.Popen([BUILD / "aliquot", "ssh", "box", "sleep 1000"], env=person.env,
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        wait_for(lambda: len(servers(cluster)) >= 2, 30, "a server")
        client.kill()
    wait_for(lambda: not servers(cluster), 30, "the end of the server")
    session.end()


STORIES = {name: story for name, story in globals().items() if name.startswith("story_")}


def tell(runtime, name):
    with start(runtime) as cluster:
        STORIES[name](cluster)
        check_all_gone(cluster)


@pytest.mark.parametrize("name", in_gate(STORIES, "story_of_ssh", "story_of_files"))
def test_story(name):
    tell_apart(__file__, "runc" if name == "story_of_files" else "crun", name)


if __name__ == "__main__":
    tell(*sys.argv[1:])
