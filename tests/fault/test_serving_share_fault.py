# SPDX-License-Identifier: Apache-2.0
"""Manager or agent die while the share of a replica changes: it comes to what it should be, the replica
goes on running, and agent and manager say the same of it."""

import contextlib
import subprocess

import pytest

import containers
from cluster import wait_for
from gpu_cluster import GpuCluster
from test_gpu_fault import is_free, parts_of
from test_serving_fault import PATH, ask, show
from world import ROOT

ALL = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                     check=True).stdout.split()
REPLACED = "core.serving.share.replaced"
HALVED = "core.serving.share.halved"
POINTS = [point for point in ALL
          if point.startswith("core.serving.share.") and point not in (REPLACED, HALVED)]
POINTS += [point for point in ALL if ".gpu.resize." in point]
MAIN = """
import http.server
http.server.ThreadingHTTPServer(("0.0.0.0", 8000), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
# Nobody asks anything: the share becomes the least.
SCALING = {"window": 1, "rules": [{"signal": "metric", "source": "kernel", "name": "cpu_util",
                                   "target": 90}]}


@contextlib.contextmanager
def started(point, **settings):
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with GpuCluster(ALIQUOT_NETWORK_ENABLED="true", **settings) as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.supervise()
        cluster.start_manager()
        cluster.start_agent()
        yield cluster, cluster.client(), mark
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def serve(client, shares, replicas, bounds=None, **more):
    scaling = {"scaling": {**SCALING, "share": bounds}} if bounds else {}
    reply = ask(client, "POST", PATH, {
        "name": "digits", "image": "host", "runtime": "custom", "command": 'exec python3 -c "$MAIN"',
        "environ": {"MAIN": MAIN}, "port": 8000, "health": {"interval": 1}, "replicas": replicas,
        "resources": {"cpu": "1", "mem": "128m", "cuda.shares": shares}, **scaling, **more})
    assert reply.status in (201, 409), reply


def end(cluster, client):
    assert ask(client, "DELETE", f"{PATH}/digits", {"force": True}).status in (204, 404)
    wait_for(lambda: show(client)["status"] == "ended", 90, lambda: f"the end: {show(client)}")
    assert is_free(cluster.card)


def of_replica(cluster, client, session):
    """The shares of the one replica by agent and manager, and whether it is ready."""
    replicas = show(client)["replica_list"]
    if len(replicas) != 1 or replicas[0]["session"] != session:
        return f"another replica: {replicas}"
    return parts_of(cluster, client, f"/aliquot/v1/sessions/{session}"), replicas[0]["health"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_while_a_share_changes(point):
    with started(point) as (cluster, client, mark):
        serve(client, "1", 1, {"min": 0.5, "max": 1})
        wait_for(lambda: show(client)["replica_list"], 60, "a replica")
        session = show(client)["replica_list"][0]["session"]
        wait_for(lambda: of_replica(cluster, client, session) == ({"0.5"}, "ready"), 90,
                 lambda: f"less: {of_replica(cluster, client, session)}")
        bounds = {**SCALING, "share": {"min": 0.8, "max": 1}}
        assert ask(client, "PATCH", f"{PATH}/digits", {"scaling": bounds}).status in (200, 409)
        wait_for(lambda: of_replica(cluster, client, session) == ({"0.8"}, "ready"), 90,
                 lambda: f"more: {of_replica(cluster, client, session)}")
        wait_for(mark.exists, 10, f"a process to pass {point}")
        end(cluster, client)


def test_killed_while_a_replica_gives_way_to_a_smaller_one():
    """The card has two shares: a second replica of one and a half waits, and another takes its place."""
    with started(REPLACED) as (cluster, client, mark):
        serve(client, "1.5", 2, {"min": 0.5, "max": 1.5})
        wait_for(mark.exists, 60, f"the manager to pass {REPLACED}")
        wait_for(lambda: [(replica["health"], replica["share"]) for replica in
                          show(client)["replica_list"]] == [("ready", 0.5)] * 2, 90,
                 lambda: f"two small replicas: {show(client)}")
        live = [session["name"] for session in client.get("/aliquot/v1/sessions").json["items"]
                if session["status"] == "RUNNING"]
        assert len(live) == 2, live
        end(cluster, client)


@pytest.mark.parametrize("passage", [1, 2, 3])
def test_killed_while_a_rollout_shares_cards(passage):
    """Two cards, each full with an old replica: one of both has half a card, and stays the one."""
    with started(f"{HALVED}:{passage}", devices=2) as (cluster, client, mark):
        serve(client, "2", 2, rollout={"when_full": "share"}, limits={"drain_timeout": 1})
        wait_for(lambda: [one["health"] for one in show(client)["replica_list"]] == ["ready"] * 2, 90,
                 lambda: f"two replicas: {show(client)}")
        reply = ask(client, "POST", f"{PATH}/digits/revisions", {"note": "second"})
        assert reply.status in (201, 409), reply
        goal, halved = show(client)["revision"]["number"], []

        def is_over():
            shown = show(client)
            old = [one["number"] for one in shown["replica_list"]
                   if one["revision"] < goal and one["share"] == 1]
            assert len(old) <= 1, shown["replica_list"]
            halved.extend(one for one in old if one not in halved)
            return shown["rollout"]["state"]["phase"] == "done" and [
                (one["revision"], one["share"], one["health"]) for one in shown["replica_list"]
            ] == [(goal, 2, "ready")] * 2
        wait_for(is_over, 240, lambda: f"the rollout, {halved} were halved: {show(client)}")
        wait_for(mark.exists, 10, f"the manager to pass {HALVED}")
        assert len(halved) == 2, halved  # first one, then the other, each once
        end(cluster, client)
