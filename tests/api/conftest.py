"""A manager and an agent of the build in ALIQUOT_BUILD, on free loopback ports."""

import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from client import ADMIN, DOMAIN_ADMIN, USER, Client  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ALIQUOT_BUILD", "build-asan"))
if not BUILD.is_absolute():
    BUILD = ROOT / BUILD


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, seconds=30, what="the condition"):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s for {what}")


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.address = ("127.0.0.1", free_port())
        self.link = "127.0.0.1:%d" % free_port()
        self.programs = {}

    def spawn(self, name, *arguments):
        log = open(self.folder / (name + ".log"), "ab")
        self.programs[name] = subprocess.Popen([str(a) for a in arguments], stdout=log,
                                               stderr=log, stdin=subprocess.DEVNULL)

    def start_manager(self):
        self.spawn("manager", BUILD / "aliquot-manager", "--dev", "--state",
                   self.folder / "manager", "--listen", "%s:%d" % self.address,
                   "--link", self.link)
        wait_for(self.is_serving, 60, "the manager, see " + str(self.folder))

    def is_serving(self):
        assert self.programs["manager"].poll() is None, \
            (self.folder / "manager.log").read_text(errors="replace")[-4000:]
        try:
            return Client(self.address, None).get("/aliquot/v1/health").status == 200
        except OSError:
            return False

    def start_agent(self):
        state = self.folder / "agent"
        if not (state / "agent.crt").exists():
            token = self.client().post("/aliquot/v1/join-tokens", {}).json["token"]
            joined = subprocess.run([BUILD / "aliquot-agent", "join", "--state", state,
                                     self.link, token], capture_output=True, timeout=60)
            assert joined.returncode == 0, joined.stderr.decode(errors="replace")
        self.spawn("agent", BUILD / "aliquot-agent", "--state", state)
        wait_for(self.agent_is_alive, 60, "the agent, see " + str(self.folder))

    def agent_is_alive(self):
        items = self.client().get("/aliquot/v1/agents?status=ALIVE").json["items"]
        return items and items[0]["connected"]

    def client(self, keypair=ADMIN, **more):
        return Client(self.address, keypair, **more)

    def stop(self):
        """End both, and fail if a sanitizer had something to say."""
        for name in ("agent", "manager"):
            program = self.programs.pop(name, None)
            if not program:
                continue
            program.terminate()
            try:
                program.wait(30)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        for log in self.folder.glob("*.log"):
            text = log.read_text(errors="replace")
            assert "Sanitizer" not in text and "runtime error" not in text, text[-6000:]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    for program in ("aliquot-manager", "aliquot-agent"):
        assert (BUILD / program).exists(), f"{BUILD / program} is not built"
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def admin(cluster):
    return cluster.client(ADMIN)


@pytest.fixture(scope="session")
def domain_admin(cluster):
    return cluster.client(DOMAIN_ADMIN)


@pytest.fixture(scope="session")
def user(cluster):
    return cluster.client(USER)


@pytest.fixture(scope="session")
def nobody(cluster):
    return cluster.client(None)


@pytest.fixture(scope="session")
def routes(nobody):
    return nobody.get("/aliquot/v1/routes").json["routes"]


@pytest.fixture(scope="session", autouse=True)
def no_rate_limit(admin):
    """The suite asks more often than a person would."""
    for key in (ADMIN, DOMAIN_ADMIN, USER):
        assert admin.send("PATCH", "/aliquot/v1/keypairs/" + key[0],
                          {"rate_limit": 0}).status == 200


@pytest.fixture
def name(request):
    """A session name of this test's own."""
    Cluster.count = getattr(Cluster, "count", 0) + 1
    return f"t{Cluster.count:04d}-{request.node.name[5:40].split('[')[0]}".rstrip("_-")


def batch(name, command, **more):
    return {"name": name, "image": "sh", "type": "batch", "startupCommand": command,
            "config": {"resources": {"cpu": "1", "mem": "64m"}}, "enqueueOnly": True, **more}


def wait_status(client, session, *wanted, seconds=60):
    """The session once it has one of the states."""
    def look():
        shown = client.get("/aliquot/v1/sessions/" + session).json
        return shown if shown.get("status") in wanted else None
    return wait_for(look, seconds, f"{session} to become {wanted}")
