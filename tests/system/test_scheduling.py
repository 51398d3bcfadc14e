# SPDX-License-Identifier: Apache-2.0
"""Who is preempted, who used least lately and what a plug-in says, on a running cluster
whose manager may be killed at any time."""

import json
import shutil
import time

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER, Client
from cluster import Cluster, batch, wait_for, wait_status
from world import BUILD

pytestmark = pytest.mark.engines

CORES = 4
GROUP = "/aliquot/v1/resource-groups/default"
owners = {}  # of the sessions made here: their keypairs


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    plugins = tmp_path_factory.mktemp("schedulers")
    shutil.copy(BUILD / "plugins" / "shortest.so", plugins)
    shutil.copy(BUILD / "tests/unit/sched/sched-wrong-abi.so", plugins / "old.so")
    plugins.chmod(0o755)
    with Cluster(ALIQUOT_RESOURCE_CPUS=str(CORES), ALIQUOT_MANAGER_SCHEDULER_PLUGINS=str(plugins),
                 ALIQUOT_SESSIONS_KILL_GRACE="3s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        for key in ADMIN, DOMAIN_ADMIN, USER:
            assert cluster.client().send("PATCH", "/aliquot/v1/keypairs/" + key[0],
                                         {"rate_limit": 0}).status == 200
        yield cluster
        cluster.stop()
        Client.shift = 0


@pytest.fixture(autouse=True)
def clean(cluster):
    """Each test begins with the usual settings and nobody there."""
    set_group(cluster, scheduler="fifo", selection="concentrated", backfill=False,
              preemption={"enabled": False, "preemption_min_runtime": 0})
    yield
    for session in cluster.live_sessions():
        cluster.client().delete(f"/session/{session['id']}?forced=true&owner_access_key="
                                + session["access_key"])
    wait_for(lambda: not cluster.live_sessions(), 60, "all sessions to end")
    cluster.check_audits()


def set_group(cluster, **settings):
    reply = cluster.client().send("PATCH", GROUP, settings)
    assert reply.status == 200, reply
    return reply.json


def submit(cluster, name, cores, command="sleep 600", key=USER, **more):
    config = {"resources": {"cpu": str(cores), "mem": "64m"}}
    reply = cluster.client(key).post("/session", batch(name, command, config=config, **more))
    assert reply.status == 201, reply
    owners[reply.json["sessionId"]] = key
    return reply.json["sessionId"]


def show(cluster, session):
    return cluster.client(owners[session]).get("/aliquot/v1/sessions/" + session).json


def wait(cluster, session, *wanted):
    return wait_status(cluster.client(owners[session]), session, *wanted)


def states(cluster, session):
    """Every state that the session itself was in, the first first."""
    items = cluster.client(owners[session]).get(
        f"/aliquot/v1/sessions/{session}/history").json["items"]
    return [item["status"] for item in items if item["kernel"] is None]


def kill_manager(cluster):
    cluster.programs["manager"].kill()
    cluster.start_manager()


def end(cluster, session):
    assert cluster.client().delete(f"/session/{session}?forced=true&owner_access_key="
                                   + owners[session][0]).status == 200


# ---- preemption ----

def preempt(cluster, name, command):
    """Three of which the least important has to go: (it, the one that stays, the urgent one)."""
    set_group(cluster, preemption={"enabled": True})
    humble = submit(cluster, name + "-humble", 2, command, is_preemptible=True)
    middle = submit(cluster, name + "-middle", 2, is_preemptible=True, job_priority=1)
    for one in humble, middle:
        wait(cluster, one, "RUNNING")
    urgent = submit(cluster, name + "-urgent", 2, job_priority=5)
    return humble, middle, urgent


def check_preempted(cluster, humble, middle, urgent):
    wait(cluster, urgent, "RUNNING")
    wait(cluster, humble, "PENDING")
    assert states(cluster, middle).count("PREPARING") <= 1, "it was left alone"
    assert show(cluster, middle)["status"] == "RUNNING"
    assert states(cluster, humble).count("PREEMPTED") == 1
    end(cluster, urgent)
    wait(cluster, humble, "RUNNING")


@pytest.mark.gate
def test_the_least_important_is_preempted(cluster):
    check_preempted(cluster, *preempt(cluster, "calm", "sleep 600"))


def test_a_preemption_half_done_outlives_the_manager(cluster):
    """The program does not want to go, and the manager dies while it is waited for."""
    three = preempt(cluster, "torn", "trap '' TERM; while :; do sleep 1; done")
    wait_for(lambda: "PREEMPTED" in states(cluster, three[0]), 30, "the decision")
    assert show(cluster, three[2])["status"] == "PENDING"
    kill_manager(cluster)
    check_preempted(cluster, *three)


def test_sessions_that_may_not_be_preempted_stay(cluster):
    set_group(cluster, preemption={"enabled": True, "preemption_min_runtime": 3600})
    stays = submit(cluster, "young", CORES, is_preemptible=True)
    wait(cluster, stays, "RUNNING")
    urgent = submit(cluster, "urgent", 1, job_priority=50)
    wait_for(lambda: show(cluster, urgent)["reason"], 30, "a reason")
    assert show(cluster, stays)["status"] == "RUNNING"
    set_group(cluster, preemption={"enabled": True, "preemption_min_runtime": 0})
    wait(cluster, urgent, "RUNNING")


# ---- plug-ins ----

@pytest.mark.gate
def test_a_plug_in_orders_and_chooses(cluster):
    """The least work first; what it chose is told as its own choice, also after a kill."""
    shown = set_group(cluster, scheduler="plugin:shortest", selection="plugin:shortest")
    assert (shown["scheduler"], shown["selection"]) == ("plugin:shortest", "plugin:shortest")
    blocker = submit(cluster, "plug-blocker", CORES)
    wait(cluster, blocker, "RUNNING")
    long = submit(cluster, "plug-long", CORES, batch_timeout=3600)
    short = submit(cluster, "plug-short", CORES, batch_timeout=60)
    kill_manager(cluster)
    end(cluster, blocker)
    wait(cluster, short, "RUNNING")
    assert show(cluster, long)["status"] == "PENDING"
    done = cluster.run("aliquot", "session", "why", "--explain", short, "-o", "json",
                       **cluster.cli_env(USER))
    assert done.returncode == 0, done.stderr
    choice, = json.loads(done.stdout)
    assert (choice["selection"], choice["ranked"]) == ("shortest", False)
    best, = choice["best"]
    assert best["agent"] == "agent" and best["chosen"] and best["score"] is None
    done = cluster.run("aliquot", "session", "why", "--explain", short, **cluster.cli_env(USER))
    assert "no ranking: the chosen one, others by name" in done.stdout


@pytest.mark.parametrize("name, says", [
    ("nobody", "nobody.so"), ("old", "ABI"), ("../shortest", "no name of a plug-in")])
def test_plug_ins_that_cannot_be(cluster, name, says):
    for key in "scheduler", "selection":
        reply = cluster.client().send("PATCH", GROUP, {key: "plugin:" + name})
        assert reply.slug == "invalid-api-params" and list(reply.json["data"]) == [key], reply
        assert says in str(reply.json), reply
    assert cluster.client().get("/aliquot/v1/resource-groups").json["items"][0]["scheduler"] == "fifo"


# ---- fair share: the last, as it moves the clock ----

HOURS = 4


def shares(cluster):
    """email -> (usage, factor)"""
    items = wait_for(lambda: cluster.client().get(GROUP + "/fair-share").json.get("items"), 30,
                     "what was used to be read")
    return {item["user"]: (item["usage"], item["factor"])
            for item in items if item["level"] == "user"}


def decayed_hours():
    """The hours just passed; those before midnight (UTC) are a day old, of a half-life of seven."""
    today = min(HOURS, (time.time() / 3600 + HOURS) % 24)
    return today + (HOURS - today) * 2 ** (-1 / 7)


@pytest.mark.gate
def test_who_used_least_is_next(cluster):
    """Hours of one user count against them, also for a manager that never saw them."""
    set_group(cluster, scheduler="fair-share")
    greedy = submit(cluster, "greedy", CORES)
    wait(cluster, greedy, "RUNNING")
    cluster.jump(wall=HOURS * 3600)
    Client.shift = HOURS * 3600
    end(cluster, greedy)
    wait(cluster, greedy, "TERMINATED", "CANCELLED", "ERROR")
    blocker = submit(cluster, "blocker", CORES, key=DOMAIN_ADMIN)
    wait(cluster, blocker, "RUNNING")
    first = submit(cluster, "came-first", CORES)
    second = submit(cluster, "came-second", CORES, key=ADMIN)
    before = shares(cluster)
    usage, factor = before["user@lablup.com"]
    # so much of 28 days of all cores; memory counts next to nothing
    assert usage == pytest.approx(decayed_hours() / (28 * 24), rel=0.05)
    assert factor == pytest.approx(2 ** -usage, rel=1e-6)
    assert before.get("admin@lablup.com", (0, 1)) == (0, 1)
    kill_manager(cluster)
    after = shares(cluster)
    assert after["user@lablup.com"][0] == pytest.approx(usage, rel=1e-3)
    end(cluster, blocker)
    wait(cluster, second, "RUNNING")
    assert show(cluster, first)["status"] == "PENDING"
