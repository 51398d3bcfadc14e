# SPDX-License-Identifier: Apache-2.0
"""Pipelines that are started by the clock and by the ends of others: once each, also when the clock
jumps, the manager was away, or a run is in the way. Tests move the clock of the programs."""

import datetime
import shutil
import time

import pytest

from client import ADMIN, USER
from cluster import Cluster, wait_for
from runtimes import settings_of

pytestmark = pytest.mark.engines

RUNS = "/aliquot/v1/pipeline-runs"
TRIGGERS = "/aliquot/v1/pipeline-triggers"
PIPELINES = "/aliquot/v1/pipelines"
DAY, HOUR = 86400, 3600
TASKS = "defaults: {image: process, resources: {cpu: 1, mem: 64m}}\ntasks: {a: {command: \"%s\"}}\n"


class Moved:
    """A cluster whose programs have another time than the machine."""

    def __init__(self, cluster):
        self.cluster, self.shift = cluster, 0

    def now(self):
        return time.time() + self.shift

    def move(self, seconds):
        self.shift += int(seconds)
        self.cluster.jump(wall=self.shift)

    def move_to(self, text, after=1):
        """To so many seconds after the time of an answer."""
        self.move(datetime.datetime.fromisoformat(text).timestamp() - self.now() + after)

    def client(self, keypair=ADMIN):
        client = self.cluster.client(keypair)
        client.shift = self.shift
        return client

    def keep(self, name, triggers, command="true", keypair=ADMIN, parameters=""):
        """Keep a pipeline and enable it; its triggers."""
        text = f"name: {name}\n{parameters}triggers:\n{triggers}{TASKS % command}"
        reply = self.client(keypair).post(PIPELINES, {"payload": text})
        assert reply.status == 201, reply
        reply = self.client(keypair).post(f"{PIPELINES}/{name}/enable", {})
        assert reply.status == 200, reply
        return reply.json["items"]

    def triggers(self, name, keypair=ADMIN):
        rows = self.client(keypair).get(TRIGGERS + f'?filter=pipeline=="{name}"').json["items"]
        assert rows, f"{name} has no triggers"
        return rows

    def runs(self, name, keypair=ADMIN):
        """From the oldest on."""
        rows = self.client(keypair).get(RUNS + f'?limit=1000&filter=name=="{name}"').json["items"]
        return sorted(rows, key=lambda row: row["number"])

    def wait_runs(self, name, count, keypair=ADMIN):
        def look():
            found = self.runs(name, keypair)
            return found if len(found) >= count and all(run["ended_at"] for run in found) else None
        found = wait_for(look, 60, lambda: f"{count} runs of {name}: {self.triggers(name, keypair)}")
        assert len(found) == count, found
        return found


@pytest.fixture(scope="module", name="moved")
def moved_fixture():
    with Cluster(ALIQUOT_RESOURCE_CPUS="16", ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield Moved(cluster)
        cluster.stop()


@pytest.mark.gate
def test_a_schedule_starts_one_run_at_each_due_time(moved):
    """Also when the clock is set back to before it."""
    (trigger,) = moved.keep("nightly", "  schedule:\n    cron: 30 2 * * *\n    zone: Europe/Berlin\n"
                            "    parameters: {word: dark}\n", parameters="parameters: {word: light}\n")
    due = [trigger["next_at"]]
    assert trigger["is_enabled"] and moved.runs("nightly") == []
    moved.move_to(due[0])
    (run,) = moved.wait_runs("nightly", 1)
    assert (run["due_at"], run["started_by"]) == (due[0], "30 2 * * * Europe/Berlin")
    assert run["state"] == "succeeded" and run["parameters"] == {"word": "dark"}
    (trigger,) = moved.triggers("nightly")
    assert trigger["last_result"] == "started nightly.1"
    due.append(trigger["next_at"])
    assert due[1] > due[0]
    moved.move(-2 * HOUR)  # before the due time, which comes again
    moved.move_to(due[0])
    moved.move_to(due[1])
    assert [run["due_at"] for run in moved.wait_runs("nightly", 2)] == due
    shown = moved.cluster.cli("pipeline", "show", "nightly.2").stdout
    assert f"started by 30 2 * * * Europe/Berlin, due {due[1]}" in shown
    assert "triggers: 30 2 * * * Europe/Berlin; overlap skip, missed run-once" in shown
    (kept,) = moved.client().get(PIPELINES + '?filter=name=="nightly"').json["items"]
    assert kept["next_at"] == moved.triggers("nightly")[0]["next_at"] > due[1]
    moved.client().post(f"{PIPELINES}/nightly/disable", {})


def test_the_command_line_enables_lists_and_disables(moved, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("name: own\ntriggers:\n  schedule: {cron: 0 3 * * *, zone: Asia/Kolkata}\n"
                    "  after: {pipeline: other, ends: any}\n" + TASKS % "true")
    cluster = moved.cluster

    def run(*words, status=0):
        done = cluster.cli("pipeline", *words)
        assert done.returncode == status, done
        return done.stdout + done.stderr
    assert "0 3 * * * Asia/Kolkata: next 20" in run("validate", str(path))
    note = "the triggers of 'own' are off; to switch them on: aliquot pipeline enable own"
    assert note in run("run", str(path))
    enabled = run("enable", str(path))
    assert note not in run("run", str(path))
    assert "0 3 * * * Asia/Kolkata" in enabled and "after other (any)" in enabled
    assert "yes" in run("triggers", "--filter", "pipeline=own")
    run("disable", "own")
    assert {row["is_enabled"] for row in moved.triggers("own")} == {False}
    assert {row["next_at"] for row in moved.triggers("own")} == {None}
    assert "yes" in run("enable", "own")
    run("disable", "own")
    assert "no pipeline of yours is called 'unknown'" in run("enable", "unknown", status=5)
    path.write_text("name: own\n" + TASKS % "true")
    assert "has no triggers; add 'triggers' to its file" in run("enable", str(path), status=7)
    path.write_text("name: own\ntriggers:\n  schedule: {cron: 0 3 30 2 *}\n" + TASKS % "true")
    assert "line 3, column 14: schedule '0 3 30 2 *' never comes" in run("enable", str(path), status=4)
    path.write_text("name: own\ntriggers:\n  schedule: {cron: 0 3 * * *, zone: Mars/Base}\n"
                    + TASKS % "true")
    assert "line 3, column 31: time zone 'Mars/Base' does not exist" in run("enable", str(path), status=4)
    assert "line 3, column 31" in run("validate", str(path), status=4)


def test_each_minute_is_awaited_and_not_only_jumped_to(moved):
    """The clock passes two due times by itself, from two seconds before the first."""
    (trigger,) = moved.keep("minutely", "  schedule: {cron: '* * * * *'}\n")
    moved.move_to(trigger["next_at"], after=-2)
    (first,) = moved.wait_runs("minutely", 1)
    (trigger,) = moved.triggers("minutely")
    moved.move_to(trigger["next_at"], after=-2)
    second = moved.wait_runs("minutely", 2)[1]
    moved.client().post(f"{PIPELINES}/minutely/disable", {})
    dues = [datetime.datetime.fromisoformat(run["due_at"]) for run in (first, second)]
    assert all(due.second == 0 for due in dues) and dues[0] < dues[1]


def test_missed_times_are_one_run_or_none(moved):
    """The manager was away for ten days, and the clock jumped past ten more."""
    moved.keep("once", "  schedule: {cron: 0 5 * * *}\n")
    moved.keep("never", "  missed: skip\n  schedule: {cron: 0 5 * * *}\n")
    moved.cluster.programs["manager"].kill()
    moved.move(10 * DAY)
    moved.cluster.start_manager()
    (run,) = moved.wait_runs("once", 1)
    due = datetime.datetime.fromisoformat(run["due_at"])
    assert 0 < moved.now() - due.timestamp() < DAY, "not the last due time"
    moved.move(10 * DAY)
    assert len(moved.wait_runs("once", 2)) == 2
    (skipped,) = wait_for(lambda: [row for row in moved.triggers("never") if row["last_result"]])
    assert "skipped: due at" in skipped["last_result"]
    moved.move_to(skipped["next_at"])
    assert moved.wait_runs("never", 1)[0]["due_at"] == skipped["next_at"]
    for name in ("once", "never"):
        moved.client().post(f"{PIPELINES}/{name}/disable", {})


def test_a_clock_that_was_years_ahead_does_not_silence_a_schedule(moved):
    (trigger,) = moved.keep("corrected", "  schedule: {cron: 0 6 * * *}\n")
    moved.move(1000 * DAY)
    moved.wait_runs("corrected", 1)
    assert moved.triggers("corrected")[0]["next_at"] > trigger["next_at"]
    moved.move(-1000 * DAY)
    again = wait_for(lambda: [row for row in moved.triggers("corrected")
                              if row["next_at"] <= trigger["next_at"]])
    moved.move_to(again[0]["next_at"])
    assert moved.wait_runs("corrected", 2)[1]["due_at"] == trigger["next_at"]
    moved.client().post(f"{PIPELINES}/corrected/disable", {})


@pytest.mark.parametrize("overlap", ["skip", "cancel", "allow"])
def test_a_run_in_the_way(moved, overlap):
    name = f"way-{overlap}"
    (trigger,) = moved.keep(name, f"  overlap: {overlap}\n  schedule: {{cron: 0 7 * * *}}\n",
                            command="sleep 1000")
    moved.move_to(trigger["next_at"])
    wait_for(lambda: moved.runs(name), 60, "the first run")
    (trigger,) = moved.triggers(name)
    before = trigger["next_at"]
    moved.move_to(before)
    (trigger,) = wait_for(lambda: [row for row in moved.triggers(name) if row["next_at"] > before])
    if overlap == "skip":
        assert trigger["last_result"] == f"skipped: run {name}.1 has not ended"
        assert len(moved.runs(name)) == 1
    else:
        assert trigger["last_result"] == f"started {name}.2"
        assert [run["is_cancelled"] for run in moved.runs(name)] == [overlap == "cancel", False]
    if overlap == "cancel":
        wait_for(lambda: moved.runs(name)[0]["state"] == "cancelled", 60, "the first to end")
    moved.client().post(f"{PIPELINES}/{name}/disable", {})
    for run in moved.runs(name):
        moved.client().post(f"{RUNS}/{run['id']}/cancel", {})
    wait_for(lambda: all(run["ended_at"] for run in moved.runs(name)), 60, "the runs to end")


def test_the_end_of_one_pipeline_starts_others(moved):
    moved.keep("good", "  after: {pipeline: start}\n")
    moved.keep("bad", "  after: {pipeline: start, ends: failure}\n")
    moved.keep("both", "  after: [{pipeline: start, ends: any}]\n")
    moved.keep("last", "  after: {pipeline: good}\n")

    def start(command):
        reply = moved.client().post(RUNS, {"payload": "name: start\n" + TASKS % command})
        assert reply.status == 201, reply
    start("true")
    assert moved.wait_runs("last", 1)[0]["started_by"] == "end of good.1"
    assert moved.wait_runs("both", 1)[0]["started_by"] == "end of start.1"
    assert len(moved.wait_runs("good", 1)) == 1 and moved.runs("bad") == []
    start("exit 1")
    assert moved.wait_runs("bad", 1)[0]["started_by"] == "end of start.2"
    assert len(moved.wait_runs("both", 2)) == 2 and len(moved.runs("good")) == 1
    reply = moved.client().post(PIPELINES, {
        "payload": "name: start\ntriggers: {after: {pipeline: last}}\n" + TASKS % "true"})
    assert reply.status == 400, reply
    assert "in a circle: start -> good -> last -> start" in str(reply.json), reply
    for name in ("good", "bad", "both", "last"):
        moved.client().post(f"{PIPELINES}/{name}/disable", {})


def test_a_chain_has_sixteen_pipelines(moved):
    for i in range(1, 16):
        reply = moved.client().post(PIPELINES, {
            "payload": f"name: chain{i}\ntriggers: {{after: {{pipeline: chain{i - 1}}}}}\n"
                       + TASKS % "true"})
        assert reply.status == 201, (i, reply)
    reply = moved.client().post(PIPELINES, {
        "payload": "name: chain16\ntriggers: {after: {pipeline: chain15}}\n" + TASKS % "true"})
    assert reply.status == 400 and "at most 16 pipelines" in str(reply.json), reply


def test_a_new_version_brings_its_triggers(moved):
    """What stays the same goes on; nothing that was due before is started."""
    (old,) = moved.keep("edited", "  schedule: {cron: 0 8 * * *}\n")
    text = "name: edited\ntriggers: {schedule: [{cron: 0 8 * * *}, {cron: 0 9 * * *}]}\n"
    moved.client().post(PIPELINES, {"payload": text + TASKS % "true"})
    same, new = moved.triggers("edited")
    assert same["next_at"] == old["next_at"] and new["next_at"] and new["is_enabled"]
    moved.client().post(PIPELINES, {"payload": "name: edited\n" + TASKS % "true"})
    assert moved.client().get(TRIGGERS + '?filter=pipeline=="edited"').json["items"] == []
    moved.client().post(PIPELINES, {"payload": text + TASKS % "true"})
    assert len([row for row in moved.triggers("edited") if row["is_enabled"]]) == 2
    moved.client().post(f"{PIPELINES}/edited/disable", {})


def test_triggers_of_an_owner_who_may_not_are_disabled_with_the_reason(moved):
    """Once, and not again each second."""
    moved.keep("orphan", "  schedule: {cron: 0 10 * * *}\n", keypair=USER)
    admin = moved.client()

    def set_active(value):
        reply = moved.client().send("PATCH", f"/aliquot/v1/keypairs/{USER[0]}", {"is_active": value})
        assert reply.status == 200, reply
    set_active(False)
    rows = admin.get(TRIGGERS + '?all=true&filter=pipeline=="orphan"').json["items"]
    moved.move_to(rows[0]["next_at"])
    (row,) = wait_for(lambda: [row for row in moved.client().get(
        TRIGGERS + '?all=true&filter=pipeline=="orphan"').json["items"] if not row["is_enabled"]])
    assert row["reason"] == "the owner's key is not active" and row["next_at"] is None
    log = moved.cluster.log_of("manager")
    assert log.count("disabled the triggers of pipeline 'orphan'") == 1
    set_active(True)
    assert moved.runs("orphan", USER) == []
    reply = moved.client(USER).post(f"{PIPELINES}/orphan/enable", {})
    assert reply.json["items"][0]["is_enabled"] and reply.json["items"][0]["reason"] is None
    moved.client(USER).post(f"{PIPELINES}/orphan/disable", {})
    reply = moved.client(USER).post(f"{PIPELINES}/orphan/enable", {"group": "unknown"})
    assert reply.status == 400 and "Invalid group: 'unknown'" in reply.json["data"]["group"], reply


def test_a_time_zone_that_is_removed_disables_its_schedules(tmp_path):
    """As by an update of tzdata; others go on, and the manager starts."""
    for name in ("UTC", "Europe/Berlin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(f"/usr/share/zoneinfo/{name}", tmp_path / name)
    with Cluster(TZDIR=str(tmp_path), ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        moved = Moved(cluster)
        for name in ("due", "start"):
            moved.keep(name, "  schedule: {cron: 0 3 * * *, zone: Europe/Berlin}\n")
        (utc,) = moved.keep("other", "  schedule: {cron: 0 12 * * *}\n")
        (tmp_path / "Europe/Berlin").unlink()
        moved.move_to(utc["next_at"])
        assert moved.wait_runs("other", 1)[0]["due_at"] == utc["next_at"]

        def reasons():
            return {row["reason"] for row in moved.triggers("due") + moved.triggers("start")}
        why = "time zone 'Europe/Berlin' does not exist; 'timedatectl list-timezones' lists those that do"
        assert moved.runs("due") == []
        cluster.programs["manager"].kill()
        cluster.start_manager()
        assert wait_for(lambda: reasons() == {why} and reasons()) == {why}
        assert moved.triggers("other")[0]["is_enabled"]
        cluster.stop()


def test_schedules_run_in_containers():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        moved = Moved(cluster)
        text = ("name: real\ntriggers: {schedule: {cron: 30 2 * * *, zone: America/New_York}}\n"
                "tasks:\n  a: {image: host, resources: {cpu: 1, mem: 64m},"
                " command: 'test $ALIQUOT_PIPELINE_RUN = real.1'}\n")
        assert moved.client().post(PIPELINES, {"payload": text}).status == 201
        reply = moved.client().post(f"{PIPELINES}/real/enable", {})
        moved.move_to(reply.json["items"][0]["next_at"])
        (run,) = moved.wait_runs("real", 1)
        assert run["state"] == "succeeded", moved.client().get(f"{RUNS}/real.1").json
        cluster.check_nothing_left()
        cluster.stop()
