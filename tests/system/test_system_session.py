# SPDX-License-Identifier: Apache-2.0
"""Sessions of the type system: folders by OpenSSH's sftp and scp, rsync and rclone, through the
manager and straight at the node, and what cannot be done there.

As in test_container_network.py each story has a network namespace of its own. Run as a program,
this file tells one.
"""

import contextlib
import json
import os
import subprocess
import sys

import pytest

import containers
from client import ADMIN, USER
from cluster import ENDED, wait_for, wait_status
from images import Layout, archive, programs
from mounts import Mounted
from runtimes import Session, settings_of
from test_container_network import UPLINK, check_all_gone, in_gate, tell_apart
from world import BUILD

if not os.path.exists("/usr/sbin/dropbear"):
    pytest.skip("dropbear-bin is not installed", allow_module_level=True)

ADMIN_EMAIL = "admin@lablup.com"
NODE = "192.0.2.2"
BIG = 8 << 20


class Filed(Mounted):
    """Its folders: 'data', and 'corpus', which another user offered to be read."""

    def begin(self):
        self.config = self.folder / "ssh_config"
        self.start("agent")
        self.data = self.place(self.folder_of("data"))
        self.cli_as(USER, "folder", "create", "corpus", "--host", "local:volume1")
        self.cli_as(USER, "folder", "share", "corpus", "-p", "ro", ADMIN_EMAIL)
        for invitation in self.cli_json("folder", "invitations"):
            self.cli_as(ADMIN, "folder", "accept", invitation["id"])
        self.cli_as(USER, "folder", "mkdir", "corpus", "v2")
        shown = self.cli_json("folder", "info", "corpus")
        self.corpus = next(self.volume.glob(f"{shown['id'][:2]}/*/*"))
        (self.corpus / "v2" / "text").write_text("a text\n")

    def cli_as(self, keypair, *words, **more):
        done = self.run("aliquot", *words, **{**self.cli_env(keypair), "HOME": str(self.folder)},
                        **more)
        assert done.returncode == 0, done.stderr
        return done

    def cli_json(self, *words):
        return json.loads(self.cli_as(ADMIN, "-o", "json", *words).stdout)

    def reach(self, *folders, **options):
        """Start or find the session, and have OpenSSH know both ways to it."""
        shown = self.cli_json("folder", "sftp", *folders)
        self.session, self.port = shown["session"], shown["port"]
        self.cli_as(ADMIN, "ssh-config", self.session, "--write")
        known = self.folder / "known"
        keys = self.client().get(f"/aliquot/v1/sessions/{self.session}/ssh").json
        known.write_text("".join(f"[{NODE}]:{self.port} {keys[name]}\n"
                                 for name in ("host_key", "host_key_ecdsa")))
        config = (self.folder / ".ssh" / "config").read_text()
        self.config.write_text(config + f"""
Host node
    HostName {NODE}
    Port {self.port}
    User work
    IdentityFile {shown['key']}
    UserKnownHostsFile {known}
    StrictHostKeyChecking yes
Host *
    BatchMode yes
    IdentitiesOnly yes
""")
        self.key = shown["key"]
        return shown

    def run_client(self, *command, text=None):
        return subprocess.run(
            list(map(str, command)), input=text, capture_output=True, text=True, timeout=120,
            check=False, cwd=self.folder, env={
                **os.environ, **self.cli_env(), "HOME": str(self.folder),
                "RSYNC_RSH": f"ssh -F {self.config}", "PATH": f"{BUILD}:{os.environ['PATH']}",
                "RCLONE_CONFIG": str(self.folder / "rclone.conf")})

    def sftp(self, host, *commands):
        done = self.run_client("sftp", "-q", "-F", self.config, "-b", "-", host,
                               text="\n".join(commands) + "\n")
        return done.returncode, done.stdout + done.stderr

    def ssh(self, *words):
        done = self.run_client("ssh", "-F", self.config, *words)
        return done.returncode, done.stdout + done.stderr


def start(runtime, **settings):
    for command in UPLINK:
        subprocess.run(command.split(), check=True)
    cluster = Filed(**{**settings_of(runtime), "ALIQUOT_NETWORK_ENABLED": "true",
                       "ALIQUOT_IMAGE_ALLOW": "* host oci:/", "ALIQUOT_IMAGE_KEEP_FREE": "0",
                       "ALIQUOT_NODE_ADDRESS": NODE, **settings})
    cluster.begin()
    return cluster


def end(cluster):
    cluster.client().send("DELETE", f"/session/{cluster.session}?forced=true")
    wait_status(cluster.client(), cluster.session, *ENDED)


def must(done):
    assert done.returncode == 0, (done.args, done.stdout, done.stderr)
    return done.stdout


def story_of_transfers(cluster):
    """Up, down and on where it broke off, by each program; all that may be read, is there."""
    shown = cluster.reach()
    assert sorted(shown["folders"]) == ["corpus: ro", "data: rw"] and shown["host"] == NODE, shown
    data, here = cluster.data, cluster.folder / "big"
    here.write_bytes(os.urandom(BIG))
    for host in (f"{cluster.session}.aliquot", "node"):
        assert cluster.sftp(host, "ls")[1].split("\n")[1].split() == ["corpus", "data"]
        (cluster.folder / "part").write_bytes(here.read_bytes()[:BIG // 3])
        code, said = cluster.sftp(host, "mkdir data/run", "put part data/run/big",
                                  "reput big data/run/big", "rename data/run/big data/run/model",
                                  "get data/run/model back", "get corpus/v2/text text")
        assert code == 0, said
        assert (data / "run/model").read_bytes() == here.read_bytes()
        assert (cluster.folder / "back").read_bytes() == here.read_bytes()
        assert (cluster.folder / "text").read_text() == "a text\n"
        must(cluster.run_client("scp", "-q", "-F", cluster.config, here, f"{host}:data/run/copy"))
        must(cluster.run_client("scp", "-q", "-O", "-F", cluster.config, "-r", f"{host}:data/run",
                                "whole"))
        assert (cluster.folder / "whole/copy").read_bytes() == here.read_bytes()
        must(cluster.run_client("rm", "-r", "whole"))
        assert cluster.sftp(host, "rm data/run/*", "rmdir data/run")[0] == 0
        assert list(data.iterdir()) in ([], [data / ".aliquot-uploads"])

        tree = cluster.folder / "a tree"
        tree.mkdir(exist_ok=True)
        for name in ("with space", "it's; $(id) & `id`", "*?[x]", "new\nline", "bad\udcff", "n" * 255):
            (tree / name).write_bytes(os.fsencode(name))
        (data / "tree").mkdir()
        (data / "tree/big").write_bytes(here.read_bytes()[:BIG // 2])  # as --partial left it
        must(cluster.run_client("cp", here, tree / "big"))
        said = must(cluster.run_client("rsync", "-a", "--partial", "--append-verify", "--stats",
                                       f"{tree}/", f"{host}:data/tree/"))
        assert int(said.split("Literal data: ")[1].split()[0].replace(",", "")) <= BIG // 2 + 999
        assert {each.name for each in (data / "tree").iterdir()} == {
            each.name for each in tree.iterdir()}
        must(cluster.run_client("rsync", "-a", f"{host}:data/tree/it's; $(id) & `id`", "down"))
        must(cluster.run_client("rsync", "-a", "-s", f"{host}:data/tree/with*", "down2"))
        assert (cluster.folder / "down").read_text().startswith("it's")
        assert (cluster.folder / "down2").read_text() == "with space"
        must(cluster.run_client("rm", "-r", data / "tree", "down", "down2"))
    end(cluster)


def story_of_rclone(cluster):
    """Which has an SSH client of its own, and reaches the node."""
    cluster.reach("data", "corpus:v2")
    tree = cluster.folder / "tree"
    tree.mkdir()
    for number in range(20):
        (tree / f"part {number}").write_bytes(os.urandom(1000 + number))
    must(cluster.run_client("rclone", "config", "create", "files", "sftp", f"host={NODE}",
                            f"port={cluster.port}", "user=work", f"key_file={cluster.key}",
                            f"known_hosts_file={cluster.folder / 'known'}", "shell_type=none",
                            "disable_hashcheck=true"))
    must(cluster.run_client("rclone", "copy", tree, "files:data/tree"))
    must(cluster.run_client("rclone", "check", "--download", tree, "files:data/tree"))
    assert must(cluster.run_client("rclone", "cat", "files:corpus/text")) == "a text\n"
    (tree / "part 3").unlink()
    must(cluster.run_client("rclone", "sync", tree, "files:data/tree"))
    assert len(list((cluster.data / "tree").iterdir())) == 19
    assert cluster.run_client("rclone", "copyto", tree / "part 4", "files:corpus/x").returncode
    end(cluster)


def story_of_what_is_refused(cluster):
    """What may only be read, places outside, and whatever moves no files."""
    cluster.reach()
    here = cluster.folder / "file"
    here.write_text("x")
    (cluster.data / "out").symlink_to("/etc/hostname")
    (cluster.data / "root").symlink_to("/proc/1/root")
    (cluster.data / "beside").symlink_to(os.path.relpath(cluster.corpus, cluster.data))
    for command in ("put file corpus/new", "put file corpus/v2/text", "rm corpus/v2/text",
                    "mkdir corpus/dir", "chmod 600 corpus/v2/text", "put file beside",
                    "put file /etc/passwd", "put file /bin/sh", "mkdir /folder", "get data/root/etc/x x",
                    "ls data/root/", "ls data/beside/", "get /proc/1/environ x",
                    f"ls {cluster.volume}", "rm .ssh", "put file data/../file"):
        code, said = cluster.sftp("node", command)
        assert code != 0, (command, said)
    assert cluster.sftp("node", "get data/out theirs")[0] != 0 or (
        cluster.folder / "theirs").read_text() != os.uname().nodename + "\n"
    assert (cluster.corpus / "v2/text").read_text() == "a text\n"
    assert [each.name for each in cluster.corpus.iterdir() if each.name[0] != "."] == ["v2"]
    done = cluster.run_client("rsync", "-a", here, "node:corpus/")
    assert done.returncode and "Read-only file system" in done.stderr, done

    for host in (f"{cluster.session}.aliquot", "node"):
        for words in ((), ("id",), ("-tt",), ("-tt", "id"), ("sh", "-c", "id"), ("/bin/sh",),
                      ("sftp-server; id",), ("rsync --version",), ("rsync --server --daemon .",),
                      ("scp -S /home/work/data/evil -o -t a:b c",), ("/opt/kernel/ssh/ld.so",)):
            code, said = cluster.ssh(host, *words)
            assert code and "uid=" not in said, (words, said)
            assert words or "moves files" in said, said
        code, said = cluster.ssh("-W", "127.0.0.1:2200", host)
        assert code and ("prohibited" in said or "failed" in said), said
        code, said = cluster.ssh("-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:127.0.0.1:22",
                                 host)
        assert code and "forward" in said, said
    refused = cluster.run_client("aliquot", "exec", cluster.session, "id")
    assert refused.returncode, refused

    end(cluster)


def story_of_no_way_out(cluster):
    """A server that the node reaches, as do other containers, is out of reach."""
    def network(pid):
        return os.readlink(f"/proc/{pid}/ns/net")

    def connects(*within):
        done = subprocess.run([*within, sys.executable, "-c", "import socket; "
                               "socket.create_connection(('192.0.2.1', 80), 20)"],
                              capture_output=True, text=True, timeout=60, check=False)
        return not done.returncode or done.stderr.splitlines()[-1]

    def within():
        """The newest network."""
        pids = containers.pids_of(cluster.folder)
        return next(["nsenter", "-t", str(pid), "-n", "--"] for pid in pids
                    if network(pid) not in known and not known.add(network(pid)))
    known = {network("self")}
    with subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "read go; ip addr add 192.0.2.1/24 dev up1; "
             "ip link set up1 up; exec python3 -m http.server 80"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        wait_for(lambda: network(server.pid) not in known, 30, "the server's network")
        subprocess.run(["ip", "link", "set", "up1", "netns", str(server.pid)], check=True)
        server.stdin.write(b"\n")
        server.stdin.flush()
        wait_for(lambda: connects() is True, 30, "the server")
        usual = Session(cluster, "sleep 1000")
        usual.wait("RUNNING")
        assert connects(*within()) is True
        cluster.reach()
        assert "No route to host" in connects(*within())
        assert cluster.sftp("node", "ls")[0] == 0
        usual.end(forced=True)
        usual.wait()
        end(cluster)
        server.kill()


def story_of_one_session(cluster):
    """Asked for again it is the same; it is one, and counts as none."""
    shown = cluster.reach("data")
    assert cluster.reach()["port"] == shown["port"]
    other = cluster.run_client("aliquot", "folder", "sftp", "corpus")
    assert other.returncode and "shows other folders" in other.stderr, other
    second = cluster.run_client("aliquot", "folder", "sftp", "--name", "second")
    assert second.returncode and "more than 1 SFTP session" in second.stderr, second
    assert cluster.client().get(f"/session/{cluster.session}/direct-access-info").json == {
        "public_host": NODE, "sshd_ports": [cluster.port]}
    policy = "/aliquot/v1/keypair-policies/default"
    assert cluster.client().send("PATCH", policy, {"max_concurrent_sessions": 1}).status == 200
    assert Session(cluster, "true").wait()["status"] == "TERMINATED"
    cluster.cli_as(ADMIN, "session", "restart", cluster.session)
    wait_status(cluster.client(), cluster.session, "RUNNING")
    cluster.reach("data")
    assert cluster.sftp("node", "mkdir data/again")[0] == 0
    assert cluster.sftp("node", "mkdir again")[0] != 0
    cluster.cli_as(ADMIN, "rm", cluster.session)
    assert cluster.reach("corpus:v2")["folders"] == ["corpus/v2: ro"]
    end(cluster)


def story_of_another_image(cluster):
    """One whose role is SYSTEM, which brings a shell."""
    layout = Layout(cluster.folder / "layout")
    for name, role in (("usual", "COMPUTE"), ("tool", "SYSTEM")):
        layout.image(name, [archive([*programs("sh", "id")])],
                     Labels={"ai.backend.role": role})
        Session(cluster, "true", image=layout.reference(name)).wait()  # a node has it now
        reply = cluster.client().post("/session", {
            "name": name, "type": "system", "image": layout.reference(name),
            "config": {"mounts": ["data"]}})
        if role != "SYSTEM":
            assert reply.status == 400 and "ai.backend.role=SYSTEM" in str(reply.json), reply
    assert reply.status == 201, reply
    shown = wait_status(cluster.client(), "tool", "RUNNING", *ENDED)
    assert shown["status"] == "RUNNING", shown
    done = cluster.run_client("aliquot", "ssh", "tool", "--", "id -un; echo x > data/file")
    assert done.stdout == "work\n" and (cluster.data / "file").read_text() == "x\n", done
    cluster.session = "tool"
    end(cluster)


def story_of_an_agent_that_is_killed(cluster):
    """What is under way at the node's port goes on, and the session is there afterwards."""
    cluster.reach()
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(
            ["sftp", "-q", "-F", cluster.config, "-b", "-", "node"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, cwd=cluster.folder))
        (cluster.folder / "big").write_bytes(os.urandom(BIG))
        process.stdin.write("put big data/first\n")
        process.stdin.flush()
        wait_for((cluster.data / "first").exists, 30, "the upload")
        cluster.programs["agent"].kill()
        process.communicate("put big data/second\n", timeout=60)
        assert process.returncode == 0
    cluster.start_mounting()
    assert (cluster.data / "second").stat().st_size == BIG
    wait_status(cluster.client(), cluster.session, "RUNNING")
    assert cluster.sftp(f"{cluster.session}.aliquot", "get data/second back")[0] == 0
    assert cluster.ssh("-W", "127.0.0.1:2200", "node")[0]
    end(cluster)


def story_of_an_idle_one(cluster):
    """It ends by itself when nobody is connected, and not before."""
    cluster.reach()
    with subprocess.Popen(["sftp", "-q", "-F", cluster.config, "-b", "-", "node"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          cwd=cluster.folder) as held:
        for command in ("pwd", "!sleep 4", "pwd"):
            held.stdin.write(command + "\n")
        held.communicate(timeout=60)
        assert held.returncode == 0
    wait_status(cluster.client(), cluster.session, "TERMINATED")


STORIES = {name: story for name, story in globals().items() if name.startswith("story_")}


def tell(runtime, name):
    settings = {"ALIQUOT_NETWORK_SFTP_IDLE": "3s"} if name == "story_of_an_idle_one" else {}
    with start(runtime, **settings) as cluster:
        STORIES[name](cluster)
        check_all_gone(cluster)


@pytest.mark.parametrize("name", in_gate(STORIES, "story_of_what_is_refused"))
def test_story(name):
    tell_apart(__file__, "runc" if name == "story_of_rclone" else "crun", name)


@pytest.mark.gate
@pytest.mark.parametrize("command, says", [
    (None, "moves files"), ("", "is not run here"), ("id", "is not run here"),
    ("sftp-server", "no sftp-server"), ("/usr/lib/sftp-server", "no sftp-server"),
    ("sftp-server -e", "is not run here"), ("sftp-server; id", "takes a shell"),
    ("rsync --server -vlogDtpre.iLsfxCIvu . data/", "no rsync"),
    ("rsync --server --sender -lr . 'a b' c\\ d \"e\"", "no rsync"),
    ("rsync --daemon", "is not run here"), ("rsync --server --daemon . .", "is not run here"),
    ("rsync -e sh --server", "is not run here"), ("rsync --server . $(id)", "takes a shell"),
    ("rsync --server . *", "takes a shell"), ("rsync --server . 'open", "takes a shell"),
    ("scp -t data", "no scp"), ("scp -v -r -p -f -- data", "no scp"), ("scp a b", "is not run here"),
    ("scp -S -t a:b c", "is not run here"), ("scp -o -t a:b c", "is not run here"),
    ("scp -- -t", "is not run here"), ("rsync --server" + " x" * 300, "takes a shell"),
])
def test_the_shell_runs_what_moves_files(tmp_path, command, says):
    shell = tmp_path / "sh"
    shell.symlink_to(BUILD / "aliquot-runner")
    done = subprocess.run([shell, *([] if command is None else ["-c", command])],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 125 and says in done.stderr, done


if __name__ == "__main__":
    tell(*sys.argv[1:])
