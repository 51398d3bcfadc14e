# SPDX-License-Identifier: Apache-2.0
"""The configuration tree in a real etcd: carried both ways, and what happens when etcd is away, hangs,
is emptied, compacted, or full of what is not ours; kill -9 of the manager meanwhile.
"""

import contextlib
import random
import signal
import threading
import urllib.parse
import urllib.request

import pytest

import etcd
from cluster import ENDED, GONE, Cluster, wait_for, wait_status
from ports import free_port

pytestmark = [pytest.mark.engines, pytest.mark.gate]


class Site(Cluster):
    """A manager whose settings name an etcd."""

    def __init__(self, server, **settings):
        self.server, self.metrics = server, "127.0.0.1:%d" % free_port()
        super().__init__(**{"ALIQUOT_ETCD_ENDPOINTS": server.url,
                            "ALIQUOT_METRICS_LISTEN": self.metrics, **settings})

    def restart(self):
        self.programs["manager"].kill()
        self.programs["manager"].start()
        wait_for(self.is_serving, 60, "the manager")

    def set(self, key, value, **more):
        reply = self.client().post("/config/set", {"key": key, "value": value, **more})
        assert reply.status == 200, reply

    def delete(self, key, **more):
        reply = self.client().post("/config/delete", {"key": key, **more})
        assert reply.status == 200, reply

    def get(self, key, **more):
        return self.client().post("/config/get", {"key": key, **more}).json["result"]

    def ours(self):
        """The tree as keys and values, as etcd has them."""
        found = {}

        def walk(tree, above):
            for name, value in tree.items():
                key = "/".join(filter(None, (above, urllib.parse.quote(name, safe=""))))
                if isinstance(value, dict):
                    walk(value, key)
                else:
                    found[key] = value
        walk(self.get("", prefix=True), "")
        return found

    def agrees(self):
        return self.client().get("/aliquot/v1/health").json["etcd_away_since"] is None

    def met(self):
        """The tree, once both have the same."""
        wait_for(lambda: self.agrees() and self.server.tree() == self.ours(), 60,
                 lambda: f"both to agree: {self.ours()} here, {self.server.tree()} in etcd")
        return self.server.tree()

    def log(self):
        return (self.folder / "manager.log").read_text()

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as reply:
            lines = reply.read().decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))


@pytest.fixture(name="server", scope="module")
def server_fixture():
    with etcd.Server() as made:
        yield made


@pytest.fixture(scope="module")
def site(server):
    with Site(server) as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.stop()


@pytest.fixture(name="empty")
def empty_fixture(site):
    yield
    site.delete("", prefix=True)
    for key in site.server.tree():
        site.server.delete(key)
    wait_for(lambda: not site.ours() and not site.server.tree(), 60, "both to be empty")


@contextlib.contextmanager
def own_site(**settings):
    """For what would disturb others."""
    with etcd.Server() as server, Site(server, **settings) as made:
        made.start_manager()
        yield made, server
        made.stop()


# ---- both ways ----

def test_changes_of_etcd_come(site, server, empty):
    server.put("config/docker/registry/r.example:5000", "https://r.example:5000")
    server.put("config/resource_slots/cuda.shares", "count")
    server.put("volumes/default_host", "local:volume")
    wait_for(lambda: site.get("volumes/default_host") == "local:volume", 60)
    assert site.get("config/resource_slots/cuda.shares") == "count"
    registries = site.client().get("/config/docker-registries").json
    assert registries == {"r.example:5000": "https://r.example:5000"}
    server.put("volumes/default_host", "local:other")
    wait_for(lambda: site.get("volumes/default_host") == "local:other", 60)
    server.delete("volumes/default_host")
    wait_for(lambda: site.get("volumes/default_host") is None, 60)
    entries = site.client().get("/aliquot/v1/audit-log?action=sync-config&limit=1").json["items"]
    assert entries[0]["user"] == "etcd" or entries[0]["user_name"] == "etcd", entries
    assert site.metric("aliquot_etcd_taken_total") >= 5


def test_changes_of_ours_go(site, server, empty):
    site.set("config/idle/enabled", "timeout")
    site.set("odd /%", "\u00fc")
    site.set("a", {"b": "1", "b/c": "2"})
    wait_for(lambda: "a/b/c" in server.tree(), 60)
    assert site.met() == {"config/idle/enabled": "timeout", "odd%20/%25": "\u00fc", "a/b": "1",
                          "a/b/c": "2"}
    site.delete("a/b")
    wait_for(lambda: "a/b" not in server.tree(), 60)
    assert server.tree()["a/b/c"] == "2"
    many = {f"k{i}": str(i) for i in range(300)}  # more than a transaction of etcd may have
    site.set("many", many)
    wait_for(lambda: len(server.tree(etcd.PREFIX + "many/")) == 300, 60)
    site.delete("many", prefix=True)
    wait_for(lambda: not server.tree(etcd.PREFIX + "many/"), 60)


def test_scopes(site, server, empty):
    server.put("sgroup/default/config/x", "of the group")
    server.put("nodes/agents/agent/config/x", "of the node")
    wait_for(lambda: site.get("config/x", scope="node/agent") == "of the node", 60)
    assert site.get("config/x", scope="sgroup/default") == "of the group"
    assert site.get("config/x") is None
    site.set("config/y", "z", scope="sgroup/default")
    wait_for(lambda: server.tree().get("sgroup/default/config/y") == "z", 60)


def test_what_etcd_says_counts(site, server, empty):
    """Frozen by etcd: no session is made, until it says that it runs."""
    body = {"name": "frozen", "image": "sh", "type": "batch", "startupCommand": "true",
            "config": {"resources": {"cpu": "1", "mem": "64m"}}}
    server.put("manager/status", "frozen")
    wait_for(lambda: site.client().get("/manager/status").json["status"] == "frozen", 60)
    assert site.client().post("/session", body).status == 503
    server.put("manager/status", "running")
    wait_for(lambda: site.client().get("/manager/status").json["status"] == "running", 60)
    assert site.client().post("/session", body).status == 201
    assert wait_status(site.client(), "frozen", *ENDED)["result"] == "SUCCESS"
    assert site.client().send("PUT", "/manager/status", {"status": "frozen"}).status == 204
    wait_for(lambda: server.tree().get("manager/status") == "frozen", 60)
    server.delete("manager/status")
    wait_for(lambda: site.client().get("/manager/status").json["status"] == "running", 60)


def test_spellings(site, server, empty):
    """As another client wrote it, a key stays in etcd."""
    server.put("config/docker/registry/r.example:5000", "one")
    wait_for(lambda: site.get("config/docker/registry/r.example%3A5000") == "one", 60)
    site.set("config/docker/registry/r.example%3A5000", "two")
    wait_for(lambda: server.tree() == {"config/docker/registry/r.example:5000": "two"}, 60)


def test_passwords(site, server, empty):
    """What is set here is sealed in etcd; what is set there is used, and is not sealed there."""
    key = "config/docker/registry/r.example/password"
    site.set(key, "secret-of-ours")
    wait_for(lambda: server.tree().get(key, "").startswith("sealed:"), 60)
    first = site.get(key)
    server.put(key, "secret-of-theirs")
    wait_for(lambda: site.get(key) != first, 60)
    sealed = site.get(key)
    assert sealed.startswith("sealed:")
    site.restart()
    wait_for(site.agrees, 60)
    assert site.get(key) == sealed and server.tree()[key] == "secret-of-theirs"
    assert b"secret-of-theirs" not in (site.folder / "manager.log").read_bytes()


def test_foreign_keys(site, server, empty):
    """Left alone, with one line in the log each; what can be used is."""
    server.put(b"bad/\xff", "x")
    server.put("nodes/elsewhere/x", "x")
    server.put("fine/huge", "x" * 100_000)
    server.put("fine/bytes", b"\xff")
    server.put("config/idle/app-streaming-packet-timeout", "banana")
    server.put("manager/status", "banana")
    lease = server.call("/v3/lease/grant", {"TTL": "600"})["ID"]
    server.put("fine/leased", "x", lease=lease)
    server.put("elsewhere", "x", prefix="/sorna/other/")
    server.put("fine/key", "x")
    wait_for(lambda: site.ours() == {"fine/key": "x"}, 60, site.ours)
    site.set("manager/announcement", "still here")
    wait_for(lambda: server.tree().get("manager/announcement") == "still here", 60)
    assert server.tree()["manager/status"] == "banana"
    for word in ("bad/", "nodes/elsewhere/x", "fine/huge", "fine/bytes", "manager/status",
                 "fine/leased"):
        assert sum("ignoring key" in line and word in line
                   for line in site.log().splitlines()) == 1, word
    assert "/sorna/other" not in site.log()
    site.set("manager/status", "running")  # ours replaces what could not be used
    wait_for(lambda: server.tree()["manager/status"] == "running", 60)
    server.call("/v3/kv/deleterange", {"key": etcd.coded(b"/sorna/local/bad/\xff")})
    for key in [*server.tree()]:
        server.delete(key)


# ---- etcd is away ----

def test_away_at_the_start():
    with etcd.Server() as server, Site(server) as site:
        server.stop()
        site.start_manager()
        site.set("a", "here")
        wait_for(lambda: "kept in the database alone" in site.log(), 60)
        assert not site.agrees() and site.metric("aliquot_etcd_away_seconds") > 0
        server.start()
        server.put("b", "there")
        wait_for(site.agrees, 60)
        assert site.met() == {"a": "here", "b": "there"}
        assert site.log().count("kept in the database alone") == 1
        assert site.metric("aliquot_etcd_away_seconds") == 0
        site.stop()


def test_apart():
    """Both change while they do not see each other."""
    with own_site() as (site, server):
        site.set("", {"ours": "0", "theirs": "0", "both": "0", "gone": "0", "gone-there": "0",
                      "changed-and-gone": "0", "gone-and-changed": "0", "same": "0"})
        assert len(site.met()) == 8
        server.stop()
        wait_for(lambda: not site.agrees(), 60)
        site.set("", {"ours": "1", "both": "1", "changed-and-gone": "1", "same": "2", "new": "1"})
        site.delete("gone")
        site.delete("gone-and-changed")
        site.programs["manager"].kill()
        server.start()
        for key, value in {"theirs": "2", "both": "2", "gone-and-changed": "2", "same": "2",
                           "newer": "2"}.items():
            server.put(key, value)
        server.delete("gone-there")
        server.delete("changed-and-gone")
        server.compact()
        site.programs["manager"].start()
        wait_for(site.is_serving, 60)
        wait_for(site.agrees, 60)
        assert site.met() == {"ours": "1", "theirs": "2", "both": "2", "changed-and-gone": "1",
                              "gone-and-changed": "2", "same": "2", "new": "1", "newer": "2"}
        lines = [line for line in site.log().splitlines() if "both here and in etcd" in line]
        assert len(lines) == 3, lines
        assert any("'both'" in line and "etcd's value replaces" in line for line in lines)


def test_it_hangs():
    with own_site() as (site, server):
        site.set("a", "1")
        assert site.met() == {"a": "1"}
        server.send_signal(signal.SIGSTOP)
        site.set("a", "2")
        wait_for(lambda: not site.agrees(), 60, "the manager to notice")
        site.set("a", "3")
        server.send_signal(signal.SIGCONT)
        wait_for(site.agrees, 60)
        assert site.met() == {"a": "3"}


def test_emptied():
    """What etcd has lost comes back, also where others were faster than its next start was noticed."""
    with own_site() as (site, server):
        tree = {f"k{i}": str(i) for i in range(150)}
        site.set("", tree)
        assert site.met() == tree
        server.empty()
        server.start()
        wait_for(lambda: server.tree() == tree, 60)
        assert site.met() == tree
        assert "has lost its history" in site.log()
        site.programs["manager"].kill()
        server.empty()
        server.start()
        for i in range(200):  # its revision is beyond the one of before
            server.put("noise", str(i))
        server.put("k1", "other")
        site.programs["manager"].start()
        wait_for(site.is_serving, 60)
        wait_for(lambda: server.tree() == {**tree, "noise": "199"}, 60)
        assert site.met() == {**tree, "noise": "199"}


def test_compacted_while_apart():
    """Changes and deletions are believed although etcd has forgotten how they came about."""
    with own_site() as (site, server):
        site.set("", {"a": "1", "b": "1", "c": "1"})
        assert len(site.met()) == 3
        server.put("last", "1")
        wait_for(lambda: site.get("last") == "1", 60)
        wait_for(site.agrees, 60)
        site.met()
        site.programs["manager"].kill()
        server.put("a", "2")
        server.delete("b")
        server.compact()
        site.programs["manager"].start()
        wait_for(site.is_serving, 60)
        wait_for(site.agrees, 60)
        assert site.met() == {"a": "2", "c": "1", "last": "1"}


def test_several_endpoints():
    with etcd.Server() as server, Site(server) as site:
        dead = "http://127.0.0.1:%d" % free_port()
        site.env["ALIQUOT_ETCD_ENDPOINTS"] = f"{dead} {server.url}"
        site.start_manager()
        site.set("a", "1")
        wait_for(lambda: server.tree() == {"a": "1"}, 60)
        done = site.run("aliquot-manager", "--state", site.folder / "manager", "check", "--json")
        site.stop()
    assert dead in done.stdout, done


# ---- logins and TLS ----

def test_a_login(tmp_path):
    secret = tmp_path / "password"
    secret.write_text("first\n")
    with etcd.Server() as server:
        server.use_auth("aliquot", "first")
        with Site(server, ALIQUOT_ETCD_USER="aliquot",
                  ALIQUOT_ETCD_PASSWORD_FILE=str(secret)) as site:
            site.start_manager()
            site.set("a", "1")
            wait_for(lambda: server.tree() == {"a": "1"}, 60)
            server.set_password("aliquot", "second")
            wait_for(lambda: not site.agrees(), 60, "the manager to be refused")
            site.set("a", "2")
            wait_for(lambda: "authentication failed" in site.log() or "invalid" in site.log(), 60,
                     "the manager to say that it is refused")
            secret.write_text("second\n")
            wait_for(lambda: server.tree() == {"a": "2"}, 60)
            wait_for(site.agrees, 60)
            assert "second" not in site.log()
            site.stop()


def test_certificates():
    with etcd.Server(tls=True) as server:
        files = {"ALIQUOT_ETCD_TLS_CA": str(server.folder / "ca.crt"),
                 "ALIQUOT_ETCD_TLS_CERT": str(server.folder / "client.crt"),
                 "ALIQUOT_ETCD_TLS_KEY": str(server.folder / "client.key")}
        with Site(server, **files) as site:
            site.start_manager()
            site.set("a", "1")
            server.put("b", "2")
            wait_for(lambda: server.tree() == site.ours() == {"a": "1", "b": "2"}, 60)
            site.stop()
        with Site(server, ALIQUOT_ETCD_TLS_CA=files["ALIQUOT_ETCD_TLS_CA"]) as site:
            site.start_manager()  # without a certificate of its own
            wait_for(lambda: "kept in the database alone" in site.log(), 60)
            site.stop()


@pytest.mark.parametrize("settings, word", (
    ({"ALIQUOT_ETCD_ENDPOINTS": "127.0.0.1:2379"}, "etcd.endpoints"),
    ({"ALIQUOT_ETCD_ENDPOINTS": "http://u:p@127.0.0.1:2379"}, "etcd.endpoints"),
    ({"ALIQUOT_ETCD_NAMESPACE": "a/b"}, "etcd.namespace"),
    ({"ALIQUOT_ETCD_USER": "u"}, "etcd.user"),
    ({"ALIQUOT_ETCD_TLS_CERT": "/x"}, "etcd.tls-cert"),
    ({"ALIQUOT_ETCD_TLS_CA": "/no/such"}, "/no/such")))
def test_settings_that_cannot_be(settings, word):
    with Cluster(**{"ALIQUOT_ETCD_ENDPOINTS": "http://127.0.0.1:1", **settings}) as site:
        done = site.run("aliquot-manager", "--dev", "--state", site.folder / "manager", "--listen",
                        "127.0.0.1:%d" % free_port(), "--link", site.link)
        assert done.returncode not in (0, -11, -6) and word in done.stderr, done


# ---- kill -9 ----

def test_kill():
    """What was acknowledged here is there, on both sides, or somebody changed it in etcd later."""
    with own_site() as (site, server):
        draw, acknowledged = random.Random(58), {}

        def load(number):
            client = site.client()
            for i in range(1000):
                key = f"{number}-{i % 7}"
                try:
                    if client.post("/config/set", {"key": key, "value": f"{i}"}).status != 200:
                        return
                except GONE:
                    return
                acknowledged[key] = f"{i}"

        for round_ in range(4):
            before = dict(acknowledged)
            threads = [threading.Thread(target=load, args=(f"{round_}{n}",)) for n in range(2)]
            for thread in threads:
                thread.start()
            for i in range(10):
                server.put(f"theirs-{i}", f"{round_}")
            wait_for(lambda: len(acknowledged) >= len(before) + draw.randrange(2, 14), 60)
            site.programs["manager"].kill()
            for thread in threads:
                thread.join()
            site.programs["manager"].start()
            wait_for(site.is_serving, 60)
            wait_for(site.agrees, 60)
            tree = site.met()
            assert {key: tree.get(key) for key in before} == before
            for key, value in acknowledged.items():
                assert int(tree[key]) >= int(value), (key, tree[key], value)
            acknowledged.update({key: tree[key] for key in acknowledged})
            assert {tree[f"theirs-{i}"] for i in range(10)} == {f"{round_}"}
        assert "both here and in etcd" not in site.log()
