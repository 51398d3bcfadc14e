# SPDX-License-Identifier: Apache-2.0
"""aliquot-up with stand-ins for manager, agent and command line: what it starts,
what it restarts, what it ends, and when it gives up."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import textwrap
import time

import pytest

from ports import free_port
from world import BUILD, World

MANAGER = """\
    #!/usr/bin/python3
    import os, pathlib, signal, socket, sys, time
    here = pathlib.Path(sys.argv[0]).parent
    with open(here / "calls", "a") as calls:
        print("manager", *sys.argv[1:], file=calls)
    if "init" in sys.argv:
        print('{"email": "a@b", "password": "p", "access_key": "AKIAFRESH", "secret_key": "s"}')
        (pathlib.Path(sys.argv[sys.argv.index("--state") + 1]) / "aliquot.db.key").touch()
        sys.exit(0)
    if (here / "manager-fails").exists():
        sys.exit("no room on the disk")
    def stop(*_):
        with open(here / "calls", "a") as calls:
            print("manager stopped", file=calls)
        sys.exit(0)
    signal.signal(signal.SIGTERM, stop)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(b"READY=1\\n", os.environ["NOTIFY_SOCKET"])
    while True:
        time.sleep(60)
"""
AGENT = MANAGER.replace("manager", "agent").replace("    if (here", """\
    if "join" in sys.argv:
        (pathlib.Path(sys.argv[sys.argv.index("--state") + 1]) / "agent.crt").touch()
        sys.exit(0)
    if (here""", 1)
CLI = """\
    #!/usr/bin/python3
    import os, pathlib, sys
    here = pathlib.Path(sys.argv[0]).parent
    with open(here / "calls", "a") as calls:
        print("aliquot", *sys.argv[1:], os.environ.get("ALIQUOT_ACCESS_KEY"), file=calls)
    if "token" in sys.argv:
        print("aq1.token")
"""


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Cluster:
    def __init__(self, world):
        self.bin, self.state, self.env = world.folder / "bin", world.folder / "state", world.env
        self.bin.mkdir()
        shutil.copy(BUILD / "aliquot-up", self.bin)
        for name, text in [("manager", MANAGER), ("agent", AGENT)]:
            self.program(f"aliquot-{name}", text)
        self.program("aliquot", CLI)
        self.up = None

    def program(self, name, text):
        (self.bin / name).write_text(textwrap.dedent(text))
        (self.bin / name).chmod(0o755)

    def start(self, *options, inside=()):
        """aliquot-up in the background, run by the command 'inside'."""
        ports = ("--port", str(free_port()), "--link-port", str(free_port()))
        self.up = subprocess.Popen([*inside, self.bin / "aliquot-up", "--state", self.state, *ports,
                                    *options], env=self.env, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        return self.up

    def fail(self, *options, **more):
        """aliquot-up that has to refuse before it starts anything; its last line."""
        _, err = self.start(*options, **more).communicate(timeout=60)
        assert self.up.returncode == 1, err
        assert not (self.bin / "calls").exists() and not (self.state / "up.json").exists()
        return err.splitlines()[-1]

    def info(self):
        try:
            info = json.loads((self.state / "up.json").read_text())
        except FileNotFoundError:
            info = {"manager_pid": 0, "agent_pids": [0]}
        return {**info, "agent_pid": (info["agent_pids"] or [0])[0]}

    def calls(self):
        return (self.bin / "calls").read_text().splitlines()

    def wait_ready(self):
        wait_until(lambda: self.info()["agent_pid"])
        wait_until(lambda: any(call.startswith("agent --state") for call in self.calls()))

    def stop(self):
        self.up.send_signal(signal.SIGINT)
        return self.up.communicate(timeout=60)


@pytest.fixture
def cluster():
    with World() as world:
        cluster = Cluster(world)
        yield cluster
        if cluster.up and cluster.up.poll() is None:
            cluster.up.kill()
            cluster.up.wait()


@pytest.mark.gate
def test_starts_joins_and_stops_in_order(cluster):
    port = str(free_port())
    cluster.start("--dev", "--port", port)
    cluster.wait_ready()
    pids = cluster.info()
    out, err = cluster.stop()
    assert cluster.up.returncode == 0, err
    assert f"http://127.0.0.1:{port}" in out and "aliquot login --dev" in out
    kinds = [call.split(" ", 2)[:2] for call in cluster.calls()]
    assert kinds == [["manager", "--state"], ["aliquot", "agent"], ["agent", "--state"],
                     ["agent", "--state"], ["aliquot", "rm"], ["agent", "stopped"],
                     ["manager", "stopped"]]
    assert cluster.calls()[2].endswith("aq1.token") and " join " in cluster.calls()[2]
    assert any("AKIAIOSFODNN7EXAMPLE" in call for call in cluster.calls())
    assert not is_alive(pids["manager_pid"]) and not is_alive(pids["agent_pid"])
    assert not (cluster.state / "up.json").exists()


def test_makes_an_administrator_once(cluster):
    for _ in range(2):
        cluster.start()
        cluster.wait_ready()
        cluster.stop()
    assert sum(call.startswith("manager init") for call in cluster.calls()) == 1
    assert any("AKIAFRESH" in call for call in cluster.calls())
    assert not any("rm" in call.split() for call in cluster.calls())  # sessions go on
    credentials = cluster.state / "admin.json"
    assert credentials.stat().st_mode & 0o777 == 0o600
    assert json.loads(credentials.read_text())["password"] == "p"


@pytest.mark.gate
def test_joins_once(cluster):
    cluster.start("--dev")
    cluster.wait_ready()
    cluster.stop()
    cluster.start("--dev")
    cluster.wait_ready()
    cluster.stop()
    assert sum("token" in call.split() for call in cluster.calls()) == 1


@pytest.mark.gate
@pytest.mark.parametrize("name", ["manager", "agent"])
def test_starts_anew_what_is_killed(cluster, name):
    cluster.start("--dev")
    cluster.wait_ready()
    for _ in range(3):
        pid = cluster.info()[f"{name}_pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: cluster.info()[f"{name}_pid"] not in (0, pid))
    _, err = cluster.stop()
    assert err.count(f"the {name} ended with signal 9") == 3
    assert f"the {name} serves again" in err


def test_several_agents_each_with_a_file_and_a_folder(cluster, tmp_path):
    files = [tmp_path / "first.toml", tmp_path / "second.toml"]
    cluster.start("--dev", "--agent", files[0], "--agent", files[1])
    wait_until(lambda: len(pids := cluster.info()["agent_pids"]) == 2 and all(pids))
    wait_until(lambda: sum(call.startswith("agent --config") for call in cluster.calls()) == 4)
    first, second = cluster.info()["agent_pids"]
    os.kill(second, signal.SIGKILL)
    wait_until(lambda: cluster.info()["agent_pids"][1] not in (0, second))
    assert cluster.info()["agent_pids"][0] == first
    _, err = cluster.stop()
    assert cluster.up.returncode == 0 and "the agent2 ended with signal 9" in err
    started = [call for call in cluster.calls() if call.startswith("agent --config")]
    for file, folder in zip(files, ["agent", "agent2"]):
        assert any(f"--config {file} --state {cluster.state / folder} --shared --dev join" in call
                   for call in started)
    assert [call.split()[0] for call in cluster.calls()][-3:] == ["agent", "agent", "manager"]


def test_children_end_when_it_is_killed_and_another_takes_over(cluster):
    cluster.start("--dev")
    cluster.wait_ready()
    pids = cluster.info()
    cluster.up.kill()
    cluster.up.wait()
    wait_until(lambda: not is_alive(pids["manager_pid"]) and not is_alive(pids["agent_pid"]))
    cluster.start("--dev")
    wait_until(lambda: cluster.info()["agent_pid"] not in (0, pids["agent_pid"]))
    cluster.stop()
    assert cluster.up.returncode == 0


def test_two_on_one_state_are_refused(cluster):
    first = cluster.start("--dev")
    cluster.wait_ready()
    second = cluster.start("--dev")
    _, err = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"another 'aliquot up', process {first.pid}, has '{cluster.state}'" in err
    assert "choose another --state" in err
    cluster.up = first
    cluster.stop()


def test_gives_up_on_what_never_starts(cluster):
    (cluster.bin / "manager-fails").touch()
    cluster.start("--dev")
    _, err = cluster.up.communicate(timeout=60)
    assert cluster.up.returncode == 1
    assert "the manager does not start: no room on the disk; all that it said is in" in err
    assert "manager.log" in err and "<" not in err


@pytest.mark.gate
def test_says_why_an_agent_cannot_join(cluster):
    """In the agent's own words, which are in up.log, too."""
    shutil.copy(BUILD / "aliquot-agent", cluster.bin)
    settings = cluster.state.parent / "agent.toml"
    settings.write_text("[agent]\nnonsense = 1\n")
    _, err = cluster.start("--dev", "--agent", str(settings)).communicate(timeout=60)
    assert cluster.up.returncode == 1
    assert f"aliquot-agent: {settings}:1: unknown section 'agent'" in err.splitlines()[-1]
    assert "up.log" in err and "<" not in err


@pytest.mark.parametrize("program", ["aliquot-manager", "aliquot-agent", "aliquot-up"])
def test_levels_are_for_the_journal(tmp_path, program):
    """A prefix for standard error that JOURNAL_STREAM names; words for people elsewhere."""
    words = ["--state", "/proc/nowhere"] if program == "aliquot-up" else ["--config", "/nowhere"]
    for is_journal in (False, True):
        log = tmp_path / f"log-{is_journal}"
        with open(log, "w") as out:
            state = os.fstat(out.fileno())
            stream = f"{state.st_dev}:{state.st_ino}" if is_journal else "1:2"
            done = subprocess.run([BUILD / program, *words], stderr=out,
                                  env={**os.environ, "JOURNAL_STREAM": stream})
        said = log.read_text()
        name = program.removeprefix("aliquot-")
        assert done.returncode == 1 and said.startswith("<3>") == is_journal, said
        assert f"{name}: " in said and (": error: " in said) != is_journal, said


@pytest.mark.parametrize("options", [["--port", "0"], ["--port", "x"], ["--port-offset", "0"],
                                     ["--port-offset", "50001"], ["--static", "/"], ["--nonsense"], ["word"]])
def test_mistakes_on_the_command_line(cluster, options):
    cluster.start(*options)
    _, err = cluster.up.communicate(timeout=60)
    assert cluster.up.returncode == 2 and "Usage:" in err


# ---- bad days ----

FILL = 'head -c 4096 /dev/zero > "$0/filler"\n'


@pytest.mark.parametrize("option", ["--port", "--link-port"])
def test_port_that_another_program_has(cluster, option):
    with socket.create_server(("127.0.0.1", free_port())) as other:
        port = other.getsockname()[1]
        said = cluster.fail("--dev", option, str(port))
    assert f"another program listens on 127.0.0.1:{port}" in said
    assert f"end it, or choose another {option}" in said


def test_port_that_is_given_back_soon(cluster):
    """As by the manager of an 'aliquot up' that was just killed."""
    with socket.create_server(("127.0.0.1", free_port())) as other:
        port = other.getsockname()[1]
        cluster.start("--dev", "--port", str(port))
        wait_until((cluster.state / "up.json").exists)
    cluster.wait_ready()
    cluster.stop()
    assert cluster.up.returncode == 0


def mounted(options, folder, then=""):
    """A command that runs another one with a file system of its own in the folder ($0)."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    folder.mkdir()
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
            f'mount -t tmpfs {options} small "$0"\n{then}exec "$@"', folder]


def test_state_on_a_full_disk(cluster):
    said = cluster.fail("--dev", inside=mounted("-o size=4k", cluster.state, FILL))
    assert "has 0 MiB free; free some space there, or choose another --state" in said


def test_state_that_cannot_be_written(cluster):
    said = cluster.fail("--dev", inside=mounted("-o ro", cluster.state))
    assert "mounted read-only; remount it writable, or choose another --state" in said


def test_state_of_somebody_else(cluster):
    if os.geteuid() != 0:
        pytest.skip("only root may be somebody else")
    said = cluster.fail("--dev", inside=["setpriv", "--reuid", "65534", "--clear-groups"])
    assert "Permission denied; choose another --state" in said


def test_state_that_is_a_file(cluster):
    cluster.state.touch()
    _, err = cluster.start("--dev").communicate(timeout=60)
    assert cluster.up.returncode == 1 and "Not a directory; choose another --state" in err


@pytest.mark.parametrize("name", ["d\N{LATIN SMALL LETTER A WITH DIAERESIS}m o's $x", "x" * 200])
def test_state_of_any_name(cluster, name):
    cluster.state = cluster.state / name
    cluster.start("--dev")
    cluster.wait_ready()
    cluster.stop()
    assert cluster.up.returncode == 0
