# SPDX-License-Identifier: Apache-2.0
"""Arrays by Slurm's commands: submitted, shown, cancelled, accounted and waited for."""

import json
import subprocess

import pytest

from cluster import Cluster, wait_for
from slurm_links import OFFER, environment


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**OFFER) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(scope="module")
def user(cluster, tmp_path_factory):
    return environment(cluster, tmp_path_factory.mktemp("slurm"))


@pytest.fixture
def call(user, cluster, tmp_path):
    def run(*words, **more):
        env = {**user, **more.pop("env", {})}
        return subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True,
                              timeout=100, check=False, **more)
    yield run
    cluster.cli("rm", "--all", "--yes", "--wait")


@pytest.fixture
def say(call):
    def run(*words, **more):
        done = call(*words, **more)
        assert done.returncode == 0, done
        return done.stdout
    return run


def submit(say, *words):
    return say("sbatch", "--parsable", "--mem=64M", *words).strip()


def rows(say, *words):
    return [line.split("|") for line in say(*words).splitlines()]


def states(say, number):
    return dict(rows(say, "sacct", "-nXP", "-o", "JobID,State", "-j", number))


def wait_states(say, number, wanted):
    wait_for(lambda: states(say, number) == wanted, 100, lambda: f"{states(say, number)} to change")


def until(tmp_path, then="true"):
    return f"while ! test -e {tmp_path}/gate; do sleep 0.1; done; {then}"


@pytest.mark.gate
def test_an_array_is_shown_as_slurm_does(say, call, tmp_path):
    number = submit(say, "-J", "rows", "--array=3-8%2", "--wrap", until(tmp_path))
    wait_for(lambda: len(rows(say, "squeue", "-h", "-t", "R", "-o", "%i", "-j", number)) == 2, 60,
             "two to run")
    shown = rows(say, "squeue", "-h", "-o", "%i|%F|%K|%t|%j", "-j", number)
    assert sorted(shown) == [[f"{number}_3", number, "3", "R", "rows"],
                             [f"{number}_4", number, "4", "R", "rows"],
                             [f"{number}_[5-8%2]", number, "5-8%2", "PD", "rows"]]
    expanded = rows(say, "squeue", "-h", "-r", "-o", "%i|%t", "-j", number)
    assert sorted(expanded) == [[f"{number}_{i}", "R" if i < 5 else "PD"] for i in range(3, 9)]
    assert rows(say, "squeue", "-h", "-o", "%i", "-j", f"{number}_4") == [[f"{number}_4"]]
    assert rows(say, "squeue", "-h", "-o", "%i", "-j", f"{number}_[4,7]") == [
        [f"{number}_4"], [f"{number}_[7%2]"]] or rows(
        say, "squeue", "-h", "-o", "%i", "-j", f"{number}_[4,7]") == [
        [f"{number}_[7%2]"], [f"{number}_4"]]
    raw = rows(say, "squeue", "-h", "-t", "R", "-o", "%A", "-j", number)
    assert len({one for (one,) in raw}) == 2 and [number] not in raw
    assert f"ArrayJobId={number} ArrayTaskId=4" in say("scontrol", "show", "job", f"{number}_4")
    assert [f"{number}_[5-8%2]", "PENDING"] in rows(say, "sacct", "-nXP", "-o", "JobID,State")
    for wrong in (f"{number}_9", f"{number}_[3-9]", "999999", "999999_1"):
        done = call("squeue", "-h", "-j", wrong)
        assert done.returncode and "Invalid job id specified" in done.stderr, done
    (tmp_path / "gate").touch()
    wait_states(say, number, {f"{number}_{i}": "COMPLETED" for i in range(3, 9)})
    assert rows(say, "squeue", "-h", "-j", number) == []
    assert states(say, f"{number}_[5-6]") == {f"{number}_{i}": "COMPLETED" for i in (5, 6)}


@pytest.mark.gate
def test_files_and_variables_of_elements(say, tmp_path):
    number = submit(say, "--array=2-10:4", "-o", "out-%A_%a-%j.txt", "-e", "err-%A_%a", "--wrap",
                    "env | grep ^SLURM_; echo bad >&2")
    wait_states(say, number, {f"{number}_{i}": "COMPLETED" for i in (2, 6, 10)})
    for index in (2, 6, 10):
        assert (tmp_path / f"err-{number}_{index}").read_text() == "bad\n"
        (out,) = tmp_path.glob(f"out-{number}_{index}-*.txt")
        seen = dict(line.split("=", 1) for line in out.read_text().splitlines())
        assert {name: seen[f"SLURM_ARRAY_{name}"] for name in (
            "JOB_ID", "TASK_ID", "TASK_COUNT", "TASK_MIN", "TASK_MAX", "TASK_STEP")} == {
            "JOB_ID": number, "TASK_ID": str(index), "TASK_COUNT": "3", "TASK_MIN": "2",
            "TASK_MAX": "10", "TASK_STEP": "4"}
        assert out.name == f"out-{number}_{index}-{seen['SLURM_JOB_ID']}.txt"
    number = submit(say, "--array=0-1", "--wrap", "echo $SLURM_ARRAY_TASK_ID")
    wait_states(say, number, {f"{number}_{i}": "COMPLETED" for i in (0, 1)})
    assert (tmp_path / f"slurm-{number}_1.out").read_text() == "1\n"


@pytest.mark.gate
def test_scancel_takes_elements_and_arrays(say, call, tmp_path):
    number = submit(say, "--array=0-99%2", "--wrap", until(tmp_path))
    wait_for(lambda: len(rows(say, "squeue", "-h", "-t", "R", "-o", "%i", "-j", number)) == 2, 60,
             "two to run")
    say("scancel", f"{number}_0", f"{number}_[5-98]")
    wait_for(lambda: sorted(rows(say, "squeue", "-h", "-r", "-o", "%i", "-j", number)) == sorted(
        [f"{number}_{i}"] for i in (1, 2, 3, 4, 99)), 60, "five to be left")
    say("scancel", "--state=PENDING", number)
    wait_for(lambda: rows(say, "squeue", "-h", "-t", "PD", "-o", "%i", "-j", number) == [], 60,
             "none to wait")
    assert rows(say, "squeue", "-h", "-o", "%i", "-j", f"{number}_1") == [[f"{number}_1"]]
    say("scancel", number)
    wait_for(lambda: rows(say, "squeue", "-h", "-j", number) == [], 60, "it to end")
    assert set(states(say, number).values()) == {"CANCELLED"}
    assert f"{number}_[" in str(states(say, number))  # elements that never had a session
    done = call("scancel", f"{number}_500")
    assert done.returncode and "Invalid job id specified" in done.stderr, done
    say("scancel", number)


@pytest.mark.gate
def test_jobs_wait_for_arrays_and_elements(say, tmp_path):
    number = submit(say, "--array=0-3%1", "--wrap", until(tmp_path, "test $SLURM_ARRAY_TASK_ID != 2"))
    any_end = submit(say, "-d", f"afterany:{number}", "--wrap", "true")
    all_ok = submit(say, "-d", f"afterok:{number}", "--wrap", "true")
    one_ok = submit(say, "-d", f"afterok:{number}_3", "--wrap", "true")
    each = submit(say, "--array=1-3", "-d", f"aftercorr:{number}", "--wrap", "true")
    assert rows(say, "squeue", "-h", "-o", "%i|%r", "-j", each) == [[f"{each}_[1-3]", "Dependency"]]
    for waiting in (all_ok, one_ok):
        assert rows(say, "squeue", "-h", "-o", "%r", "-j", waiting) == [["Dependency"]]
    assert rows(say, "squeue", "-rh", "-o", "%i|%r", "-j", each) == [
        [f"{each}_{index}", "Dependency"] for index in (1, 2, 3)]
    assert "Reason=Dependency" in say("scontrol", "show", "job", all_ok)
    (tmp_path / "gate").touch()
    wait_states(say, each, {f"{each}_1": "COMPLETED", f"{each}_2": "CANCELLED",
                            f"{each}_3": "COMPLETED"})
    for job, state in ((any_end, "COMPLETED"), (all_ok, "CANCELLED"), (one_ok, "COMPLETED")):
        wait_states(say, job, {job: state})
    late = submit(say, "-d", f"afternotok:{number}_2,afterok:{number}_1", "--wrap", "true")
    wait_states(say, late, {late: "COMPLETED"})


def test_what_a_job_used(say):
    number = submit(say, "--wrap", "i=0; while test $i -lt 400000; do i=$((i + 1)); done; sleep 7")
    wait_states(say, number, {number: "COMPLETED"})
    ((peak, total, allocated),) = rows(say, "sacct", "-nXP", "-o", "MaxRSS,TotalCPU,CPUTimeRAW",
                                       "-j", number)
    assert peak.endswith("K") and int(peak[:-1]) > 0, peak
    minutes, seconds = total.split(":")
    assert int(minutes) * 60 + float(seconds) > 0, total
    assert int(allocated) >= 7


def test_options_in_the_environment(call, say, tmp_path):
    env = {"SBATCH_ARRAY_INX": "1-2", "SBATCH_JOB_NAME": "by-env", "SBATCH_OUTPUT": "env-%a",
           "SBATCH_MEM_PER_NODE": "64M", "SBATCH_TIMELIMIT": "5"}
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -J by-script\n#SBATCH -t 20\necho $SLURM_JOB_NAME\n")
    number = say("sbatch", "--parsable", "-t", "10", "job.sh", env=env).strip()
    wait_states(say, number, {f"{number}_{i}": "COMPLETED" for i in (1, 2)})
    assert (tmp_path / "env-2").read_text() == "by-env\n"
    ((limit, name),) = rows(say, "sacct", "-nXP", "-o", "TimelimitRaw,JobName", "-j", f"{number}_1")
    assert (limit, name) == ("10", "by-env")
    done = call("sbatch", "--wrap", "true", env={"SBATCH_TIMELIMIT": "soon"})
    assert done.returncode and "--time" in done.stderr, done


def test_dependencies_and_reservations_are_shown(say, tmp_path):
    """squeue and scontrol name jobs, arrays and elements as sbatch --dependency takes them."""
    gate = tmp_path / "gate"
    command = f"while ! test -e {gate}; do sleep 0.1; done"
    job = submit(say, f"--wrap={command}")
    array = submit(say, "--array=0-3%1", f"--wrap={command}")
    last = submit(say, f"--dependency=afterok:{job},afterany:{array},afternotok:{array}_3",
                  "--wrap=true")
    many = submit(say, "--array=0-3", f"--dependency=aftercorr:{array}", "--wrap=true")
    shown = say("squeue", "-h", "-o", "%E|%v", "-j", last).strip()
    waits, reservation = shown.split("|")
    assert reservation == "(null)"
    assert sorted(waits.split(",")) == sorted([
        f"afterok:{job}(unfulfilled)", f"afterany:{array}_*(unfulfilled)",
        f"afternotok:{array}_3(unfulfilled)"]), waits
    assert say("squeue", "-h", "-O", "Dependency:60", "-j", many).strip() \
        == f"aftercorr:{array}_*(unfulfilled)"
    assert say("squeue", "-h", "-o", "%E", "-j", job).strip() == "(null)"
    text = say("scontrol", "show", "job", last)
    assert f"Dependency={waits}" in text and "Reservation=(null)" in text
    assert say("sinfo", "-h", "-T") == ""
    shown = json.loads(say("squeue", "--json", "-j", f"{last},{many}"))
    assert shown["meta"]["plugin"]["data_parser"] == "data_parser/v0.0.41"
    one, elements = shown["jobs"]
    assert one["job_id"] == int(last) and one["dependency"] == waits
    assert (one["job_state"], one["state_reason"]) == (["PENDING"], "Dependency")
    assert one["array_job_id"] == {"set": False, "infinite": False, "number": 0}
    assert one["memory_per_node"]["number"] == 64 and one["time_limit"]["infinite"]
    assert elements["array_job_id"] == {"set": True, "infinite": False, "number": int(many)}
    assert (elements["array_task_id"]["set"], elements["array_task_string"]) == (False, "0-3")
    gate.touch()
    wait_states(say, job, {job: "COMPLETED"})
