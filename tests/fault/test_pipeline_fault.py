# SPDX-License-Identifier: Apache-2.0
"""The manager is killed at each step of a pipeline's run, at the first passage or each one in turn:
every task is run as often as it says, also when the run is resumed."""

import collections
import contextlib
import datetime
import json
import subprocess
import time

import pytest

from cluster import GONE, Cluster, wait_for
from world import ROOT

RUNS = "/aliquot/v1/pipeline-runs"
AFTER = ["pipeline.run.resumed"]  # passed only when the run is resumed
OWN = [point for point in subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True,
                                         text=True, check=True).stdout.split()
       if point.startswith("pipeline.") and point != "pipeline.run.changed"]  # by 'cancel' alone
TRIGGERED = [point for point in OWN if point.startswith("pipeline.trigger.")]
SHARED = ["core.create.proposed", "core.create.committed", "core.create.applied",
          "core.proposal.committed", "core.proposal.applied"]
FILE = """\
name: story
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  first: {{outputs: [word], command: "echo first >>{notes}; echo word=last >>$ALIQUOT_OUTPUT"}}
  each: {{needs: first, matrix: {{i: [1, 2]}}, command: "echo each ${{{{ matrix.i }}}} >>{notes}"}}
  bad: {{needs: first, retry: 1, command: "echo bad >>{notes}; exit {code}"}}
  last: {{needs: [first, each, bad], command: "echo ${{{{ tasks.first.outputs.word }}}} >>{notes}"}}
"""


def ask(client, path, body):
    """The same request, by the same signature, until it is answered."""
    headers = client.headers("POST", path, "application/json")

    def attempt():
        with contextlib.suppress(*GONE):
            reply = client.raw("POST", path, json.dumps(body).encode(), headers, timeout=60)
            return reply if reply.status not in (401, 503) else None
    return wait_for(attempt, 60, "an answer")


def wait_end(client, run):
    def look():
        with contextlib.suppress(*GONE):
            shown = client.get(f"{RUNS}/{run}").json
            return shown if shown.get("ended_at") else None
    return wait_for(look, 60, "the run to end")


@pytest.mark.parametrize("point", [*filter(lambda point: point not in TRIGGERED, OWN), *SHARED])
def test_every_task_is_run_as_often_as_it_says(point, tmp_path):
    notes = tmp_path / "notes"
    with Cluster(ALIQUOT_MANAGER_HEARTBEAT="0.2s", ALIQUOT_RESOURCE_CPUS="4") as cluster:
        mark = cluster.folder / "died"
        mark.touch()  # not yet
        cluster.env.update(ALIQUOT_FAULT=f"{point}:any", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        mark.unlink()
        reply = ask(client, RUNS, {"payload": FILE.format(notes=notes, code=1)})
        assert reply.status == 201, reply
        run = reply.json["id"]
        assert wait_end(client, run)["state"] == "failed"
        counts = {"first": 1, "each 1": 1, "each 2": 1, "bad": 2}
        assert collections.Counter(notes.read_text().splitlines()) == counts
        assert mark.exists() or point in AFTER, "it has not died"
        with contextlib.suppress(FileNotFoundError):
            mark.unlink()  # once more
        resumed = ask(client, f"{RUNS}/{run}/resume",
                      {"payload": FILE.format(notes=notes, code=0)})
        assert resumed.status == 200 and resumed.json["version"] == 2, resumed
        assert wait_end(client, run)["state"] == "succeeded"
        assert collections.Counter(notes.read_text().splitlines()) == {
            **counts, "bad": 3, "last": 1}
        assert mark.exists() or point == "pipeline.run.begun", "it has not died again"
        assert client.get(RUNS).json["total"] == 1
        mark.touch()
        wait_for(cluster.is_serving, 60, "the manager")
        cluster.check_audits()
        cluster.stop()


def test_a_cancelled_run_stays_cancelled():
    """The manager dies after it is durable, and before it ends a session."""
    point = "pipeline.run.changed"
    with Cluster(ALIQUOT_MANAGER_HEARTBEAT="0.2s", ALIQUOT_RESOURCE_CPUS="4") as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        text = """\
name: long
defaults: {image: process, resources: {cpu: 1, mem: 64m}}
tasks: {a: {command: sleep 600}, b: {needs: a, command: "true"}}
"""
        run = ask(client, RUNS, {"payload": text}).json["id"]
        wait_for(lambda: client.get(f"{RUNS}/{run}").json["running"] == 1, 60, "its session")
        with contextlib.suppress(*GONE):
            client.post(f"{RUNS}/{run}/cancel", {})
        ended = wait_end(client, run)
        assert mark.exists(), "it has not died"
        assert ended["state"] == "cancelled", ended
        assert [task["state"] for task in ended["tasks"]] == ["cancelled", "cancelled"], ended
        cluster.check_audits()
        cluster.stop()


@pytest.mark.parametrize("passage", [1, 2], ids=["of the schedule", "of the end"])
@pytest.mark.parametrize("point", [*TRIGGERED, "pipeline.step.written"])
def test_a_due_time_and_an_end_start_one_run_each(point, passage, tmp_path):
    """A schedule starts the first pipeline, its end the second one."""
    notes = tmp_path / "notes"
    task = "tasks: {a: {image: process, resources: {cpu: 1, mem: 64m}, command: 'echo %s >>%s'}}\n"
    with Cluster(ALIQUOT_MANAGER_HEARTBEAT="0.2s", ALIQUOT_RESOURCE_CPUS="4") as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=f"{point}:{passage}", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        for name, triggers in (("first", "{schedule: {cron: 0 2 * * *}}"),
                               ("second", "{after: {pipeline: first}}")):
            text = f"name: {name}\ntriggers: {triggers}\n" + task % (name, notes)
            assert client.post("/aliquot/v1/pipelines", {"payload": text}).status == 201
            reply = client.post(f"/aliquot/v1/pipelines/{name}/enable", {})
            assert reply.status == 200, reply
        due = client.get("/aliquot/v1/pipeline-triggers").json["items"][0]["next_at"]
        client.shift = int(datetime.datetime.fromisoformat(due).timestamp() - time.time()) + 1
        cluster.jump(wall=client.shift)

        def ended():
            with contextlib.suppress(*GONE):
                runs = client.get(RUNS).json["items"]
                return {run["name"] for run in runs if run["ended_at"]} >= {"first.1", "second.1"}
        wait_for(ended, 60, "both runs to end")
        assert mark.exists(), "it has not died"
        wait_for(cluster.is_serving, 60, "the manager")
        runs = {run["name"]: run for run in client.get(RUNS).json["items"]}
        assert set(runs) == {"first.1", "second.1"}
        assert (runs["first.1"]["due_at"], runs["second.1"]["started_by"]) == (due, "end of first.1")
        assert sorted(notes.read_text().split()) == ["first", "second"]
        cluster.jump(wall=0)
        cluster.check_audits()
        cluster.stop()
