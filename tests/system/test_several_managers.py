# SPDX-License-Identifier: Apache-2.0
"""Two managers on one database, and containers that neither a yield nor a kill -9 of the leader
touches, for clients that know the standby alone."""

import json
import signal

import pytest

from client import ADMIN, Client
from cluster import Cluster, wait_for
from managers import join, make_token
from ports import free_port
from postgres import Server
from runtimes import settings_of
from world import BUILD

HEALTH = "/aliquot/v1/health/manager"
COUNT = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo line $i; sleep 0.2; done; exit 3"


class Two(Cluster):
    """'first' is the program "manager", 'second' joins it."""

    def start_second(self):
        assert join(self, "second", make_token(self, "second"), "--name", "second").returncode == 0
        self.listens = {"manager": self.address, "second": ("127.0.0.1", free_port())}
        self.links = {"manager": self.link, "second": f"127.0.0.1:{free_port()}"}
        self.start_one("second")

    def start_one(self, name):
        self.start_program(name, BUILD / "aliquot-manager", "--dev", "--state", self.folder / name,
                           "--listen", "%s:%d" % self.listens[name], "--link", self.links[name],
                           ALIQUOT_MANAGER_NAME="first" if name == "manager" else name)
        wait_for(lambda: self.role(name) in ("leader", "standby"), 60, name)

    def role(self, name):
        try:
            return Client(self.listens[name], None).get(HEALTH, timeout=5).json["role"]
        except OSError:
            return None

    def by(self, name, *words):
        return self.run("aliquot", *words, **{
            **self.cli_env(), "ALIQUOT_ENDPOINT": "http://%s:%d" % self.listens[name]})


@pytest.fixture
def two():
    with Server() as server:
        server.run("CREATE DATABASE cluster")
        with Two(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host",
                 ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster:
            cluster.start_manager(ALIQUOT_MANAGER_NAME="first")
            cluster.start_second()
            cluster.start_agent(ALIQUOT_RESOURCE_CPU="8")
            yield cluster
            cluster.check_nothing_left()
            cluster.stop()


def test_containers_outlive_leaders(two):
    assert (two.role("manager"), two.role("second")) == ("leader", "standby")
    made = two.by("second", "run", "--name", "counts", "-d", "-r", "cpu=1", "-r", "mem=64m",
                  "--image", "host", "--", "sh", "-c", COUNT)
    assert made.returncode == 0, made
    wait_for(lambda: json.loads(two.by("second", "session", "info", "counts", "-o", "json").stdout)
             ["status"] == "RUNNING", 30, "the session")

    done = two.by("second", "manager", "yield")
    assert done.returncode == 0, done
    wait_for(lambda: (two.role("manager"), two.role("second")) == ("standby", "leader"), 30,
             "the yield")
    wait_for(lambda: two.client().get("/aliquot/v1/agents").json["items"][0]["connected"], 60,
             "the agent at the second leader")

    two.programs["second"].kill()
    wait_for(lambda: two.role("manager") == "leader", 30, "the takeover")
    two.start_one("second")
    assert two.role("second") == "standby"

    logs = two.by("second", "logs", "-f", "counts")
    assert [line for line in logs.stdout.splitlines() if line.startswith("line ")] == [
        f"line {i}" for i in range(1, 151)], logs
    ended = json.loads(two.by("second", "session", "info", "counts", "-o", "json").stdout)
    assert ended["status"] == "TERMINATED" and ended["exit_code"] == 3, ended
    there = {one["name"]: one for one in two.client().get("/aliquot/v1/managers").json["items"]}
    assert there["first"]["role"] == "leader" and there["second"]["connected"], there
    two.check_audits()


def test_a_standby_says_what_it_is(two):
    """And all else is the leader's answer, as the leader gives it."""
    health = Client(two.listens["second"], None).get(HEALTH)
    assert health.status == 200 and health.json["leader"]["name"] == "first", health.json
    for target in ("/aliquot/v1/sessions", "/aliquot/v1/agents", "/aliquot/v1/managers", "/nowhere"):
        direct, forwarded = (Client(two.listens[name], ADMIN).get(target)
                             for name in ("manager", "second"))
        assert (direct.status, set(direct.json)) == (forwarded.status, set(forwarded.json)), target
    two.programs["manager"].signal(signal.SIGTERM)
    two.programs["manager"].may_end = True
    wait_for(lambda: two.role("second") == "leader", 10, "the second to lead")
    two.start_one("manager")
    assert two.role("manager") == "standby"
