# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI: model services in real containers, behind a proxy."""

import contextlib
import json
import pathlib
import sys

import pytest

import real_client
from client import ADMIN
from cluster import wait_for
from runtimes import settings_of

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from test_service_cli import SERVE, Served  # noqa: E402

VERSIONS = ("23.9.10", "26.9.6")
NEWEST = VERSIONS[1:]
SMALL = ("-r", "cpu=1", "-r", "mem=64m")
DEFINITION = """
models:
- name: digits
  model_path: /models
  service:
    start_command: python3 /models/serve.py
    port: 8000
    health_check: {enable: true, path: /health, interval: 1, max_wait_time: 5}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Served(**settings_of("crun"), ALIQUOT_NETWORK_ENABLED="true") as made:
        made.start()
        made.port = None  # that of the storage host: the proxy has its own
        made.start_proxy()
        model = tmp_path_factory.mktemp("model")
        (model / "serve.py").write_text(SERVE)
        (model / "model-definition.yaml").write_text(DEFINITION)
        for words in ("create", "digits"), ("cp", "-r", f"{model}/.", "digits:"):
            done = made.cli("folder", *words)
            assert done.returncode == 0, done
        yield made
        made.check_audits()
        made.check_nothing_left()
        made.stop()


@contextlib.contextmanager
def created(cluster, bai, name, count, *options):
    """A service of the client that is ready."""
    said = bai.says("service", "create", "host", "digits", str(count), "-t", name, *SMALL, *options)
    assert name in said, said
    try:
        wait_for(lambda: cluster.info(name)["status"] == "ready", 120, lambda: cluster.info(name))
        yield cluster.info(name)
    finally:
        cluster.service("rm", "--yes", "--wait", "--force", name)


@pytest.mark.gate
@pytest.mark.backendai("service create", "service info", "service get-endpoint",
                       "service generate-token", "service update-traffic-ratio", "service scale",
                       "service sync", "service list")
def test_a_service_from_creation_to_answers(cluster, bai, version):
    name = f"digits-{version[:2]}"
    with created(cluster, bai, name, 1, "-e", "WORD=seven") as made:
        assert name in bai.does("service", "list")
        shown = bai.does("service", "info", name)
        session = made["replica_list"][0]["session"]
        assert made["id"] in shown and session in shown and "HEALTHY" in shown, shown
        url = bai.says("service", "get-endpoint", name).strip().splitlines()[-1]
        assert url == made["url"]
        assert cluster.get(url)[0] == 401
        token = bai.does("service", "generate-token", "-q", name, "3d").strip().splitlines()[-1]
        status, body = cluster.get(url + "v1", token)
        assert status == 200 and json.loads(body)["word"] == "seven", (status, body)
        bai.does("service", "update-traffic-ratio", name, session, "0.5")
        assert cluster.info(name)["replica_list"][0]["ratio"] == 0.5
        bai.does("service", "sync", name)
        bai.does("service", "scale", name, "2")
        wait_for(lambda: cluster.info(name)["replicas"]["ready"] == 2, 120, lambda: cluster.info(name))


@pytest.mark.backendai("service rm")
def test_a_service_that_is_removed(cluster, bai, version):
    name = f"gone-{version[:2]}"
    bai.does("service", "create", "host", "digits", "0", "-t", name, *SMALL, "--public")
    assert cluster.info(name)["public"] and cluster.info(name)["replicas"]["wanted"] == 0
    bai.does("service", "rm", name)
    wait_for(lambda: cluster.info(name)["status"] == "ended", 60)
    assert "not found" in bai.fails("service", "info", name)


def test_commands_that_fail_by_themselves(bai):
    route = "0" * 32
    done = bai.run("service", "downscale-route", "digits", route, "1")
    assert "TypeError" in done.stderr or "unexpected keyword" in done.stderr, done


@pytest.mark.backendai("service try-start", versions=("26.9.6",))
def test_a_service_is_tried(cluster, bai, version):
    if version not in NEWEST:
        return
    said = bai.says("service", "try-start", "host", "digits", "-t", "tried", *SMALL)
    assert "validation started" in said and "The replica is ready." in said, said
    failed = bai.run("service", "try-start", "host", "digits", "-e", "WORD=none", *SMALL)
    assert "no model here" in failed.stdout + failed.stderr, failed
    wait_for(lambda: not cluster.client(ADMIN).get(
        "/aliquot/v1/model-services?all=true").json["items"], 60, "the trials to be removed")


@pytest.mark.backendai("service auto-scaling-rule create", "service auto-scaling-rule list",
                       "service auto-scaling-rule get", "service auto-scaling-rule update",
                       "service auto-scaling-rule delete", versions=("26.9.6",))
def test_auto_scaling_rules(cluster, bai, version):
    if version not in NEWEST:
        return
    bai.does("service", "create", "host", "digits", "0", "-t", "scaled", *SMALL)
    try:
        said = bai.says("service", "auto-scaling-rule", "create", "scaled", "--metric-source",
                        "kernel", "--metric-name", "cpu_util", "--threshold", "80.5", "--comparator",
                        "greater_than", "--step-size", "1", "--cooldown-seconds", "60",
                        "--max-replicas", "5")
        rule = said.split("(ID ")[1].split(")")[0]
        listed = bai.json("service", "auto-scaling-rule", "list", "scaled")["items"]
        assert [one["metric_name"] for one in listed] == ["cpu_util"], listed
        shown = bai.does("service", "auto-scaling-rule", "get", rule)
        for text in "KERNEL", "cpu_util", "80.5", "GREATER_THAN":
            assert text in shown, shown
        bai.does("service", "auto-scaling-rule", "update", rule, "--max-replicas", "-1",
                 "--threshold", "90", "--comparator", "less_than")
        shown = bai.does("service", "auto-scaling-rule", "get", rule)
        assert "LESS_THAN" in shown and "90" in shown and "cpu_util" in shown, shown
        bai.does("service", "auto-scaling-rule", "delete", rule)
        assert "not found" in bai.fails("service", "auto-scaling-rule", "get", rule)
    finally:
        cluster.service("rm", "--yes", "--wait", "scaled")
