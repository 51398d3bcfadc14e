# SPDX-License-Identifier: Apache-2.0
"""The manager and its server: who writes, what a server that is away or dies leaves, what is
refused."""

import concurrent.futures
import contextlib
import json
import re
import shutil
import signal
import time
import urllib.request
from datetime import datetime

import pytest

from cluster import ENDED, GONE, WAITS, Cluster, batch, wait_for, wait_status
from ports import free_port
from pgha import pooler

SESSIONS = "/aliquot/v1/sessions"


def start(cluster):
    cluster.start_manager()
    cluster.start_agent()
    return cluster.client()


def submit(client, name, timeout=60, **more):
    reply = client.post("/session", {**batch(name, "true"), **more}, timeout=timeout)
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def run_to_end(client, name):
    assert wait_status(client, submit(client, name), *ENDED)["status"] == "TERMINATED"


def refused_start(cluster, state="second", **settings):
    """What a manager says that does not start."""
    done = cluster.run("aliquot-manager", "--dev", "--state", cluster.folder / state,
                       "--listen", f"127.0.0.1:{free_port()}", "--link",
                       f"127.0.0.1:{free_port()}", **settings)
    assert done.returncode == 1, done
    return done.stderr


# ---- who writes ----

@pytest.mark.gate
def test_one_manager(cluster):
    client = start(cluster)
    said = refused_start(cluster)
    assert "aliquot-manager join" in said, said
    said = refused_start(cluster, state="manager")
    assert "another manager uses the state folder" in said, said
    run_to_end(client, "goes-on")
    cluster.stop()


HELD = "SELECT is_held FROM manager_lease"
SESSIONS_OF_MANAGERS = ("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = 'cluster'"
                        " AND application_name LIKE 'aliquot:%'")


def test_sessions_are_named_and_the_lead_is_given_up(cluster, server):
    """By these names standbys see that a manager is gone; after an orderly stop they need not."""
    start(cluster)
    [name] = server.run("SELECT 'aliquot:' || incarnation FROM manager_lease", "cluster")
    used = server.run("SELECT DISTINCT application_name FROM pg_stat_activity"
                      " WHERE datname = 'cluster' AND pid <> pg_backend_pid()")
    assert f"{name} writer" in used and all(one.startswith(name + " ") for one in used), used
    assert server.run(HELD, "cluster") == ["1"]
    cluster.programs["manager"].stop()
    assert server.run(HELD, "cluster") == ["0"]
    assert server.run(SESSIONS_OF_MANAGERS) == ["0"]
    cluster.start_manager()
    assert server.run(HELD, "cluster") == ["1"]
    cluster.stop()


def test_killed_and_started(cluster, server):
    """Nobody gave the lead up: the next one sees that its sessions are gone."""
    client = start(cluster)
    run_to_end(client, "before")
    epoch = server.run("SELECT epoch FROM manager_lease", "cluster")
    cluster.programs["manager"].kill()
    cluster.start_manager()
    assert server.run("SELECT epoch FROM manager_lease", "cluster") > epoch
    run_to_end(client, "after")
    cluster.stop()


def test_newer_database(cluster, server):
    """A manager of a later version led before: this one goes on unless that one forbade it."""
    run_to_end(start(cluster), "before")
    cluster.programs["manager"].stop()
    server.run("INSERT INTO schema_migrations VALUES (9999, '9999_later', 'x', 1);"
               "ALTER TABLE sessions ADD COLUMN later INTEGER NOT NULL DEFAULT 0", "cluster")
    cluster.start_manager()
    run_to_end(cluster.client(), "after")
    cluster.check_audits()
    cluster.stop()


def test_sleeper_is_taken_over(cluster):
    """Stopped, replaced, and awake again: it writes nothing, says why, and ends."""
    client = start(cluster)
    run_to_end(client, "before")
    sleeper = cluster.programs["manager"]
    sleeper.signal(signal.SIGSTOP)
    done = cluster.run("aliquot-manager", "db", "take-over", "--state", cluster.folder / "manager")
    assert done.returncode == 0, done
    sleeper.may_end = True
    shutil.copytree(cluster.folder / "manager", cluster.folder / "second")
    address = cluster.address
    cluster.address = ("127.0.0.1", free_port())
    cluster.link = "127.0.0.1:%d" % free_port()
    cluster.programs["asleep"] = sleeper
    cluster.start_manager("--state", cluster.folder / "second")
    assert cluster.client().get(SESSIONS + "/before").json["status"] == "TERMINATED"
    sleeper.signal(signal.SIGCONT)
    cluster.address, other = address, cluster.address
    with contextlib.suppress(*GONE):
        reply = cluster.client().post("/session", batch("too-late", "true"), timeout=60)
        assert reply.status == 503, reply
    assert sleeper.process.wait(60) == 1
    assert "another manager has taken the database over" in cluster.log_of("manager")
    cluster.address = other
    assert cluster.client().get(SESSIONS + "/too-late").status == 404
    cluster.check_audits()
    cluster.stop()


# ---- a server that dies, or is away ----

@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_restarted_under_load(cluster, server, how):
    """What was answered is there, each once; who asked meanwhile waited and got an answer."""
    client = start(cluster)
    run_to_end(client, "warm")

    def submit_many(worker):
        return [submit(cluster.client(), f"load-{worker}-{i}") for i in range(25)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(submit_many, worker) for worker in range(4)]
        for _ in range(3):
            time.sleep(0.3)
            server.stop(how)
            server.start()
        made = [session for future in futures for session in future.result()]
    wait_for(lambda: not cluster.live_sessions(), 120, "all to end")
    assert sorted(s["id"] for s in cluster.sessions()
                  if s["name"].startswith("load-")) == sorted(made)
    assert all(s["status"] == "TERMINATED" for s in cluster.sessions())
    cluster.check_audits()
    cluster.stop()


def test_away(cluster, server):
    """Changes wait, then are refused with a hint when to try again; what runs goes on."""
    client = start(cluster)
    reply = client.post("/session", batch("runs", "sleep 600"))
    wait_status(client, reply.json["sessionId"], "RUNNING")
    server.stop(signal.SIGKILL)
    began = time.monotonic()
    reply = client.post("/session", batch("refused", "true"), timeout=90)
    assert reply.status == 503 and int(reply.headers["Retry-After"]) > 0, reply
    assert time.monotonic() - began > 20
    assert "database" in reply.json["msg"], reply
    assert client.get(SESSIONS, timeout=60).status == 503
    server.start()
    wait_for(lambda: client.get(SESSIONS, timeout=60).status == 200, 60, "lists again")
    assert client.get(SESSIONS + "/runs").json["status"] == "RUNNING"
    assert client.get(SESSIONS + "/refused").status == 404
    run_to_end(client, "afterwards")
    cluster.check_audits()
    cluster.stop()


def stale_since(reply):
    """When an answer says that the database has been away since, or None."""
    return reply.headers["Aliquot-Stale"]


def test_reads_say_what_is_stale(server):
    """What is in memory is answered with since when; what is not says that the database is away."""
    metrics = f"127.0.0.1:{free_port()}"

    def away_seconds():
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"http://{metrics}/metrics") as reply:
            shown = reply.read().decode()
        return float(re.search("^aliquot_database_away_seconds ([0-9.e+-]+)$", shown, re.M)[1])

    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster"),
                 ALIQUOT_METRICS_LISTEN=metrics) as cluster:
        client = start(cluster)
        runs = SESSIONS + "/" + submit(client, "waits", **WAITS)
        assert stale_since(client.get(runs)) is None
        assert client.get("/aliquot/v1/health").json["database_away_since"] is None
        assert away_seconds() == 0
        assert "database" not in cluster.cli("session", "info", "waits").stderr
        server.stop(signal.SIGKILL)
        reply = wait_for(lambda: (reply := client.get(runs)) and stale_since(reply) and reply, 60,
                         "the manager to notice")
        assert reply.status == 200 and reply.json["name"] == "waits", reply
        since = datetime.fromisoformat(stale_since(reply))
        health = client.get("/aliquot/v1/health").json["database_away_since"]
        assert datetime.fromisoformat(health) == since
        assert away_seconds() > 0
        listed = client.get(SESSIONS + "?status=TERMINATED", timeout=60)
        assert (listed.status, listed.slug) == (503, "database-away"), listed
        assert int(listed.headers["Retry-After"]) > 0 and stale_since(listed) == stale_since(reply)
        assert str(server.folder) not in listed.body.decode(), "where it is is not everybody's"
        shown = cluster.cli("session", "info", "waits", "-o", "json")
        assert shown.returncode == 0 and json.loads(shown.stdout)["name"] == "waits", shown
        [line] = shown.stderr.splitlines()
        assert f"has not reached its database since {since:%Y-%m-%d %H:%M:%S} (" in line, line
        refused = cluster.cli("session", "history", "waits")
        assert refused.returncode != 0 and "database" in refused.stderr, refused
        found = json.loads(cluster.cli("doctor", "cluster", "-o", "json").stdout)
        assert "has not reached its database since" in str(found), found
        server.start()
        wait_for(lambda: stale_since(client.get(runs)) is None, 60, "the manager to notice")
        assert client.get("/aliquot/v1/health").json["database_away_since"] is None
        assert away_seconds() == 0
        assert client.get(SESSIONS + "?status=TERMINATED").status == 200
        log = cluster.log_of("manager")
        assert str(server.folder) in log and "the database server is back after" in log, log
        assert client.delete("/session/waits").status == 200
        cluster.stop()


def test_answer_outlives_the_server(cluster, server):
    """The server dies under a request, whose answer is lost: sent again it gets that answer."""
    client = start(cluster)
    run_to_end(client, "warm")
    body = json.dumps({**batch("once", "true"), "reuse": False}).encode()

    def post(key, timeout):
        return client.raw("POST", "/session", body, {
            **client.headers("POST", "/session", "application/json"), "Idempotency-Key": key},
            timeout)

    for i in range(5):
        with contextlib.suppress(TimeoutError):
            post(f"key-{i}", 0.01 * (i + 1))
        server.stop(signal.SIGKILL)
        server.start()
        replies = [post(f"key-{i}", 60) for _ in range(2)]
        assert [reply.status for reply in replies] == [201, 201], replies
        assert replies[0].body == replies[1].body
        wait_status(client, replies[0].json["sessionId"], *ENDED)
    assert sum(session["name"] == "once" for session in cluster.sessions()) == 5
    cluster.check_audits()
    cluster.stop()


# ---- standbys ----

def two_hosts(server, standby):
    return (f"postgresql:///cluster?host={server.folder},{standby.folder}&port=5432,5432"
            "&user=aliquot&target_session_attrs=read-write")


def test_standby_takes_over(server, standby):
    """Synchronous: nothing is lost, and the manager goes on there by itself."""
    standby.start()
    server.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
    server.run("SELECT pg_reload_conf()")
    with Cluster(ALIQUOT_MANAGER_DATABASE=two_hosts(server, standby)) as cluster:
        client = start(cluster)
        made = [submit(client, f"kept-{i}") for i in range(20)]
        server.stop(signal.SIGKILL)
        standby.promote()
        run_to_end(client, "on-the-standby")
        wait_for(lambda: not cluster.live_sessions(), 60, "all to end")
        assert {session["id"] for session in cluster.sessions()} > set(made)
        cluster.check_audits()
        cluster.stop()


def test_standby_that_lagged(server, standby):
    """Asynchronous, and cut off before: the manager says that commits are missing, and ends."""
    standby.start()
    with Cluster(ALIQUOT_MANAGER_DATABASE=two_hosts(server, standby)) as cluster:
        client = start(cluster)
        run_to_end(client, "known")
        standby.stop()
        for i in range(5):
            submit(client, f"lost-{i}")
        server.stop(signal.SIGKILL)
        standby.start()
        standby.promote()
        manager = cluster.programs["manager"]
        manager.may_end = True
        with contextlib.suppress(*GONE):
            assert client.post("/session", batch("too-late", "true"), timeout=90).status == 503
        assert manager.process.wait(90) == 1
        lacks = re.search("lacks ([0-9]+) acknowledged commits",
                          cluster.log_of("manager"))
        assert lacks and int(lacks[1]) >= 5, cluster.log_of("manager")
        cluster.start_manager()
        assert cluster.client().get(SESSIONS + "/known").json["status"] == "TERMINATED"
        cluster.stop()


# ---- poolers ----

def test_pooler_of_sessions(server):
    with pooler(server, "session") as uri, Cluster(ALIQUOT_MANAGER_DATABASE=uri) as cluster:
        client = start(cluster)
        run_to_end(client, "through")
        assert int(server.run(SESSIONS_OF_MANAGERS)[0]) >= 1
        cluster.programs["manager"].kill()
        wait_for(lambda: server.run(SESSIONS_OF_MANAGERS) == ["0"], 30, "the sessions to go")
        cluster.start_manager()
        run_to_end(client, "through-again")
        cluster.stop()


def test_sleeper_behind_a_pooler(server):
    """Its sessions are found by their names, whoever holds the connections."""
    with pooler(server, "session") as uri, Cluster(ALIQUOT_MANAGER_DATABASE=uri) as cluster:
        run_to_end(start(cluster), "before")
        sleeper = cluster.programs["manager"]
        sleeper.signal(signal.SIGSTOP)
        done = cluster.run("aliquot-manager", "db", "take-over", "--state",
                           cluster.folder / "manager")
        assert done.returncode == 0, done
        assert server.run(SESSIONS_OF_MANAGERS) == ["0"]
        assert server.run(HELD, "cluster") == ["0"]
        sleeper.may_end = True
        sleeper.signal(signal.SIGCONT)
        assert sleeper.process.wait(60) == 1
        assert "another manager has taken the database over" in cluster.log_of("manager")
        cluster.start_manager()
        run_to_end(cluster.client(), "after")
        cluster.stop()


def test_pooler_of_transactions(server):
    with pooler(server, "transaction") as uri, Cluster() as cluster:
        said = refused_start(cluster, ALIQUOT_MANAGER_DATABASE=uri)
        assert "pool_mode" in said and "session" in said, said


# ---- what is warned of ----

def test_risks_are_named(server, standby):
    """Settings by which acknowledged commits may get lost, at each start."""
    standby.start()
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        server.run(f"ALTER SYSTEM SET {setting} = off")
    server.run("SELECT pg_reload_conf()")
    wait_for(lambda: server.run("SELECT COUNT(*) FROM pg_stat_replication") == ["1"], 30,
             "the standby")
    metrics = f"127.0.0.1:{free_port()}"
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster"),
                 ALIQUOT_METRICS_LISTEN=metrics) as cluster:
        cluster.start_manager()
        said = cluster.log_of("manager")
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"http://{metrics}/metrics") as reply:
            shown = reply.read().decode()
        assert shown.count("\naliquot_database_risk{") == 4, shown
        assert 'aliquot_database_risk{risk="fsync is off"} 1' in shown, shown
        checked = cluster.run("aliquot-manager", "check", "--state", cluster.folder / "manager")
        assert "PostgreSQL" in checked.stdout and "fsync is off" in checked.stdout, checked
        info = cluster.run("aliquot-manager", "db", "info", "--state", cluster.folder / "manager")
        assert info.stdout.count("\nrisk ") == 4, info
        for word in ("synchronous_commit is off", "full_page_writes is off",
                     "a standby is asynchronous", "fsync is off"):
            assert word in said, said
        cluster.stop()


SECRETS = ("aliquot:hush@{}", "{}&password=hush", "{}&pass%77ord=%68ush&application_name=x",
           "aliquot:hush?hush@{}")


def with_secret(where, secret):
    scheme, rest = where.split("://")
    return f"{scheme}://{secret.format(rest)}"


@pytest.mark.gate
def test_passwords_are_not_shown(shared):
    shared.run("CREATE DATABASE shown")
    where = shared.uri("shown")
    with Cluster(ALIQUOT_MANAGER_DATABASE=where) as cluster:
        cluster.start_manager()
        for secret in (*SECRETS, "{}&sslpassword=hush"):
            done = cluster.run("aliquot-manager", "db", "info", "--state",
                               cluster.folder / "manager",
                               ALIQUOT_MANAGER_DATABASE=with_secret(where, secret))
            assert done.returncode == 0 and not re.search("(h|%68)ush", done.stdout), done
        cluster.stop()


@pytest.mark.gate
def test_empty_database(shared):
    """As it was just made: nothing is wrong with it."""
    shared.run("CREATE DATABASE empty")
    with Cluster(ALIQUOT_MANAGER_DATABASE=shared.uri("empty")) as cluster:
        info = cluster.run("aliquot-manager", "db", "info", "--state", cluster.folder / "manager")
        assert info.returncode == 0 and "schema      none" in info.stdout, info
        checked = cluster.run("aliquot-manager", "check", "--state", cluster.folder / "manager")
        assert '"PostgreSQL ' in checked.stdout, checked


def test_shell_gets_no_password_as_a_word(shared):
    """A program in psql's place says what it was given."""
    where = shared.uri("none")
    with Cluster() as cluster:
        psql = cluster.folder / "bin" / "psql"
        psql.parent.mkdir()
        psql.write_text('#!/bin/sh\necho "$PGPASSWORD"\necho "$@"\n')
        psql.chmod(0o755)
        words = ["aliquot-manager", "db", "shell", "--state", cluster.folder / "manager"]
        path = {"PATH": f"{psql.parent}:/usr/bin:/bin"}
        for secret in SECRETS:
            done = cluster.run(*words, **path,
                               ALIQUOT_MANAGER_DATABASE=with_secret(where, secret))
            password, given = done.stdout.splitlines()
            assert done.returncode == 0 and password in ("hush", "hush?hush"), done
            assert not re.search("(h|%68)ush", given) and "user=aliquot" in given, done
            assert "default_transaction_read_only%3Don" in given, done
        done = cluster.run(*words, **path, ALIQUOT_MANAGER_DATABASE=where + "&options=-c%20a.b%3D1")
        assert done.stdout.endswith("options=-c%20a.b%3D1%20-c%20default_transaction_read_only"
                                    "%3Don\n"), done
        done = cluster.run(*words, **path, ALIQUOT_MANAGER_DATABASE=where + "&sslpassword=hush")
        assert done.returncode == 1 and "service file" in done.stderr, done


# ---- what is refused ----

def test_databases_that_will_not_do(shared):
    shared.run("CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
    shared.run("CREATE DATABASE foreign_one; CREATE ROLE reader LOGIN;")
    shared.run("CREATE DATABASE newer")
    with Cluster() as cluster:
        for where, expected in {
                shared.uri("latin"): "LATIN1; make one with createdb --encoding UTF8",
                shared.uri("none"): 'database "none" does not exist',
                shared.uri("foreign_one").replace("user=aliquot", "user=reader"):
                    "permission denied",
                shared.uri("foreign_one").replace("user=aliquot", "user=nobody"): "nobody",
                "postgresql://127.0.0.1:1/x?connect_timeout=2": "cannot be reached",
                "postgresql://[": "cannot be reached"}.items():
            said = refused_start(cluster, ALIQUOT_MANAGER_DATABASE=where)
            assert expected in said, said
        with Cluster(ALIQUOT_MANAGER_DATABASE=shared.uri("newer")) as other:
            other.start_manager()
            other.stop()
            shared.run("INSERT INTO schema_migrations VALUES (9999, '9999_later', 'x', 1);"
                       "UPDATE schema_readers SET oldest = 9999", "newer")
            assert "newer program" in refused_start(other, "manager")


def test_order_of_names_is_that_of_bytes(shared):
    """Whatever the database was made with."""
    shared.run("CREATE DATABASE english LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C.UTF-8'"
               " TEMPLATE template0")
    with Cluster(ALIQUOT_MANAGER_DATABASE=shared.uri("english")) as cluster:
        cluster.start_manager()
        client = cluster.client()
        for name in ("beta", "Alpha", "alpha", "Beta"):
            submit(client, name)
        listed = client.get(SESSIONS + "?all=true&order=name").json["items"]
        assert [s["name"] for s in listed] == ["Alpha", "Beta", "alpha", "beta"]
        cluster.stop()
