# SPDX-License-Identifier: Apache-2.0
"""Copies in a real Redis server: what tools find there, what the next manager has of it, and a
server that is killed, hangs, is emptied, is full, changes its password or is replaced."""

import contextlib
import json
import re
import signal
import subprocess
import time

import pytest

import redis
from client import USER
from cluster import Cluster, batch, running, wait_for, wait_status
from ports import free_port
from runtimes import settings_of
from world import BUILD

if redis.why_not():
    pytest.skip(redis.why_not(), allow_module_level=True)

STATISTICS, RATES, LIVE, STREAM = 0, 1, 2, 4  # databases of Backend.AI
UNFIT = 9

QUICK = {"ALIQUOT_STATISTICS_INTERVAL": "0.3s"}


def cluster_with(server, runtime="process", **settings):
    return Cluster(**{**settings_of(runtime), **QUICK, "ALIQUOT_REDIS_URI": server.uri(),
                      **settings})


def restart(cluster, how="stop"):
    getattr(cluster.programs["manager"], how)()
    cluster.programs["manager"].may_end = False
    cluster.start_manager()


def away(cluster):
    return cluster.client(None).get("/aliquot/v1/health", timeout=5).json["redis_away_since"]


def wait_away(cluster):
    return wait_for(lambda: away(cluster), 30, "Redis to count as away")


def wait_back(cluster):
    wait_for(lambda: not away(cluster), 60, "Redis to be back")


def lines(cluster, text):
    return [line for line in cluster.log_of("manager").splitlines() if text in line]


def is_master(server):
    """A Sentinel that makes a replica the master ends the connections that it has."""
    with contextlib.suppress(ConnectionError):
        return server.ask("ROLE")[0] == b"master"
    return False


def last_seen(server):
    found = server.ask("HGETALL", "agent.last_seen", db=LIVE)
    return dict(zip([name.decode() for name in found[::2]], map(float, found[1::2])))


def events_of(server, session):
    """(name, source, arguments) of a session's own events and of its kernels'."""
    found = []
    for _, fields in server.ask("XRANGE", "events", "-", "+", db=STREAM):
        entry = dict(zip(fields[::2], fields[1::2]))
        found.append((entry[b"name"].decode(), entry[b"source"].decode(),
                      redis.unpack(entry[b"args"])))
    return [event for event in found if event[2][0] in session]


def window(server, key=USER[0]):
    """How many requests are in the window of a key."""
    return server.ask("ZCARD", key, db=RATES)


def remaining(client):
    return int(client.get("/auth?echo=x").headers["X-RateLimit-Remaining"])


# ---- what is there ----

@pytest.mark.gate
@pytest.mark.parametrize("runtime", ["process", "crun"])
def test_keys_of_backendai(runtime):
    """Statistics, heartbeats, requests and events, as Backend.AI's own programs read them."""
    with redis.Server() as server, cluster_with(server, runtime) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        with running(client, "busy", image="host") as session:
            kernel = wait_status(client, session, "RUNNING")["kernels"][0]["id"]
            packed = wait_for(lambda: server.ask("GET", kernel, db=STATISTICS), 30, "figures")
            shown = redis.unpack(packed)
            assert shown["mem"].keys() >= {"current", "capacity", "pct", "unit_hint", "stats.max"}
            assert shown["mem"]["unit_hint"] == "bytes" and shown["mem"]["current"].isdecimal()
            assert shown["cpu_used"]["capacity"] is None
            assert 86000 < server.ask("TTL", kernel, db=STATISTICS) <= 86400
            packed = wait_for(lambda: server.ask("GET", "agent", db=STATISTICS), 30, "figures")
            node = redis.unpack(packed)
            assert node["node"]["mem"]["unit_hint"] == "bytes"
            assert node["devices"]["mem"].keys() == {"root"}
            assert 0 < server.ask("TTL", "agent", db=STATISTICS) <= 120
        seen = wait_for(lambda: last_seen(server), 30, "heartbeats")
        assert seen.keys() == {"agent"} and abs(seen["agent"] - time.time()) < 30
        wait_for(lambda: last_seen(server)["agent"] > seen["agent"], 30, "the next heartbeat")

        found = wait_for(lambda: [event for event in events_of(server, (session, kernel))
                                  if event[0] == "session_terminated"]
                         and events_of(server, (session, kernel)), 30, "events")
        names = [name for name, _, _ in found]
        assert names[0] == "session_enqueued" and {"session_scheduled", "kernel_started",
                                                   "session_started"} < set(names)
        assert names.index("session_started") < names.index("session_terminating")
        by_name = {name: (source, args) for name, source, args in found}
        assert by_name["session_started"] == ("manager", [session, "", ""])
        source, args = by_name["kernel_terminated"]
        assert source == "agent" and args[:2] == [kernel, "force-terminated"] and len(args) == 3
        assert by_name["session_terminated"] == ("manager", [session, "force-terminated"])

        user = cluster.client(USER)
        first = remaining(user)
        wait_for(lambda: window(server) == 1, 10, "the window")
        assert remaining(user) == first - 1
        wait_for(lambda: window(server) == 2, 10, "the second request")
        assert 0 < server.ask("TTL", USER[0], db=RATES) <= 901
        cluster.programs["agent"].kill()
        cluster.programs["agent"].may_end = True
        wait_for(lambda: not last_seen(server), 60, "the lost agent to go")
        assert len(lines(cluster, "using Redis server")) == 1 and not lines(cluster, "refuses")
        cluster.stop()


def test_what_the_next_manager_has():
    """Requests that were counted still are, and a signature that was accepted is not again; also
    after kill -9. After FLUSHALL both start from nothing."""
    with redis.Server() as server, cluster_with(server) as cluster:
        cluster.start_manager()
        user = cluster.client(USER)
        sent = user.headers("POST", "/auth", "application/json")
        assert user.raw("POST", "/auth", b'{"echo":"x"}', sent).status == 200
        left = [remaining(user) for _ in range(5)][-1]
        key = wait_for(lambda: server.ask("KEYS", "aliquot:signatures:*", db=RATES), 10, "a record")
        assert 0 < server.ask("TTL", key[0], db=RATES) <= 1920
        wait_for(lambda: window(server) == 6, 10, "the window")
        for how in ("kill", "stop"):
            restart(cluster, how)
            assert remaining(user) == left - 1, how
            left -= 1
            again = user.raw("POST", "/auth", b'{"echo":"x"}', sent)
            assert (again.status, again.slug) == (401, "auth-failed"), how
            wait_for(lambda: window(server) >= 7, 10, "the window")
        assert lines(cluster, "loaded 1 rate windows and 1 signatures") or lines(
            cluster, "loaded 2 rate windows"), cluster.log_of("manager")

        server.ask("FLUSHALL")
        cluster.programs["manager"].kill()
        server.ask("FLUSHALL")
        cluster.programs["manager"].may_end = False
        cluster.start_manager()
        assert remaining(user) > left
        assert user.raw("POST", "/auth", b'{"echo":"x"}', sent).status == 200
        cluster.stop()


# ---- a server that is away ----

@pytest.mark.gate
def test_killed():
    """The manager goes on, says it once, and everything is there again when the server is."""
    port = free_port()
    with redis.Server() as server, cluster_with(server) as cluster:
        cluster.start_manager(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{port}")
        wait_back(cluster)
        cluster.start_agent()
        metrics = redis_metrics(port)
        assert metrics["aliquot_redis_away_seconds"] == 0
        assert metrics["aliquot_redis_commands_total"] > 0
        server.kill()
        wait_away(cluster)
        client = cluster.client()
        reply = client.post("/session", batch("without", "true"))
        assert reply.status == 201, reply
        assert wait_status(client, reply.json["sessionId"], "TERMINATED")["result"] == "SUCCESS"
        wait_for(lambda: redis_metrics(port)["aliquot_redis_queue"] > 0, 10, "a queue")
        assert redis_metrics(port)["aliquot_redis_away_seconds"] > 0
        assert len(lines(cluster, "is not available")) == 1
        shown = doctor(cluster, "manager", "cluster")
        assert shown["manager.redis"]["level"] == "warning"
        assert "refused" in shown["manager.redis"]["text"], shown["manager.redis"]
        assert shown["cluster.redis"]["level"] == "warning" and shown["cluster.redis"]["remedy"]

        server.start()
        wait_back(cluster)
        wait_for(lambda: last_seen(server), 30, "heartbeats")
        wait_for(lambda: server.ask("GET", "agent", db=STATISTICS), 30, "figures")
        wait_for(lambda: server.ask("EXISTS", "events", db=STREAM), 30, "what waited")
        assert len(lines(cluster, "is available again")) == 1
        shown = doctor(cluster, "manager", "cluster")
        assert shown["manager.redis"]["level"] == "ok" and "cluster.redis" not in shown
        cluster.stop()


def redis_metrics(port):
    text = redis.fetch(port, "/metrics")
    return {name: float(value) for name, value in
            re.findall(r"^(aliquot_redis_\w+) (\S+)$", text, re.MULTILINE)}


def doctor(cluster, *parts):
    done = subprocess.run([BUILD / "aliquot", "doctor", *parts, "-o", "json"],
                          env={**cluster.env, **cluster.cli_env()}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode in (0, UNFIT), done
    return {found["id"]: found for found in json.loads(done.stdout)}


def test_started_without_a_server():
    server = redis.Server()
    with server.kept(), cluster_with(server) as cluster:
        cluster.start_manager()
        assert lines(cluster, "loaded only 0 rate windows")
        user = cluster.client(USER)
        assert user.get("/auth?echo=x").status == 200
        server.start()
        wait_back(cluster)
        wait_for(lambda: window(server) == 1, 10, "what was counted before")
        cluster.stop()


def test_hangs():
    """No request waits for it; it is given up, and used again when it answers. A manager that
    starts meanwhile starts without it."""
    with redis.Server() as server, cluster_with(server) as cluster:
        cluster.start_manager()
        wait_back(cluster)
        server.process.send_signal(signal.SIGSTOP)
        user = cluster.client(USER)
        wait_for(lambda: user.get("/auth?echo=x", timeout=5).status == 200 and away(cluster), 60,
                 "the server to be given up")
        assert lines(cluster, "did not answer within 5 s")
        restart(cluster)
        assert lines(cluster, "loaded only 0 rate windows")
        assert user.get("/auth?echo=x", timeout=5).status == 200
        server.process.send_signal(signal.SIGCONT)
        wait_back(cluster)
        wait_for(lambda: window(server) == 1, 10, "the window")
        cluster.stop()


def test_emptied():
    with redis.Server() as server, cluster_with(server) as cluster:
        cluster.start_manager()
        user = cluster.client(USER)
        for _ in range(3):
            assert user.get("/auth?echo=x").status == 200
        wait_for(lambda: window(server) == 3, 10, "the window")
        server.ask("FLUSHALL")
        wait_for(lambda: window(server) == 3, 10, "the window again")
        assert not away(cluster) and not lines(cluster, "is not available")
        cluster.stop()


def test_full():
    with redis.Server("maxmemory-policy noeviction") as server, cluster_with(server) as cluster:
        cluster.start_manager()
        wait_back(cluster)
        server.ask("CONFIG", "SET", "maxmemory", "1")
        wait_away(cluster)
        user = cluster.client(USER)
        assert user.get("/auth?echo=x").status == 200
        assert "OOM" in doctor(cluster, "manager")["manager.redis"]["text"]
        time.sleep(3)
        assert len(lines(cluster, "OOM")) == 1, "said once"
        server.ask("CONFIG", "SET", "maxmemory", "0")
        wait_back(cluster)
        wait_for(lambda: window(server) == 1, 10, "what was refused")
        cluster.stop()


def test_heartbeats_are_replaced_in_one_piece():
    """No reader finds the hash missing or empty: all that happens to the key is that another hash takes
    its place, also when the manager's connection is lost between two commands."""
    with redis.Server() as server, cluster_with(server) as cluster:
        cluster.start_manager()
        cluster.start_agent("agent")
        wait_for(lambda: last_seen(server), 30, "heartbeats")
        with server.changes_of("agent.last_seen", db=LIVE) as next_change:
            changes = [next_change()]
            assert server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") > 0
            changes += [next_change() for _ in range(2)]
        assert changes == ["rename_to"] * 3
        cluster.stop()


def test_heartbeats_that_are_refused():
    """The former ones stay for readers, whole, and the next ones come once they are accepted; a server
    that refuses transactions as well makes no difference."""
    with redis.Server() as server, cluster_with(server) as cluster:
        cluster.start_manager()
        cluster.start_agent("agent")
        seen = wait_for(lambda: last_seen(server), 30, "heartbeats")
        server.ask("ACL", "SETUSER", "default", "-hset", "-multi")
        wait_for(lambda: lines(cluster, "refuses a command: NOPERM"), 30, "a refused command")
        assert last_seen(server).keys() == seen.keys()
        server.ask("ACL", "SETUSER", "default", "+hset", "+multi")
        refused = last_seen(server)["agent"]
        wait_for(lambda: last_seen(server)["agent"] > refused, 30, "the next heartbeat")
        cluster.stop()


def test_password():
    """A wrong one is said once, without the password, and the file is read again each time."""
    with redis.Server(password="right-one") as server:
        file = server.folder / "password"
        file.write_text("wrong-one\n")
        with cluster_with(server, ALIQUOT_REDIS_URI=f"redis://{server.address}",
                          ALIQUOT_REDIS_PASSWORD_FILE=str(file)) as cluster:
            cluster.start_manager()
            wait_for(lambda: lines(cluster, "it refuses the login: WRONGPASS"), 10, "the log")
            time.sleep(2)
            assert len(lines(cluster, "is not available")) == 1
            assert "WRONGPASS" in doctor(cluster, "manager")["manager.redis"]["text"]
            file.write_text("right-one\n")
            wait_back(cluster)
            assert "right-one" not in cluster.log_of("manager")
            assert "wrong-one" not in cluster.log_of("manager")
            cluster.stop()


def test_replaced_by_sentinel():
    """The replica that Sentinel puts in the place of its master gets what there is."""
    with redis.Server() as master, redis.Server(f"replicaof 127.0.0.1 {master.port}") as replica, \
            redis.Sentinel("main", master) as sentinel:
        dead = free_port()
        with cluster_with(master, ALIQUOT_REDIS_URI="redis+sentinel://"
                          f"127.0.0.1:{dead},{sentinel.address}/main?db=0") as cluster:
            cluster.start_manager()
            wait_back(cluster)
            user = cluster.client(USER)
            for _ in range(3):
                assert user.get("/auth?echo=x").status == 200
            wait_for(lambda: window(replica) == 3, 20, "the copy of the window")
            wait_for(lambda: sentinel.ask("SENTINEL", "replicas", "main"), 30,
                     "the Sentinel to know the replica")
            master.kill()
            wait_for(lambda: is_master(replica), 60, "the failover")
            assert user.get("/auth?echo=x").status == 200
            wait_back(cluster)
            wait_for(lambda: window(replica) == 4, 30, "the window")
            cluster.programs["manager"].kill()
            cluster.programs["manager"].may_end = False
            cluster.start_manager()
            assert lines(cluster, f"from Redis server {replica.address}")
            cluster.stop()


# ---- settings ----

@pytest.mark.parametrize("setting, value, words", [
    ("URI", "http://:SECRET@h", "redis.uri is not usable: it does not begin with redis://"),
    ("URI", "redis://:SECRET@h/x", "'x' is not a number from 0 to"),
    ("CA", "/nowhere/ca.pem", "redis.ca needs TLS"),
])
def test_settings_that_are_refused(setting, value, words):
    server = redis.Server()
    with server.kept(), cluster_with(server, **{"ALIQUOT_REDIS_" + setting: value}) as cluster:
        done = cluster.run("aliquot-manager", "--dev", "--state", cluster.folder / "manager",
                           "--listen", "%s:%d" % cluster.address, "--link", cluster.link)
        assert done.returncode and words in done.stderr and "SECRET" not in done.stderr, done


def test_tls(tmp_path):
    """rediss://, with the site's own authority; another one's server is refused."""
    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", f"/CN={name}", "-days", "2", "-keyout", tmp_path / f"{name}.key",
                "-out", tmp_path / f"{name}.pem")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            "/CN=redis", "-keyout", tmp_path / "server.key", "-out", tmp_path / "server.csr")
    (tmp_path / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", tmp_path / "server.csr", "-CA", tmp_path / "ca.pem", "-CAkey",
            tmp_path / "ca.key", "-CAcreateserial", "-days", "2", "-extfile", tmp_path / "ext",
            "-out", tmp_path / "server.pem")
    port = free_port()
    with redis.Server(f"tls-port {port}", f"tls-cert-file {tmp_path}/server.pem",
                      f"tls-key-file {tmp_path}/server.key",
                      f"tls-ca-cert-file {tmp_path}/ca.pem", "tls-auth-clients no") as server:
        uri = f"rediss://127.0.0.1:{port}"
        with cluster_with(server, ALIQUOT_REDIS_URI=uri,
                          ALIQUOT_REDIS_CA=str(tmp_path / "ca.pem")) as cluster:
            cluster.start_manager()
            wait_back(cluster)
            wait_for(lambda: server.ask("GET", "aliquot:manager", db=RATES), 10, "the mark")
            cluster.env["ALIQUOT_REDIS_CA"] = str(tmp_path / "other.pem")
            assert doctor(cluster, "manager")["manager.redis"]["level"] == "warning"
            restart(cluster)
            wait_away(cluster)
            assert "certificate" in lines(cluster, "is not available")[0]
            cluster.stop()


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
