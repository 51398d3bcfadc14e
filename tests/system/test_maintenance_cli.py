# SPDX-License-Identifier: Apache-2.0
"""What administrators tell everyone, and a cluster that is frozen, from the command line: what
they type, what users read, and what the audit log has of it.
"""

import json

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import Cluster, batch, wait_status

pytestmark = pytest.mark.gate

TEXT = "Closed on Monday\nfrom 8:00, \uc810\uac80"
USAGE, INVALID, NOT_FOUND, DENIED = 2, 4, 5, 6


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.stop()


@pytest.fixture(autouse=True)
def as_before(cluster):
    yield
    does(cluster, "admin", "unfreeze")
    does(cluster, "admin", "announcement", "clear")


def does(cluster, *words, **more):
    done = cluster.cli(*words, **more)
    assert done.returncode == 0, done
    return done.stdout


def shown(cluster):
    """The announcement, as anybody reads it."""
    return cluster.run("aliquot", "announcement", **cluster.cli_env(USER)).stdout


def login(cluster, *words):
    return cluster.run("aliquot", "login", *words, "--access-key", USER[0], "--password-stdin",
                       says=USER[1] + "\n", HOME=str(cluster.folder),
                       ALIQUOT_ENDPOINT="http://%s:%d" % cluster.address)


def audited(cluster, action):
    rows = json.loads(does(cluster, "admin", "audit-log", "--action", action, "-o", "json"))
    return [row for row in rows if row["user"] == "admin@lablup.com"]


def keys_set(cluster, key):
    """What the audit log has of the key, the oldest first: before and after."""
    found = [row["detail"]["keys"][0] for row in audited(cluster, "set-config")
             if row["object_name"] == key]
    return [(one["before"], one["after"]) for one in reversed(found)]


# ---- the announcement ----

def test_without_one(cluster):
    done = cluster.cli("announcement")
    assert (done.returncode, done.stdout) == (0, "") and "no announcement" in done.stderr
    assert json.loads(does(cluster, "announcement", "-o", "json")) == {
        "enabled": False, "message": ""}
    done = login(cluster)
    assert done.returncode == 0 and "nnouncement" not in done.stderr, done


def test_it_is_set_shown_and_cleared(cluster):
    before = keys_set(cluster, "manager/announcement")
    does(cluster, "admin", "announcement", "set", "Tonight at 18:00")
    assert shown(cluster) == "Tonight at 18:00\n"
    does(cluster, "admin", "announcement", "set", TEXT)
    assert shown(cluster) == does(cluster, "admin", "announcement", "show") == TEXT + "\n"
    assert json.loads(does(cluster, "announcement", "-o", "json")) == {
        "enabled": True, "message": TEXT}
    assert "enabled: true" in does(cluster, "announcement", "-o", "yaml")
    assert does(cluster, "admin", "config", "get", "manager/announcement") == TEXT + "\n"
    does(cluster, "admin", "announcement", "clear")
    assert shown(cluster) == ""
    does(cluster, "admin", "announcement", "clear")  # what is not there is no error
    news = keys_set(cluster, "manager/announcement")[len(before):]
    assert [after for _, after in news[:3]] == ["Tonight at 18:00", TEXT, ""]
    assert [one for one, _ in news[1:3]] == ["Tonight at 18:00", TEXT]


def test_it_is_read_from_a_file_or_standard_input(cluster):
    file = cluster.folder / "motd"
    file.write_text(TEXT + "\n\n")
    does(cluster, "admin", "announcement", "set", "--file", file)
    assert shown(cluster) == TEXT + "\n"
    for words in (["-"], ["--file", "-"]):
        does(cluster, "admin", "announcement", "set", *words, says="Piped\n")
        assert shown(cluster) == "Piped\n"
        does(cluster, "admin", "announcement", "set", *words, says=TEXT)
        assert shown(cluster) == TEXT + "\n"
    does(cluster, "admin", "announcement", "set", "-", says="x" * 4096 + "\n")
    assert shown(cluster) == "x" * 4096 + "\n"


@pytest.mark.parametrize("words, says, status, word", (
    ([], None, USAGE, "missing"),
    (["a", "b"], None, USAGE, "'b'"),
    (["a", "--file", "f"], None, USAGE, "--file"),
    ([""], None, USAGE, "announcement clear"),
    (["-"], "\n \n", USAGE, "announcement clear"),
    (["\udcff"], None, USAGE, "UTF-8"),
    (["x" * 4097], None, INVALID, "4096"),
    (["-"], "x" * 100000, 1, "standard input"),
    (["-"], "a\0b", INVALID, ""),
    (["--file", "/no/such"], None, NOT_FOUND, "/no/such")))
def test_what_cannot_be_one(cluster, words, says, status, word):
    does(cluster, "admin", "announcement", "set", "as it was")
    done = cluster.cli("admin", "announcement", "set", *words, says=says)
    assert done.returncode == status and word in done.stderr, done
    assert shown(cluster) == "as it was\n"


def test_it_does_not_steer_a_terminal(cluster):
    does(cluster, "admin", "announcement", "set", "a\tb")
    done = cluster.cli("admin", "announcement", "set", "a\033[31mb\tc")
    assert done.returncode == 4 and "message: has a control character" in done.stderr, done
    assert shown(cluster) == "a\tb\n"


def test_login_shows_it(cluster):
    does(cluster, "admin", "announcement", "set", TEXT)
    done = login(cluster)
    assert done.returncode == 0 and TEXT in done.stderr and not done.stdout, done
    assert TEXT not in login(cluster, "--quiet").stderr


def test_only_superadmins_set_it(cluster):
    for words in (["announcement", "set", "x"], ["announcement", "clear"], ["freeze"],
                  ["unfreeze"], ["freeze", "--end-sessions", "--yes"]):
        for who in (USER, DOMAIN_ADMIN):
            done = cluster.run("aliquot", "admin", *words, **cluster.cli_env(who))
            assert done.returncode == DENIED, done
    assert shown(cluster) == ""


# ---- a frozen cluster ----

def test_a_frozen_cluster_says_why(cluster):
    before = keys_set(cluster, "manager/status")
    runs = cluster.client(USER).post("/session", batch("goes-on", "sleep 600")).json["sessionId"]
    wait_status(cluster.client(USER), runs, "RUNNING")
    does(cluster, "admin", "announcement", "set", TEXT)
    done = cluster.cli("admin", "freeze")
    assert done.returncode == 0 and "aliquot admin unfreeze" in done.stderr, done
    job = cluster.folder / "job.sh"
    job.write_text("#!/bin/sh\ntrue\n")
    for words in (["submit", job], ["run", "--", "true"], ["session", "restart", "goes-on"],
                  ["session", "rename", "goes-on", "another"], ["rm", "goes-on"]):
        done = cluster.run("aliquot", *words, **cluster.cli_env(USER))
        assert done.returncode and TEXT in done.stderr, done
        assert "frozen by an administrator" in done.stderr
        assert "aliquot admin unfreeze" in done.stderr
    done = cluster.run("aliquot", "submit", "-o", "json", job, **cluster.cli_env(USER))
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "server-frozen" and "unfreeze" in error["hint"]
    does(cluster, "admin", "freeze")  # once more is no error
    assert wait_status(cluster.client(USER), runs, "RUNNING")
    does(cluster, "admin", "unfreeze")
    assert cluster.run("aliquot", "rm", "goes-on", **cluster.cli_env(USER)).returncode == 0
    done = cluster.run("aliquot", "run", "--", "true", **cluster.cli_env(USER))
    assert done.returncode == 0, done
    news = keys_set(cluster, "manager/status")[len(before):]
    assert news[0][1] == "frozen" and news[-1][1] == "running"


def test_what_waits_still_starts(cluster):
    user, agent = cluster.client(USER), cluster.agent()["id"]
    does(cluster, "agent", "drain", agent)
    waits = user.post("/session", batch("waits", "true")).json["sessionId"]
    does(cluster, "admin", "freeze")
    does(cluster, "agent", "undrain", agent)
    assert wait_status(user, waits, "TERMINATED")["result"] == "SUCCESS"


def test_all_sessions_end(cluster):
    user = cluster.client(USER)
    runs = user.post("/session", batch("ends-with-all", "sleep 600")).json["sessionId"]
    wait_status(user, runs, "RUNNING")
    done = cluster.cli("admin", "freeze", "--end-sessions")
    assert done.returncode == USAGE and "--yes" in done.stderr
    assert user.get("/manager/status").json["status"] == "running"
    does(cluster, "admin", "freeze", "--end-sessions", "--yes")
    assert wait_status(user, runs, "TERMINATED")["reason"] == "force-terminated"
    assert audited(cluster, "end-session")[0]["object_id"] == runs
    assert user.get("/manager/status").json["status"] == "frozen"


# ---- other spellings ----

def test_backendai_spells_it_otherwise(cluster):
    does(cluster, "admin", "announcement", "update", "x")
    assert does(cluster, "admin", "announcement", "get") == "x\n"
    does(cluster, "admin", "announcement", "delete")
    assert shown(cluster) == ""
    does(cluster, "admin", "manager", "freeze")
    does(cluster, "admin", "manager", "unfreeze")
    done = cluster.cli("admin", "manager", "status")
    assert done.returncode == USAGE and "aliquot doctor" in done.stderr
