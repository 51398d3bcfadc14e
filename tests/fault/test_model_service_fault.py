# SPDX-License-Identifier: Apache-2.0
"""The manager dies before it answers requests for model services: what was acknowledged is kept, and a
request that is sent again by its key makes nothing twice."""

import contextlib
import json
import subprocess
import uuid

import pytest

from cluster import GONE, Cluster, wait_for
from test_fault import POINTS as OTHERS
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
BACKENDAI = [point for point in POINTS if point.startswith(("serving.backendai.", "serving.try."))]
POINTS = [point for point in POINTS if point.startswith("api.service.")]
PATH = "/aliquot/v1/model-services"
ASKED = {"name": "digits", "image": "sh", "command": "serve", "port": 8000, "replicas": 0}


def ask(client, method, path, body=None, key=None):
    """Until there is an answer."""
    def attempt():
        with contextlib.suppress(*GONE):
            headers = client.headers(method, path, "application/json")
            if key:
                headers["Idempotency-Key"] = key
            reply = client.raw(method, path, json.dumps(body or {}).encode(), headers, timeout=20)
            return reply if reply.status != 503 else None
    return wait_for(attempt, 60, f"an answer to {method} {path}")


def test_all_points_are_tried_somewhere():
    assert POINTS and BACKENDAI and not {*POINTS, *BACKENDAI} & {*OTHERS}


@pytest.mark.parametrize("point", POINTS)
def test_killed(point):
    with Cluster() as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=f"{point}:1", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.supervise()
        client, key = cluster.client(), str(uuid.uuid4())
        made = ask(client, "POST", PATH, ASKED, key)
        assert made.status == 201, made
        assert ask(client, "POST", PATH, ASKED, key).body == made.body
        path = f"{PATH}/{made.json['id']}"
        deployed = ask(client, "POST", path + "/revisions", {"environ": {"A": "1"}})
        assert deployed.status == 201, deployed
        token = ask(client, "POST", path + "/tokens", {"label": "one"})
        assert token.status == 201, token
        assert mark.exists(), f"the manager has not passed {point}"
        # A request without a key that was cut off may have been done once more than it was answered.
        lost = {"api.service.deployed": "revisions", "api.service.token-made": "tokens"}.get(point)
        for what, least in (("revisions", 2), ("tokens", 1)):
            listed = client.get(f"{path}/{what}").json
            assert listed["total"] == least + (what == lost), listed
        numbers = [each["number"] for each in client.get(path + "/revisions").json["items"]]
        assert numbers == sorted(numbers, reverse=True) and len(numbers) == len({*numbers})
        assert client.get(path).json["revision"]["environ"]["A"] == "1"
        assert [each["id"] for each in client.get(PATH).json["items"]] == [made.json["id"]]
        cluster.check_audits()
        cluster.stop()


@pytest.mark.parametrize("point", BACKENDAI)
def test_killed_by_requests_of_backendai(point):
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_AGENTS_TIMEOUT="3s") as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=f"{point}:1", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        body = {"name": "digits", "replicas": 0, "image": "sh", "arch": "x86_64", "group": "default",
                "domain": "default", "cluster_size": 1, "cluster_mode": "single-node",
                "startup_command": "exit 3", "open_to_public": False, "runtime_variant": "vllm",
                "config": {"environ": {}, "scaling_group": "default", "resource_opts": {},
                           "resources": {"cpu": "1", "mem": "64m"}}}
        made = ask(client, "POST", "/services", body, str(uuid.uuid4()))
        assert made.status == 201, made
        token = ask(client, "POST", f"/services/{made.json['endpoint_id']}/token", {"duration": "3d"})
        assert token.status == 200 and token.json["token"].startswith("aqs-"), token
        tried = ask(client, "POST", "/services/_/try", {**body, "name": "trial", "replicas": 1})
        assert tried.status == 200, tried

        def left():
            with contextlib.suppress(*GONE):
                return [one["name"] for one in client.get(PATH).json["items"]] == ["digits"]
        wait_for(left, 90, "trials to be removed")
        wait_for(mark.exists, 30, f"the manager has not passed {point}")
        wait_for(left, 90, "trials to be removed after the restart")
        cluster.check_audits()
        cluster.stop()
