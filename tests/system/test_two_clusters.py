# SPDX-License-Identifier: Apache-2.0
"""Two clusters of 'aliquot up' on one machine: the second one moves its ports by --port-offset.

They are in a network of their own, where the default ports are free."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from cluster import wait_for
from web import Browser
from world import BUILD, Space, World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network")

DEFAULTS = {"API": 8081, "agents": 8082, "apps": 5050, "files": 6021, "web": 8090}
METRICS = {"manager": 8083, "proxy": 5051, "storage": 6023, "web": 8093}
LAST_LINE = {"--dev": "Ctrl-C ends the cluster and its sessions.",
             "": "Ctrl-C ends manager and agents; sessions go on."}


class Up:
    """'aliquot up' in the folder 'name'."""

    def __init__(self, world, space, name, *options):
        self.space, self.state = space, world.folder / name
        env = {key: value for key, value in world.env.items() if key != "ALIQUOT_METRICS_LISTEN"}
        self.env = {**env, "ALIQUOT_NETWORK_ENABLED": "false",
                    "ALIQUOT_RUNTIME_FOLDER": str(world.folder / f"run-{name}")}
        self.out = world.folder / f"{name}.out"
        with self.out.open("w") as out:
            self.process = subprocess.Popen(
                space.words(BUILD / "aliquot", "up", "--state", self.state, *options),
                env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    @property
    def said(self):
        return self.out.read_text()

    def wait(self, last=LAST_LINE["--dev"]):
        def is_ready():
            assert self.process.poll() is None, self.said
            return last in self.said
        wait_for(is_ready, 120, lambda: self.said)
        return self

    def run(self, endpoint, *words):
        return subprocess.run(
            self.space.words(BUILD / "aliquot", *words), capture_output=True, text=True, timeout=120,
            env={**self.env, "ALIQUOT_ENDPOINT": endpoint,
                 "ALIQUOT_ACCESS_KEY": "AKIAIOSFODNN7EXAMPLE",
                 "ALIQUOT_SECRET_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"})

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 0, self.said


@pytest.fixture
def place():
    """A world, and a network in which no port is taken."""
    with World() as world, contextlib.closing(Space()) as space:
        yield world, space


def get(space, port, path):
    with space.entered():
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        link.connect()
    link.request("GET", path)
    return link.getresponse().read().decode()


def test_two_clusters_run_beside_each_other(place):
    world, space = place
    clusters = {0: Up(world, space, "first", "--dev"),
                100: Up(world, space, "second", "--dev", "--port-offset", "100")}
    for offset, up in clusters.items():
        up.wait()
        for name, port in DEFAULTS.items():
            assert re.search(rf"^  {name} .*127\.0\.0\.1:{port + offset}\b", up.said, re.M), up.said
        endpoint = f"http://127.0.0.1:{DEFAULTS['API'] + offset}"
        done = up.run(endpoint, "run", "-q", "-r", "cpu=1", "-r", "mem=64m", "--name",
                      f"by{offset}", "--", "echo", f"offset {offset}")
        assert (done.returncode, done.stdout) == (0, f"offset {offset}\n"), done
        for port in METRICS.values():
            assert "# TYPE" in get(space, port + offset, "/metrics"), port + offset
    names = [up.run(f"http://127.0.0.1:{DEFAULTS['API'] + offset}", "ps", "--all", "-o", "name")
             for offset, up in clusters.items()]
    assert [done.stdout.split() for done in names] == [["by0"], ["by100"]]
    for up in clusters.values():
        up.stop()


def test_ports_of_a_first_cluster_are_named_with_the_option(place):
    """A second one without an offset is refused, by its state or by its port."""
    world, space = place
    first = Up(world, space, "first", "--dev").wait()
    for name, said in (("second", "choose another --port; --port-offset 100 moves all ports"),
                       ("first", "another --state and --port-offset 100")):
        second = Up(world, space, name, "--dev")
        assert second.process.wait(60) == 1 and said in second.said, second.said
    first.stop()


@pytest.mark.parametrize("option", ["--dev", ""])
def test_login_of_the_page_is_printed(place, option):
    """With what is printed, or is where that says, a browser logs in."""
    world, space = place
    up = Up(world, space, "only", *filter(None, [option])).wait(LAST_LINE[option])
    port = int(re.search(r"In the browser: http://127\.0\.0\.1:(\d+)\b", up.said)[1])
    given = dict(re.findall(r"^  (e-mail|password) +(\S+)$", up.said, re.M))
    if not option:
        assert not given, "a secret must not be on the screen"
        told = re.search(r"e-mail, password and keypair are in (\S+)\.\n", up.said)[1]
        found = json.loads(pathlib.Path(told).read_text())
        given = {"e-mail": found["email"], "password": found["password"]}
    with space.entered():
        assert Browser(port).login(given["e-mail"], given["password"]).json["authenticated"]
    up.stop()
