# SPDX-License-Identifier: Apache-2.0
"""Sessions that nobody uses are warned of and ended; they can be extended and exempted, and what
computes is kept."""

import json
import subprocess
import time

import pytest

from client import ADMIN, USER
from cluster import BUILD, Cluster, interactive, running, wait_for, wait_status
from terminal import Terminal

POLICY = "/aliquot/v1/keypair-policies/default"
LIMIT = 20
GQL = "query($id: UUID!) { compute_session(id: $id) { idle_checks } }"


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        settle(cluster.client(ADMIN))
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


def settle(admin, idle=LIMIT, lifetime=0, extension=0):
    reply = admin.post("/config/set", {"key": "config/idle/warnings", "value": "8s,4s"})
    assert reply.status == 200, reply
    reply = admin.send("PATCH", POLICY, {
        "idle_timeout_sec": idle, "max_session_lifetime_sec": lifetime,
        "max_idle_extension_sec": extension})
    assert reply.status in (200, 204), reply


@pytest.fixture
def user(cluster):
    return cluster.client()


def cli(cluster, *words):
    done = cluster.run("aliquot", *words, **cluster.cli_env())
    assert done.returncode == 0, done.stderr
    return done.stdout


def show(client, name):
    return client.get(f"/aliquot/v1/sessions/{name}").json


def checks(client, session):
    reply = client.gql(GQL, {"id": session})
    return json.loads(reply.json["data"]["compute_session"]["idle_checks"])


@pytest.mark.gate
def test_warned_and_ended(cluster, user):
    begun = time.monotonic()
    with running(user, "left") as session:
        found = wait_for(lambda: checks(user, session), 10, "its checks")
        assert set(found) == {"network_timeout"}
        assert found["network_timeout"]["remaining_time_type"] == "expire_after"
        assert 0 < found["network_timeout"]["remaining"] <= LIMIT
        idle = show(user, "left")["idle"]
        assert idle["reason"] == "idle-timeout" and idle["can_extend"] and not idle["exempt"]
        wait_for(lambda: show(user, "left")["idle"]["ends_soon"], 30, "the warning")
        assert show(user, "left")["idle_ends_at"]
        assert "aliquot session extend left" in cli(cluster, "session", "why", "left")
        ended = wait_status(user, session, "TERMINATED")
        assert ended["reason"] == "idle-timeout" and time.monotonic() - begun >= LIMIT - 1
        assert user.get(f"/aliquot/v1/sessions/{session}/why").json["text"] \
            == "It was idle for longer than its idle timeout."


def test_extended(cluster, user):
    with running(user, "kept") as session:
        wait_for(lambda: show(user, "kept")["idle_ends_at"], 40, "the warning")
        said = cli(cluster, "session", "extend", "kept", "30s")
        assert "The session is kept until" in said
        assert 20 < checks(user, session)["network_timeout"]["remaining"] <= 30
        assert show(user, "kept")["idle"]["extended_until"]
        assert "It was extended: it is kept until" in cli(cluster, "session", "why", "kept")
        wait_for(lambda: not show(user, "kept")["idle_ends_at"], 10, "no warning any more")
        time.sleep(12)
        assert show(user, "kept")["status"] == "RUNNING"


def test_exempt_by_administrators_alone(cluster, user):
    path = "/aliquot/v1/sessions/demo/exempt"
    with running(user, "demo") as session:
        assert cluster.client(USER).post(path, {}).status == 401
        cli(cluster, "session", "exempt", "demo")
        wait_for(lambda: show(user, "demo")["idle"]["exempt"], 10, "the exemption")
        assert "It is exempt from idle checks." in cli(cluster, "session", "why", "demo")
        assert checks(user, session)["network_timeout"]["remaining"] is None
        time.sleep(LIMIT + 3)
        assert show(user, "demo")["status"] == "RUNNING"


def test_not_more_than_the_policy_allows(cluster, user):
    settle(cluster.client(ADMIN), extension=60)
    with running(user, "greedy"):
        path = "/aliquot/v1/sessions/greedy/extend"
        wait_for(lambda: show(user, "greedy")["idle"], 10, "its checks")
        assert user.post(path, {"duration": "50s"}).status == 200
        assert user.post(path, {"duration": "50s"}).status == 200  # which ends with the first
        reply = user.post(path, {"duration": "70s"})
        assert reply.status == 400 and "by 60 s in total" in reply.json["data"]["duration"], reply
    settle(cluster.client(ADMIN))


def test_what_computes_is_kept(cluster, user):
    body = {**interactive("computes"), "startupCommand": "while :; do :; done"}
    reply = user.post("/session", body)
    assert reply.status == 201, reply
    wait_status(user, "computes", "RUNNING")
    time.sleep(2 * LIMIT)
    assert show(user, "computes")["status"] == "RUNNING"
    user.send("DELETE", "/session/computes?forced=true")
    wait_status(user, reply.json["sessionId"], "TERMINATED")


def test_work_keeps(cluster, user):
    with running(user, "worked"):
        until = time.monotonic() + 2 * LIMIT
        while time.monotonic() < until:
            cli(cluster, "exec", "worked", "true")
            time.sleep(LIMIT / 3)
        assert show(user, "worked")["status"] == "RUNNING"


def test_lifetime_ends_what_is_used(cluster, user):
    settle(cluster.client(ADMIN), idle=0, lifetime=15)
    with running(user, "old") as session:
        reply = user.post("/aliquot/v1/sessions/old/extend", {})
        assert reply.status == 400 and "exempt" in reply.json["data"]["session"], reply
        ended = wait_status(user, session, "TERMINATED")
        assert ended["reason"] == "idle-session-lifetime"
    settle(cluster.client(ADMIN))


def test_a_terminal_shows_the_warning_and_a_pipe_does_not(cluster, user):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "vt100"}
    settle(cluster.client(ADMIN), lifetime=25)
    with running(user, "seated") as session:
        piped = subprocess.Popen(
            [str(BUILD / "aliquot"), "exec", "seated", "sh", "-c", "echo begun; exec sleep 1000"],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        shell = Terminal(str(BUILD / "aliquot"), "exec", "-it", "seated", "sh", env=env,
                         columns=200)
        shell.send(b"echo in $((40 + 2))\n")
        shell.expect(b"in 42")
        shell.expect(b"[aliquot] Session 'seated' reaches its maximum lifetime and ends in ", 60)
        shell.expect(b"Save your work.\r\n")
        assert wait_status(user, session, "TERMINATED")["reason"] == "idle-session-lifetime"
        shell.hang_up()
        out, errors = piped.communicate(timeout=60)
        assert out == b"begun\n" and b"[aliquot]" not in errors, (out, errors)
    settle(cluster.client(ADMIN))
    with running(user, "forgotten") as session:
        shell = Terminal(str(BUILD / "aliquot"), "exec", "-it", "forgotten", "sh", env=env,
                         columns=200)
        shell.expect(b"[aliquot] Session 'forgotten' is idle and ends in ", 60)
        shell.expect(b"'aliquot session extend forgotten' keeps it running.")
        assert wait_status(user, session, "TERMINATED")["reason"] == "idle-timeout"
        shell.hang_up()


def test_new_users_are_spared(cluster, user):
    key = "config/idle/checkers/user_grace_period/user_initial_grace_period"
    cli(cluster, "admin", "config", "set", key, "1h")
    with running(user, "first") as session:
        def remaining():
            return checks(user, session).get("network_timeout", {}).get("remaining", 0)

        wait_for(lambda: remaining() > 600, 10, "the grace period")
        cluster.programs["manager"].kill()
        cluster.start_manager()
        wait_for(lambda: remaining() > 600, 30, "the grace period after a restart")
        cli(cluster, "admin", "config", "rm", key)
        ended = wait_status(user, session, "TERMINATED")
        assert ended["reason"] == "idle-timeout"


def test_a_killed_manager_ends_nothing_too_early(cluster, user):
    with running(user, "through") as session:
        time.sleep(LIMIT - 5)
        cli(cluster, "exec", "through", "true")
        cluster.programs["manager"].kill()
        cluster.start_manager()
        time.sleep(LIMIT - 8)
        assert show(user, "through")["status"] == "RUNNING"
        ended = wait_status(user, session, "TERMINATED")
        assert ended["reason"] == "idle-timeout"


def test_limits_without_end(cluster):
    admin = cluster.client(ADMIN)

    def limits():
        rows = admin.get("/aliquot/v1/keypair-policies").json["items"]
        row = next(row for row in rows if row["name"] == "default")
        return row["idle_timeout_sec"], row["max_session_lifetime_sec"]

    def policy(*options):
        cli(cluster, "admin", "policy", "set", "default", *options)
        return limits()

    assert policy("--idle-timeout-sec", "-1", "--max-session-lifetime-sec", "7d") == (-1, 604800)
    assert policy("--idle-timeout-sec", "none", "--max-session-lifetime-sec", "none") == (0, 0)
    settle(admin, idle=60, lifetime=120)
    settle(admin, idle="none", lifetime="none")
    assert limits() == (0, 0)
    reply = admin.send("PATCH", POLICY, {"max_session_lifetime_sec": -1})
    assert reply.status == 400, reply
    assert "-1 is not within" in reply.json["data"]["max_session_lifetime_sec"], reply
    done = cluster.cli("admin", "policy", "set", "default", "--idle-timeout-sec", "never")
    assert done.returncode == 2 and "--idle-timeout-sec" in done.stderr, done
    assert "or none; not 'never'" in done.stderr, done
    settle(admin)


@pytest.mark.parametrize("key, value", [
    ("enabled", "none,utilization"), ("enabled", "nothing"), ("checkers/user_grace_period/user_initial_grace_period", "a week"),
    ("checkers/network_timeout/threshold", "soon"),
    ("checkers/utilization/resource-thresholds/cpu_util/average", "all"), ("warnings", "1m,2m")])
def test_settings_that_cannot_be(cluster, key, value):
    key = "config/idle/" + key
    reply = cluster.client(ADMIN).post("/config/set", {"key": key, "value": value})
    assert reply.status == 400 and key in reply.json["data"], reply
