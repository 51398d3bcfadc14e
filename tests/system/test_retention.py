# SPDX-License-Identifier: Apache-2.0
"""Old sessions and rows are removed, as settings want it; what is needed stays."""

import json
import time

import pytest

from cluster import ENDED, WAITS, Cluster, batch, wait_for, wait_status
from database import COUNT_ENDED, sql
from terminal import Terminal
from world import BUILD

pytestmark = pytest.mark.engines

RETENTION = "/aliquot/v1/retention"
DAY = 86400
MANY = 100000


def running(**settings):
    return Cluster(ALIQUOT_RETENTION_SESSIONS="30d", **settings)


def run_ended(client, name):
    session = client.post("/session", batch(name, "true")).json["sessionId"]
    wait_status(client, session, *ENDED)
    return session


def entities(client, query="?count=false"):
    reply = client.get(RETENTION + query)
    assert reply.status == 200, reply
    return {item["entity"]: item for item in reply.json["items"]}


def cli_items(cluster, *words):
    done = cluster.cli("admin", "retention", *words, "-o", "json")
    assert done.returncode == 0, done
    shown = json.loads(done.stdout)
    return {item["entity"]: item for item in shown}


def wait_done(client, entity="sessions"):
    return wait_for(lambda: (shown := entities(client)[entity]) and not shown["running"] and shown,
                    600, f"{entity} to be gone through")


@pytest.fixture
def later():
    """40 days after the ends of 'one', for which 'waits' waits, of 'two' and of 'three'."""
    with running() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        for name in ("one", "two", "three"):
            run_ended(client, name)
        reply = client.post("/session", batch("waits", "true", **WAITS, dependencies=["one"]))
        assert reply.status == 201, reply
        cluster.jump(wall=40 * DAY)
        client.shift = 40 * DAY
        yield cluster, client
        reply = client.get("/aliquot/v1/audit")
        assert reply.json == {"clean": True, "findings": []}, reply


@pytest.mark.gate
def test_ended_sessions_are_removed(later):
    cluster, client = later
    shown = cli_items(cluster, "ls")
    assert list(shown) == ["sessions", "history", "usage", "agent-history", "series",
                           "audit-log", "error-logs", "events"]
    sessions = shown["sessions"]
    assert (sessions["keep"], sessions["rows"], sessions["removable"]) == ("30d", 3, 2), sessions
    assert sessions["oldest_at"] and sessions["last_run_at"] is None and not sessions["running"]
    assert shown["history"]["keep"] == "forever" and shown["history"]["rows"] > 3
    planned = cli_items(cluster, "run", "--dry-run")
    assert planned["sessions"]["removable"] == 2 and "history" not in planned
    planned = cli_items(cluster, "run", "--dry-run", "--keep", "50d", "--entity", "sessions")
    assert list(planned) == ["sessions"] and planned["sessions"]["removable"] == 0
    asked = cluster.cli("admin", "retention", "run")
    assert asked.returncode == 2 and "add --yes" in asked.stderr, asked
    assert entities(client)["sessions"]["last_run_at"] is None

    done = cluster.cli("admin", "retention", "run", "--yes")
    assert done.returncode == 0 and "db vacuum" in done.stderr, done
    assert client.get("/aliquot/v1/sessions/two").status == 404
    assert client.get("/aliquot/v1/sessions/one").json["status"] == "TERMINATED"
    assert client.get("/aliquot/v1/sessions/waits").json["status"] == "PENDING"
    sessions = cli_items(cluster, "ls")["sessions"]
    assert (sessions["rows"], sessions["removable"], sessions["last_removed"]) == (1, 0, 2)
    assert sessions["last_run_ended_at"] and not sessions["running"]
    assert cli_items(cluster, "ls")["usage"]["rows"] >= 4  # what the two held: cpu and mem

    assert client.delete("/session/waits").status == 200
    wait_status(client, "waits", *ENDED)
    assert client.post(RETENTION + "/run", {"entities": ["sessions"]}).status == 202
    assert wait_done(client)["last_removed"] == 1
    assert client.get("/aliquot/v1/sessions/one").status == 404


@pytest.mark.gate
def test_a_terminal_is_asked(later):
    cluster, client = later
    terminal = Terminal(str(BUILD / "aliquot"), "admin", "retention", "run", "--entity", "sessions",
                        env={**cluster.env, **cluster.cli_env()}, columns=200)
    terminal.expect(b"Remove old rows for good, 2 of sessions?")
    terminal.send(b"n\n")
    assert terminal.wait() == 1
    assert entities(client)["sessions"]["last_run_at"] is None


def test_usage_of_removed_sessions_counts_for_fair_share():
    with running() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        group = "/aliquot/v1/resource-groups/default"
        wanted = {"scheduler": "fair-share",
                  "fair_share": {"lookback_days": 100, "half_life_days": 100}}
        assert client.send("PATCH", group, wanted).status == 200
        session = client.post("/session", batch("holds", "sleep 600")).json["sessionId"]
        wait_status(client, session, "RUNNING")
        cluster.jump(wall=20 * 3600)
        client.shift = 20 * 3600
        assert client.delete("/session/holds").status == 200
        wait_status(client, session, *ENDED)
        run_ended(client, "latest")
        cluster.jump(wall=32 * DAY)
        client.shift = 32 * DAY
        before = client.get(group + "/fair-share").json["items"]
        assert client.post(RETENTION + "/run", {"entities": ["sessions"]}).status == 202
        assert wait_done(client)["last_removed"] == 1
        cluster.programs["manager"].kill()
        cluster.start_program("manager", *cluster.programs["manager"].command)
        wait_for(cluster.is_serving, 60, "the manager")
        after = wait_for(lambda: client.get(group + "/fair-share").json.get("items"), 60,
                         "usage to be read")
        users = [{row["user"]: round(row["usage"], 9) for row in rows if row["level"] == "user"}
                 for rows in (before, after)]
        assert users[0]["admin@lablup.com"] > 0
        assert users[1] == pytest.approx(users[0], rel=0.01), users


ENDED_SESSIONS = f"""
INSERT INTO sessions (seq, id, name, type, status, version, result, priority, user_id, project_id,
                      access_key, domain, resource_group, kernel_count, forced, created_at,
                      status_changed_at, terminated_at)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})
    SELECT 1000 + n.i, 'ended-' || n.i, 'ended', t.type, 'TERMINATED', 1, 'SUCCESS', 10, t.user_id,
           t.project_id, t.access_key, t.domain, t.resource_group, 1, 0, n.i, 1000 + n.i, 1000 + n.i
    FROM n, sessions t WHERE t.name = 'template';
INSERT INTO kernels (session_seq, rank, id, role, role_index, status, version, attempt, requested,
                     status_changed_at)
    SELECT seq, 0, id || '.0', 'main', 0, 'TERMINATED', 1, 1, '{{}}', 1
    FROM sessions WHERE name = 'ended';
INSERT INTO allocations (session_seq, rank, version, slot, agent_id, amount, taken_at, free_at)
    SELECT session_seq, 0, 1, 'cpu', 'agent', 1000000, 1, 2 FROM kernels WHERE session_seq > 1000;
INSERT INTO session_history (session_seq, rank, version, at, status)
    SELECT seq, -1, 1, 1, 'TERMINATED' FROM sessions WHERE name = 'ended'"""


def test_sessions_are_made_while_many_are_removed():
    with running() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        run_ended(client, "template")
        cluster.programs["manager"].stop()
        sql(cluster, f"{ENDED_SESSIONS}; {COUNT_ENDED}")
        cluster.start_manager()
        wait_for(cluster.agent, 60, "the agent")
        assert entities(client, "")["sessions"]["removable"] == MANY - 1  # the latest one stays
        assert client.post(RETENTION + "/run", {"entities": ["sessions"]}).status == 202
        made = 0
        while entities(client)["sessions"]["running"]:
            reply = client.post("/session", batch(f"made-{made}", "true", **WAITS))
            assert reply.status == 201, reply
            made += 1
            time.sleep(0.2)
        shown = entities(client, "")["sessions"]
        # the first that is made is the latest one then
        assert shown["last_removed"] in (MANY - 1, MANY) and shown["last_run_ended_at"], shown
        assert shown["rows"] <= 2 and made > 1, (shown, made)
        pending = client.get("/aliquot/v1/sessions?status=PENDING&limit=1").json["total"]
        assert pending == made
        cluster.check_audits()
        cluster.programs["agent"].stop()
        cluster.programs["manager"].stop()
        assert sql(cluster, "SELECT COUNT(*) FROM removed_usage") == shown["last_removed"]
        assert sql(cluster, "SELECT COUNT(*) FROM kernels") <= made + 2
        done = cluster.run("aliquot-manager", "db", "check", "--state", cluster.folder / "manager")
        assert done.stdout == "nothing found\n", done


@pytest.mark.parametrize("key, value, said", [
    ("SESSIONS", "1h", "retention.sessions: 1h is outside"),
    ("HISTORY", "ever", "retention.history: 'ever' is not a duration"),
    ("USAGE", "365d", "retention.usage: 365d is outside"),
    ("AUDIT_LOG", "-1d", "retention.audit-log: '-1d' is not a duration"),
])
def test_bad_settings_are_named(tmp_path, key, value, said):
    with Cluster(**{"ALIQUOT_RETENTION_" + key: value}) as cluster:
        done = cluster.run("aliquot-manager", "--dev", "--state", tmp_path / "state")
        assert done.returncode != 0 and said in done.stderr and '"forever"' in done.stderr, done
