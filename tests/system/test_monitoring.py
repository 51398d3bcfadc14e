# SPDX-License-Identifier: Apache-2.0
"""examples/monitoring: promtool accepts it, each alert fires when it should, and a Prometheus that is
set up by it has everything that rules and dashboard ask for, from a cluster of 'aliquot up'."""

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import urllib.parse

import pytest
import yaml

from cluster import wait_for
from test_accelerators import TWO_GPUS
from test_two_clusters import METRICS, Up, get
from world import ROOT, Space, World

MONITORING = ROOT / "examples" / "monitoring"
RULES = yaml.safe_load((MONITORING / "aliquot-rules.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((MONITORING / "aliquot-dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SHOWN = [target["expr"].replace("$__rate_interval", "30s").replace("$agent", ".*")
         for panel in PANELS for target in panel["targets"]]
SELECTOR = r"\b(?:up|aliquot_\w+|backendai_\w+)\b(?:{[^}]*})?"
API = "http://127.0.0.1:8081"
# of a database on a server only
ABSENT = ["aliquot_database_risk"]


def promtool(*words):
    done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True)
    assert done.returncode == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.gate
def test_promtool_accepts_the_files():
    assert f"{len(RULES)} rules found" in promtool("check", "rules", "aliquot-rules.yml")
    assert "valid prometheus config" in promtool("check", "config", "prometheus.yml")
    promtool("test", "rules", "aliquot-rules-test.yml")


def test_scrape_configuration_of_the_document(tmp_path):
    document = (ROOT / "docs" / "operations.md").read_text()
    [block] = re.findall(r"```yaml\n(rule_files:.*?)```", document, re.DOTALL)
    (tmp_path / "prometheus.yml").write_text(block)
    shutil.copy(MONITORING / "aliquot-rules.yml", tmp_path)
    promtool("check", "config", tmp_path / "prometheus.yml")
    jobs = {one["job_name"] for one in yaml.safe_load(block)["scrape_configs"]}
    there = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    assert jobs and jobs <= {one["job_name"] for one in there}


def test_each_alert_is_seen_to_fire_and_to_be_silent():
    """By the file that promtool runs."""
    tests = yaml.safe_load((MONITORING / "aliquot-rules-test.yml").read_text())["tests"]
    seen = {(case["alertname"], bool(case["exp_alerts"]))
            for test in tests for case in test["alert_rule_test"]}
    assert seen == {(rule["alert"], fires) for rule in RULES for fires in (True, False)}


def test_dashboard_can_be_drawn():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids)) and SHOWN
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${datasource}" and panel["targets"], panel["title"]
    assert [one["name"] for one in DASHBOARD["templating"]["list"]] == ["datasource", "agent"]


class Prometheus:
    """A server inside the space, by the configuration of the example; it only asks more often."""

    def __init__(self, space, folder):
        self.space = space
        shutil.copytree(MONITORING, folder)
        config = (folder / "prometheus.yml").read_text()
        assert config.count("15s") == 2
        (folder / "prometheus.yml").write_text(config.replace("15s", "1s"))
        with (folder / "out").open("wb") as log:
            self.process = subprocess.Popen(
                space.words("prometheus", f"--config.file={folder}/prometheus.yml",
                            f"--storage.tsdb.path={folder}/data",
                            "--web.listen-address=127.0.0.1:9090"),
                cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(self, path, **query):
        """What the API answers; None while it does not."""
        try:
            answer = json.loads(get(self.space, 9090, f"{path}?{urllib.parse.urlencode(query)}"))
        except (OSError, ValueError, http.client.HTTPException):
            return None
        assert answer["status"] == "success", answer
        return answer["data"]

    def ask(self, query):
        return (self.get("/api/v1/query", query=query) or {"result": []})["result"]

    def close(self):
        self.process.terminate()
        self.process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network")
def test_cluster_exports_what_rules_and_dashboard_ask_for():
    with World(ALIQUOT_STATISTICS_INTERVAL="0.5s") as world, contextlib.ExitStack() as stack:
        space = stack.enter_context(contextlib.closing(Space()))
        cards = world.folder / "cards.toml"
        cards.write_text(TWO_GPUS)
        world.env["ALIQUOT_ACCELERATORS_MOCK"] = str(cards)
        up = Up(world, space, "watched", "--dev").wait()
        done = up.run(API, "run", "--detach", "-r", "cpu=1", "-r", "mem=64m", "-r", "cuda.shares=0.5",
                      "--name", "busy", "--", "sleep", "600")
        assert done.returncode == 0, done.stderr
        server = stack.enter_context(contextlib.closing(Prometheus(space, world.folder / "watch")))
        asked = set(re.findall(SELECTOR, "\n".join(SHOWN + [rule["expr"] for rule in RULES])))
        assert len(asked) > 30
        for selector in asked - set(ABSENT):
            wait_for(lambda s=selector: server.ask(s), 60, f"series of {selector}")
        for expr in SHOWN:
            wait_for(lambda e=expr: server.ask(e), 60, f"a value of {expr}")
        exported = "".join(get(space, port, "/metrics") for port in METRICS.values())
        assert not [name for name in ABSENT if f"# TYPE {name} " not in exported]
        states = {alert["name"]: alert["health"] for alert in
                  server.get("/api/v1/rules")["groups"][0]["rules"]}
        assert states == {rule["alert"]: "ok" for rule in RULES}
        up.stop()
