# SPDX-License-Identifier: Apache-2.0
"""The SSH server of containers, with OpenSSH's client: who gets in, in which images,
what he finds there, and how kernels of a session reach each other.

As in test_container_network.py each story has a network namespace of its own.
Run as a program, this file tells one.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from client import WebSocket
from cluster import ENDED, interactive, wait_for, wait_status
from images import Layout, archive, file, folder, programs
from ports import free_port
from runtimes import settings_of
from test_container_network import UPLINK, check_all_gone, in_gate, tell_apart
from test_proxy import Proxied
from test_proxy_ports import tcp

if not os.path.exists("/usr/sbin/dropbear"):
    pytest.skip("dropbear-bin is not installed", allow_module_level=True)

NODE = "192.0.2.2"
SHELL = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A shell that says what it was asked to do. Static: its image has no libraries. */
int main(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "-c"))
        for (;;)
            pause();
    printf("asked for %s as %d\n", argv[2], (int)getuid());
    return 7;
}
"""


def static_shell(path):
    subprocess.run(["gcc", "-static", "-O1", "-w", "-x", "c", "-", "-o", path],
                   input=SHELL.encode(), check=True)
    return pathlib.Path(path).read_bytes()


def start(runtime, **settings):
    for command in UPLINK:
        subprocess.run(command.split(), check=True)
    cluster = Proxied(**{**settings_of(runtime), "ALIQUOT_NETWORK_ENABLED": "true",
                         "ALIQUOT_IMAGE_KEEP_FREE": "0", "ALIQUOT_IMAGE_ALLOW": "* host oci:/",
                         **settings})
    cluster.start_manager()
    cluster.start_agent()
    layout = Layout(cluster.folder / "layout")
    layout.image("small", [archive([*programs("sh", "env", "id", "cat", "tty", "sleep")])])
    layout.image("bash", [archive([*programs("sh", "bash", "id")])])
    layout.image("static", [archive([folder("bin"), file(
        "bin/sh", static_shell(cluster.folder / "sh"), mode=0o755)])])
    layout.image("shellless", [archive([*programs("sleep")])])
    cluster.image = layout.reference
    return cluster


class Session:
    """An interactive session, and the means to log in to it."""

    def __init__(self, cluster, name, image, **more):
        self.cluster, self.client = cluster, cluster.client()
        reply = self.client.post("/session", {**interactive(name), "image": image, **more})
        assert reply.status == 201, reply
        self.name, self.id = name, reply.json["sessionId"]
        self.shown = wait_status(self.client, self.id, "RUNNING", *ENDED)
        assert self.shown["status"] == "RUNNING", self.shown

    @property
    def services(self):
        return {each["name"]: each["host_ports"][0]
                for each in self.shown["kernels"][0]["service_ports"] if each["host_ports"]}

    def config(self, name):
        """A file of /home/config of the main kernel, as it is on the node."""
        kernel = self.shown["kernels"][0]["id"]
        return self.cluster.folder / "agent/kernels" / kernel / "config" / name

    def key(self):
        path = self.cluster.folder / f"{self.name}.key"
        path.write_bytes(self.config("home/id_container").read_bytes())
        path.chmod(0o600)
        return path

    def ssh(self, *words, key=None, user="work", tty=False, data=""):
        """Strictly: the host's key has to be the one that /home/config has. The input of a
        terminal stays open: newer dropbears take its end for the end of the session."""
        known = self.cluster.folder / f"{self.name}.known"
        known.write_text(f"[{NODE}]:{self.services['sshd']} "
                         + self.config("ssh/known_hosts").read_text().split(" ", 1)[1])
        reader, writer = os.pipe()
        with os.fdopen(reader), os.fdopen(writer, "w"):
            return subprocess.run(
                ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
                 "-o", f"UserKnownHostsFile={known}", "-o", "IdentitiesOnly=yes",
                 "-o", "ConnectTimeout=10", "-i", key or self.key(), "-p",
                 str(self.services["sshd"]), *(["-tt"] if tty else []), f"{user}@{NODE}", *words],
                capture_output=True, text=True, timeout=60, check=False,
                **({"stdin": reader} if tty else {"input": data}),
                env={"PATH": os.environ["PATH"], "HOME": str(self.cluster.folder)})

    def end(self):
        self.client.send("DELETE", f"/session/{self.name}?forced=true")
        wait_status(self.client, self.id, *ENDED)


def story_of_a_login(cluster):
    """As the user of the container, with the program's surroundings, a terminal, exit statuses."""
    session = Session(cluster, "login", cluster.image("small"))
    assert session.client.get("/stream/session/login/apps").json == [
        {"name": "sshd", "protocol": "tcp", "ports": [2200], "state": "running"},
        {"name": "ttyd", "protocol": "http", "ports": [7681], "state": "not-started"}]
    done = session.ssh("id -un; pwd; echo $BACKENDAI_SESSION_ID; tty; exit 3")
    assert done.stdout.splitlines() == ["work", "/home/work", session.id, "not a tty"], done
    assert done.returncode == 3, done
    assert "/dev/pts/" in session.ssh("tty", tty=True).stdout
    assert session.ssh("cat", data="through it\n").stdout == "through it\n"
    big = "x" * (4 << 20)
    assert session.ssh("cat", data=big).stdout == big

    other = cluster.folder / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    for more in ({"key": other}, {"user": "root"}, {"user": "nobody"}):
        refused = session.ssh("true", **more)
        assert refused.returncode == 255 and "Permission denied" in refused.stderr, refused
        assert "password" not in refused.stderr, refused

    second = Session(cluster, "second", cluster.image("small"))
    assert second.key().read_text() != session.key().read_text()
    assert second.ssh("true", key=session.key()).returncode == 255  # each has a key of its own
    second.end()

    shown = cluster.cli("exec", "login", "cat", "id_container", ".ssh/authorized_keys").stdout
    assert shown.startswith(session.key().read_text()), shown
    done = session.ssh("echo mine > .ssh/authorized_keys2; echo 'ssh-ed25519 x' >> "
                       ".ssh/authorized_keys; id -u")
    assert done.stdout == "1000\n", done
    assert session.client.send("PATCH", "/session/login").status == 204
    wait_for(lambda: session.ssh("cat", ".ssh/authorized_keys2").stdout == "mine\n", 60,
             "the session to be back, with what he wrote")
    session.end()


def story_of_a_tunnel(cluster):
    """Through the manager, as Backend.AI's clients reach apps; no port of the node is used."""
    session = Session(cluster, "tunnel", cluster.image("small"))
    for path in ("stream/session/tunnel/tcpproxy?app=sshd",
                 "stream/session/tunnel/httpproxy?app=sshd&port=2200",
                 "aliquot/v1/sessions/tunnel/connect?port=2200"):
        ws = WebSocket(session.client, "/" + path)
        assert ws.receive()[1].startswith(b"SSH-2.0-"), path
        ws.close()
    session.end()


def story_of_an_image_without_libraries(cluster):
    """Nothing but a static shell: the server brings what it needs."""
    session = Session(cluster, "static", cluster.image("static"))
    done = session.ssh("anything")
    assert (done.returncode, done.stdout) == (7, "asked for anything as 1000\n"), done
    session.end()


def story_of_bash(cluster):
    """An image that has it, and no list of shells that may be logged in to."""
    session = Session(cluster, "bash", cluster.image("bash"))
    done = session.ssh("id -un; echo $BASH")
    assert done.stdout in ("work\n/bin/bash\n", "work\n/usr/bin/bash\n"), done
    session.end()


def story_of_those_without(cluster):
    """No shell, no login; and a batch program has none either."""
    session = Session(cluster, "shellless", cluster.image("shellless"))
    assert not session.services and not session.config("ssh").exists()
    session.end()
    reply = session.client.post("/session", {**interactive("batch"), "type": "batch",
                                             "image": cluster.image("small"),
                                             "startupCommand": "echo /home/config/* .s*"})
    shown = wait_status(session.client, reply.json["sessionId"], *ENDED)
    log = session.client.get("/aliquot/v1/sessions/batch/logs").body.decode()
    assert log == "/home/config/environ.txt /home/config/resource.txt .s*\n", log
    assert [each["name"] for each in shown["kernels"][0]["service_ports"]] == ["ttyd"]


def story_of_a_cluster(cluster):
    """Kernels reach each other by name, without a question, by the cluster's key."""
    reply = cluster.client().post("/session", {
        **interactive("mates"), "type": "batch", "image": "host", "clusterSize": 2,
        "startupCommand": "[ $BACKENDAI_CLUSTER_ROLE = main ] || exec sleep 1000\n"
                          "for i in 1 2 3 4 5 6 7 8 9; do ssh -o BatchMode=yes sub1 "
                          "'echo I am $BACKENDAI_CLUSTER_HOST; ssh -o BatchMode=yes main1 "
                          "echo and back' && exit; sleep 1; done; exit 1"})
    assert reply.status == 201, reply
    shown = wait_status(cluster.client(), reply.json["sessionId"], *ENDED)
    log = cluster.client().get("/aliquot/v1/sessions/mates/logs").body.decode()
    assert log.splitlines()[-2:] == ["I am sub1", "and back"], (log, shown)
    assert [[each["name"] for each in kernel["service_ports"]]
            for kernel in shown["kernels"]] == [["ttyd"], []]


def story_of_a_key_of_ones_own(cluster):
    """Of the keypair: sessions that start later accept it besides the one that they have."""
    route, client = "/auth/ssh-keypair", cluster.client()
    early = Session(cluster, "early", cluster.image("small"))
    made, path = client.send("PATCH", route).json, cluster.folder / "made"
    path.write_text(made["ssh_private_key"])
    path.chmod(0o600)
    told = subprocess.run(["ssh-keygen", "-y", "-f", path], capture_output=True, text=True,
                          check=True).stdout
    assert told.split()[:2] == made["ssh_public_key"].split()
    session = Session(cluster, "own", cluster.image("small"))
    assert session.ssh("id -un", key=path).stdout == "work\n"
    assert session.ssh("id -un").stdout == "work\n", "the session's own goes on"
    assert early.ssh("true", key=path).returncode == 255
    session.end()
    for kind in (["rsa", "-b", "2048"], ["ecdsa"]):
        path = cluster.folder / kind[0]
        subprocess.run(["ssh-keygen", "-q", "-t", *kind, "-N", "", "-f", path], check=True)
        public = path.with_suffix(".pub").read_text()
        assert client.post(route, {"pubkey": public}).status == 200
        session = Session(cluster, f"own-{kind[0]}", cluster.image("small"))
        assert session.ssh("id -un", key=path).stdout == "work\n"
        session.end()
    early.end()


def story_of_an_agent_that_is_killed(cluster):
    """Who is logged in stays, and the port is the same; also if the setting changed."""
    session = Session(cluster, "kept", cluster.image("small"))
    before = session.services
    for more in ({}, {"ALIQUOT_NETWORK_SSH": "false"}):
        cluster.programs["agent"].kill()
        cluster.start_agent(**more)
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        assert session.ssh("id -un").stdout == "work\n"
        shown = session.client.get("/aliquot/v1/sessions/kept").json
        assert shown["kernels"][0]["service_ports"][0]["host_ports"] == [before["sshd"]]
    late = Session(cluster, "late", cluster.image("small"))
    assert not late.services
    late.end()
    session.end()


def story_of_a_port_of_the_proxy(cluster):
    """As the console tells a user to, without a port of the node."""
    port = free_port()
    cluster.start_proxy(ALIQUOT_PROXY_PORTS=f"{port}-{port}")
    session = Session(cluster, "ported", cluster.image("small"))
    assert tcp(cluster, session.id, "ported", app="sshd") == port
    done = subprocess.run(
        ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
         "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-i", session.key(), "-p",
         str(port), "work@127.0.0.1", "id -un"], capture_output=True, text=True, timeout=60,
        check=False, stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(cluster.folder)})
    assert (done.returncode, done.stdout) == (0, "work\n"), done.stderr
    session.end()


STORIES = {name: story for name, story in globals().items() if name.startswith("story_")}


def tell(runtime, name):
    with start(runtime) as cluster:
        STORIES[name](cluster)
        check_all_gone(cluster)


@pytest.mark.skipif(not shutil.which("ssh"), reason="openssh-client is not installed")
@pytest.mark.parametrize("name", in_gate(STORIES, "story_of_a_login"))
def test_story(name):
    tell_apart(__file__, "runc" if name == "story_of_an_image_without_libraries" else "crun", name)


if __name__ == "__main__":
    tell(*sys.argv[1:])
