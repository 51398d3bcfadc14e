# SPDX-License-Identifier: Apache-2.0
"""Proxy and agent pass the bytes of apps between them: what is open outlives the manager and the
agent, apps are reached while the manager is away, and rights end as before."""

import contextlib
import http.client
import json
import socket
import stat
import threading

import pytest

from client import USER
from cluster import running, wait_for
from ports import free_port
from runtimes import settings_of
from test_proxy import Proxied, accepts, echo, make_image, place, says_back

SETTINGS = {"ALIQUOT_IMAGE_ALLOW": "* host oci:/", "ALIQUOT_IMAGE_KEEP_FREE": "0"}


class Direct(Proxied):
    """A proxy that reaches its agent by one way."""

    def __init__(self, way="socket", **settings):
        super().__init__(**settings_of("crun"), **SETTINGS, **settings)
        port = free_port()
        self.agent_settings = {
            "socket": {}, "tls": {"ALIQUOT_DATA_LISTEN": f"127.0.0.1:{port}"},
            # nobody listens there, as behind a firewall that rejects
            "blocked": {"ALIQUOT_DATA_LISTEN": f"127.0.0.1:{port}",
                        "ALIQUOT_DATA_ADDRESS": f"127.0.0.1:{free_port()}"}}[way]
        # where there is no socket it looks like another machine
        self.proxy_settings = {} if way == "socket" else {
            "ALIQUOT_RUNTIME_FOLDER": str(self.folder / "elsewhere")}

    def begin(self):
        self.start_manager()
        self.start_agent(**self.agent_settings)
        self.image = make_image(self)
        self.start_proxy(**self.proxy_settings)

    def restart_proxy(self):
        """Also while the manager is away, when it is not healthy."""
        self.programs["proxy"].start()
        wait_for(lambda: accepts(self.port), 60, "the proxy")

    def routes(self):
        return json.loads((self.folder / "proxy" / "routes").read_text())

    def way(self):
        with contextlib.suppress(OSError, ValueError):
            return self.routes()["agents"].get("agent", {}).get("way")

    def wait_saved(self):
        wait_for(lambda: (self.folder / "proxy" / "routes").exists() and self.routes()["routes"], 30,
                 "the routes to be written")

    def uses(self, name="apps"):
        shown = self.client().get(f"/aliquot/v1/sessions/{name}").json
        return {app["app"]: app for app in shown["app_traffic"]}

    def kill_manager(self):
        self.programs["manager"].kill()
        wait_for(lambda: self.ask("GET", "/health")[0] == 503, 60, "the manager's end")

    def restart_manager(self):
        self.programs["manager"].start()
        wait_for(self.is_serving, 60, "the manager")
        wait_for(lambda: self.agent().get("connected"), 60, "the agent")
        wait_for(self.is_proxied, 60, "the proxy")


@pytest.fixture(scope="module", params=["socket", "tls"])
def cluster(request):
    with Direct(request.param) as cluster:
        cluster.begin()
        cluster.way_meant = request.param
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "apps", image=cluster.image) as session:
        yield session


class Download(threading.Thread):
    """Reads a stream of the app in numbered lines to its end."""

    def __init__(self, cluster, path, cookie, count):
        super().__init__(daemon=True)
        self.count, self.text, self.begun = count, b"", threading.Event()
        self.connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
        self.connection.request("GET", f"{path}/stream/{count}", headers={"Cookie": cookie})
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200
        self.start()

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            while got := self.reply.read1(4096):
                self.text += got
                self.begun.set()

    def is_whole(self):
        self.join(120)
        return self.text == b"".join(b"%099d\n" % i for i in range(self.count))


@pytest.mark.gate
def test_bytes_pass_by(cluster, box):
    cookie = cluster.cookie("apps", "web")
    before = cluster.uses().get("web", {"requests": 0, "bytes_in": 0})
    with echo(cluster, place(box), cookie) as end:
        for size in (1, 70_000, 3_000_000):
            assert says_back(end, b"e" * size)
        wait_for(lambda: cluster.uses().get("web", {"bytes_in": 0})["bytes_in"]
                 >= before["bytes_in"] + 3_070_001, 30,
                 "the bytes to be counted")
        assert cluster.uses()["web"]["connections"] >= 1
    wait_for(lambda: cluster.uses()["web"]["connections"] == 0, 30, "the connection's end")
    assert cluster.uses()["web"]["requests"] > before["requests"]
    assert cluster.client().get("/aliquot/v1/sessions/apps").json["last_access"]
    wait_for(lambda: cluster.way() == cluster.way_meant, 30, "the way to be written")
    file = cluster.folder / "proxy" / "routes"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.gate
def test_a_killed_manager_cuts_nothing(cluster, box):
    cookie = cluster.cookie("apps", "web")
    with echo(cluster, place(box), cookie) as end:
        download = Download(cluster, place(box), cookie, 250)
        assert download.begun.wait(60)
        cluster.wait_saved()
        cluster.kill_manager()
        assert says_back(end, b"a" * 100_000)
        assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200  # new ones, too
        assert download.is_whole()
        cluster.restart_manager()
        assert says_back(end, b"b" * 100_000)
        wait_for(lambda: cluster.uses().get("web", {}).get("connections") == 1, 30,
                 "the open connection to be told of")
    wait_for(lambda: cluster.uses()["web"]["connections"] == 0, 30, "its end")


def test_a_proxy_that_restarts_without_the_manager(cluster, box):
    cookie = cluster.cookie("apps", "web")
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200
    cluster.wait_saved()
    cluster.kill_manager()
    cluster.programs["proxy"].kill()
    cluster.restart_proxy()
    assert cluster.ask("GET", "/health")[0] == 503
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200
    with echo(cluster, place(box), cookie) as end:
        assert says_back(end, b"c" * 100_000)
    cluster.restart_manager()
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200


def test_a_killed_agent(cluster, box):
    """What it handed over goes on; what passes it is cut; the next connection finds it again."""
    cookie = cluster.cookie("apps", "web")
    with echo(cluster, place(box), cookie) as end:
        assert says_back(end, b"a" * 1000)
        cluster.programs["agent"].kill()
        if cluster.way_meant == "socket":
            assert says_back(end, b"b" * 100_000)
        else:
            assert end.recv(1) == b""
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    wait_for(lambda: cluster.ask("GET", place(box) + "/", cookie)[0] == 200, 60, "the app")


def is_cut(end):
    end.settimeout(0.1)
    with contextlib.suppress(TimeoutError):
        return end.recv(1) == b""
    return False


def test_rights_that_end(cluster, box):
    """The session goes on: only what its user had open is cut, and nothing new is let in."""
    admin = cluster.client()
    with running(cluster.client(USER), "theirs", image=cluster.image) as session:
        cookie = cluster.cookie("theirs", "web", cluster.client(USER))
        with echo(cluster, place(session), cookie) as end:
            assert says_back(end, b"a")
            cluster.wait_saved()
            assert admin.send("PATCH", f"/aliquot/v1/keypairs/{USER[0]}", {"is_active": False}).status == 200
            try:
                wait_for(lambda: is_cut(end), 30, "the connection to be cut")
                assert cluster.ask("GET", place(session) + "/", cookie)[0] == 403
            finally:
                reply = admin.send("PATCH", f"/aliquot/v1/keypairs/{USER[0]}", {"is_active": True})
            assert reply.status == 200
        cluster.client(USER).send("DELETE", "/session/theirs")  # users may not force it
    assert cluster.ask("GET", place(box) + "/", cluster.cookie("apps", "web"))[0] == 200


def test_a_session_that_ends(cluster, box):
    assert box
    with running(cluster.client(), "short", image=cluster.image) as session:
        cookie = cluster.cookie("short", "web")
        end = echo(cluster, place(session), cookie)
        assert says_back(end, b"a")
    with end:
        wait_for(lambda: is_cut(end), 30, "the connection to be cut")
    assert cluster.ask("GET", place(session) + "/", cookie)[0] in (404, 410)


def test_an_app_that_has_ended_starts_again(cluster, box):
    cookie = cluster.cookie("apps", "web")
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200
    assert cluster.client().post("/session/apps/shutdown-service",
                                 {"service_name": "web"}).status == 204
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200


def doctor_says(cluster):
    done = cluster.run("aliquot-proxy", "--state", cluster.folder / "proxy", "check")
    found = {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}
    return found["proxy.path"]


def test_the_doctor_knows_the_way(cluster, box):
    assert cluster.ask("GET", place(box) + "/", cluster.cookie("apps", "web"))[0] == 200
    wait_for(lambda: cluster.way() == cluster.way_meant, 30, "the way to be written")
    found = doctor_says(cluster)
    assert found["level"] == "ok" and "1 agent" in found["text"], found


def test_a_blocked_way():
    """The manager is the way then, and the doctor says why."""
    with Direct("blocked") as cluster:
        cluster.begin()
        with running(cluster.client(), "apps", image=cluster.image) as box:
            cookie = cluster.cookie("apps", "web")
            for _ in range(3):
                assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200
            with echo(cluster, place(box), cookie) as end:
                assert says_back(end, b"a" * 100_000)
            wait_for(lambda: cluster.way() == "manager", 30, "the way to be written")
            found = doctor_says(cluster)
            assert found["level"] == "warning" and "agent" in found["text"], found
            assert "refused" in found["text"] and found["remedy"], found
        cluster.stop()


def test_a_ticket_that_expires():
    """Without the manager it ends for new connections; those that are open go on."""
    with Direct(ALIQUOT_APPS_TICKET_LIFETIME="3s") as cluster:
        cluster.begin()
        with running(cluster.client(), "apps", image=cluster.image) as box:
            cookie = cluster.cookie("apps", "web")
            with echo(cluster, place(box), cookie) as end:
                assert says_back(end, b"a")
                first = cluster.wait_saved() or cluster.routes()["routes"][0]["ticket"]
                wait_for(lambda: cluster.routes()["routes"]
                         and cluster.routes()["routes"][0]["ticket"] != first, 30, "a newer ticket")
                cluster.kill_manager()
                wait_for(lambda: cluster.ask("GET", place(box) + "/", cookie)[0] == 503, 30,
                         "the ticket's end")
                assert says_back(end, b"b")
                cluster.restart_manager()
                assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200
        cluster.stop()
