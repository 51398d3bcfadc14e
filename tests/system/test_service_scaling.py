# SPDX-License-Identifier: Apache-2.0
"""Model services whose replicas follow their requests, with real containers and a proxy."""

import concurrent.futures
import json
import re

import pytest

from cluster import batch, wait_for, wait_status
from test_service_cli import COMMAND, SMALL, Served, cluster  # noqa: F401

FAST = ("--target", "in_flight=1", "--window", "10s", "--idle", "20s")


@pytest.mark.gate
def test_it_sleeps_and_a_request_wakes_it(cluster):  # noqa: F811
    with cluster.made("sleepy", "--replicas", "0-1", "--idle", "5s", "--window", "5s") as (url, token):
        assert cluster.get(url, token)[0] == 200
        wait_for(lambda: cluster.info("sleepy")["status"] == "sleeping"
                 and not cluster.info("sleepy")["replica_list"], 90, "the service to sleep")
        assert re.fullmatch(r"no request for \d+ s", cluster.info("sleepy")["scaling_reason"])
        status, body = cluster.get(url, token)
        assert (status, json.loads(body)["path"]) == (200, "/")
        assert cluster.info("sleepy")["replicas"]["wanted"] == 1


def test_replicas_follow_the_requests(cluster):  # noqa: F811
    with cluster.made("busy", "--replicas", "1-3", *FAST, "--cap", "1") as (url, token):
        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            asked = [pool.submit(cluster.get, url + "slow", token) for _ in range(60)]
            wait_for(lambda: cluster.info("busy")["replicas"]["ready"] == 3, 90, "three replicas")
            assert "requests" in cluster.info("busy")["scaling_reason"]
            assert {each.result()[0] for each in asked} == {200}
        wait_for(lambda: cluster.info("busy")["replicas"]["ready"] == 1, 90, "one replica")
        assert len(cluster.info("busy")["replica_list"]) <= 3


def test_rules_that_cannot_be_followed(cluster, tmp_path):  # noqa: F811
    with cluster.made("ruled", "--replicas", "0-1") as _:
        for rules, said in (
                ({"rules": [{"signal": "metric", "name": "a b", "target": 1}]}, "name of a metric"),
                ({"rules": [{"signal": "speed", "target": 1}]}, "scaling.rules[0].signal"),
                ({"rules": [{"signal": "rate", "target": 0}]}, "scaling.rules[0].target"),
                ({"window": -1}, "window: expected seconds")):
            (tmp_path / "rules.json").write_text(json.dumps(rules))
            assert said in cluster.service("update", "ruled", "--scaling", f"{tmp_path}/rules.json",
                                           status=4)
        assert "SIGNAL=VALUE" in cluster.service("update", "ruled", "--target", "in_flight", status=2)
        cluster.service("update", "ruled", "--target", "rate=5", "--target", "latency=0.5")
        assert [rule["signal"] for rule in cluster.info("ruled")["scaling"]["rules"]] == [
            "rate", "latency"]
        cluster.service("update", "ruled", "--target", 'metric:waiting{queue="a"}=4',
                        "--target", "prometheus:sum(up == 1)=2")
        assert [(rule.get("name"), rule.get("query"), rule["target"])
                for rule in cluster.info("ruled")["scaling"]["rules"]] == [
            ('waiting{queue="a"}', None, 4), (None, "sum(up == 1)", 2)]


def test_preemptible_work_yields_and_comes_back(cluster):  # noqa: F811
    """A replica that needs room gets that of a preemptible batch session, which runs again after it."""
    group = "/aliquot/v1/resource-groups/default"
    assert cluster.client().send("PATCH", group, {"preemption": {"enabled": True}}).status == 200
    reply = cluster.client().post("/session", batch(
        "sweep", "sleep 600", image="host", is_preemptible=True,
        config={"resources": {"cpu": "3", "mem": "64m"}}))
    assert reply.status == 201, reply
    sweep = reply.json["sessionId"]

    def states():
        items = cluster.client().get(f"/aliquot/v1/sessions/{sweep}/history").json["items"]
        return [item["status"] for item in items if item["kernel"] is None]
    try:
        wait_status(cluster.client(), sweep, "RUNNING")
        with cluster.made("hungry", "--replicas", "1-2") as (url, token):
            assert states().count("PREEMPTED") == 0
            cluster.service("scale", "hungry", "2", "--wait")
            assert states().count("PREEMPTED") == 1
            assert cluster.get(url, token)[0] == 200
            cluster.service("scale", "hungry", "1", "--wait")
            wait_status(cluster.client(), sweep, "RUNNING")
            assert states().count("RUNNING") == 2
    finally:
        cluster.client().delete(f"/session/{sweep}?forced=true")
        wait_status(cluster.client(), sweep, "TERMINATED", "CANCELLED")
        assert cluster.client().send("PATCH", group,
                                     {"preemption": {"enabled": False}}).status == 200
