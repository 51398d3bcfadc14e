# SPDX-License-Identifier: Apache-2.0
"""Slurm's commands as links to aliquot, as their users and programs call them."""

import getpass
import os
import re
import subprocess
import time

import pytest

from client import USER
from cluster import Cluster, wait_for
from slurm_links import OFFER, PLENTY_MB, environment


# As Nextflow's executor for Slurm writes it before its launcher, with the directives that it has.
NEXTFLOW = """#!/bin/bash
### ---
### name: 'hello (1)'
### ...
#SBATCH -J nf-hello_(1)
#SBATCH -o {work}/.command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -c 1
#SBATCH -t 01:00:00
#SBATCH --mem 64M
NXF_CHDIR={work}
set -e
echo hello >.command.out
cat .command.out
exit_status={status}
printf $exit_status >{work}/.exitcode
exit $exit_status
"""


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
def call(user, tmp_path):
    def run(*words, **more):
        env = {**user, **more.pop("env", {})}
        return subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True,
                              timeout=100, check=False, **more)
    return run


@pytest.fixture
def say(call):
    def run(*words, **more):
        done = call(*words, **more)
        assert done.returncode == 0, done
        return done.stdout
    return run


def submit(say, *words, **more):
    return say("sbatch", "--parsable", "--mem=64M", *words, **more).strip()


def wait_state(say, number, state):
    def look():
        return say("sacct", "-nXP", "-o", "State", "-j", number).strip() == state
    wait_for(look, 60, f"job {number} to be {state}")


@pytest.mark.gate
def test_sbatch_takes_options_environment_and_files(say, tmp_path):
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH -J script --mem=1G\n"
                                     "echo \"$1 $GREETING $SLURM_JOB_NAME $PWD\"; echo bad >&2\n")
    said = say("sbatch", "-J", "train", "--mem=64M", "-o", "out-%x.log", "-e", "err.log", "job.sh",
               "a b", env={"GREETING": "hello"})
    number = re.fullmatch(r"Submitted batch job (\d+)\n", said)[1]
    wait_state(say, number, "COMPLETED")
    assert (tmp_path / "out-train.log").read_text() == f"a b hello train {tmp_path}\n"
    assert (tmp_path / "err.log").read_text() == "bad\n"
    assert say("sacct", "-nP", "-o", "ReqMem,JobName", "-j", number) == "64M|train\n"


def test_wrap_waits_and_appends(call, say, tmp_path):
    for _ in range(2):
        done = call("sbatch", "--wait", "--mem=64M", "--open-mode=append", "-o", "o", "--wrap",
                    "echo $0 | tail -c 5; exit 7")
        assert done.returncode == 7 and done.stdout.startswith("Submitted batch job "), done
    assert (tmp_path / "o").read_text() == "wrap\nwrap\n"
    refused = call("sbatch", "--wrap", "true", "job.sh")
    assert refused.returncode == 1 and "--wrap" in refused.stderr, refused


def test_the_output_is_in_the_directory_of_submission(say, tmp_path):
    number = submit(say, "--export=NONE", input="#!/bin/sh\necho x${GREETING}x\n",
                    env={"GREETING": "hello"})
    wait_state(say, number, "COMPLETED")
    [log] = tmp_path.glob("slurm-*.out")
    assert log.read_text() == "xx\n"


def test_a_directory_that_is_missing_fails_the_job(say):
    number = submit(say, "-D", "/nowhere", "--wrap", "true")
    wait_state(say, number, "FAILED")


def test_jobs_may_share_a_name(say):
    numbers = [submit(say, "-J", "same", "--wrap", "sleep 1000") for _ in range(3)]
    rows = say("squeue", "-h", "-o", "%i|%j", "--name", "same").split()
    assert sorted(rows) == sorted(f"{number}|same" for number in numbers)
    say("scancel", "--name", "same")
    for number in numbers:
        wait_state(say, number, "CANCELLED")


@pytest.mark.gate
def test_what_nextflow_does(call, say, tmp_path):
    for status, state in ((0, "CD"), (3, "F")):
        work = tmp_path / f"work{status}"
        work.mkdir()
        (work / ".command.run").write_text(NEXTFLOW.format(work=work, status=status))
        said = subprocess.run(["bash", "-c", "cd $0; sbatch .command.run", work], check=True,
                              capture_output=True, text=True, env={**os.environ, **_env(call)})
        number = re.search(r"Submitted batch job (\d+)", said.stdout)[1]
        wait_for((work / ".exitcode").exists, 60, "the end")
        queue = ("squeue", "--noheader", "-o", "%i %t", "-t", "all", "-u", getpass.getuser())
        wait_for(lambda n=number, s=state, q=queue: f"{n} {s}" in say(*q).splitlines(), 30, state)
        assert (work / ".exitcode").read_text() == str(status)
        assert (work / ".command.log").read_text() == "hello\n"
    number = submit(say, "--wrap", "sleep 1000")
    wait_for(lambda: f"{number} R" in say(*queue).splitlines(), 60, "it to run")
    say("scancel", number)
    wait_for(lambda: f"{number} CA" in say(*queue).splitlines(), 60, "it to be gone")


def _env(call):
    return dict(line.split("=", 1) for line in call("env").stdout.splitlines() if "=" in line)


def test_a_dependency_is_a_number(say, tmp_path):
    first = submit(say, "--wrap", "until test -e go; do sleep 0.1; done; exit 3")
    after = submit(say, "-d", f"afterok:{first}", "--wrap", "true")
    assert say("squeue", "-h", "-o", "%t", "-j", after) == "PD\n"
    (tmp_path / "go").touch()
    wait_state(say, after, "CANCELLED")


def test_numbers_are_of_slurm_alone(cluster, say):
    number = submit(say, "-J", "numbered", "--wrap", "true")
    wait_state(say, number, "COMPLETED")
    assert cluster.cli("session", "info", number).returncode == 5
    named = say("scontrol", "show", "job", number)
    assert f"JobId={number} JobName=numbered" in named and "JobState=COMPLETED" in named


def test_the_errors_of_slurm(call):
    for words, said in (
            (("squeue", "--bogus"), "squeue: error: unknown option '--bogus'"),
            (("squeue", "-j", "999999"), "squeue: error: Invalid job id specified: 999999"),
            (("squeue", "-o", "%y"), "squeue: error: Invalid format specification: %y"),
            (("squeue", "-t", "SLOW"), "squeue: error: Invalid job state specified: SLOW"),
            (("sacct", "-o", "Nonsense"), "sacct: error: Invalid field requested: \"Nonsense\""),
            (("sacct", "-S", "once"), "sacct: error: Invalid time specification"),
            (("scancel",), "scancel: error: No job identification provided"),
            (("scancel", "999999"), "scancel: error: Kill job error: Invalid job id"),
            (("scancel", "-s", "USR1", "1"), "scancel: error: cannot send signal USR1"),
            (("scontrol", "hold", "1"), "scontrol: error: hold is not supported"),
            (("scontrol", "show", "cat"), "scontrol: error: invalid entity:cat"),
            (("sbatch", "--nonsense", "x"), "sbatch: error: sbatch has no option '--nonsense'"),
            (("sbatch", "-p", "nowhere", "--wrap", "true"), "sbatch: error: --partition: "),
            (("sbatch", "missing.sh"), "sbatch: error: "),
            (("srun",), "srun: error: No command given to execute")):
        done = call(*words)
        assert done.returncode == 1 and done.stderr.startswith(said), (words, done)


def test_sinfo_has_the_groups_of_nodes(say):
    assert say("sinfo", "-h", "-o", "%P") == "default*\n"
    assert say("sinfo", "-h", "-o", "%R %D %N %c") == "default 1 agent 4\n"
    assert "PARTITION AVAIL" in say("sinfo")
    assert "MinJobAge               = 300 sec\n" in say("scontrol", "show", "config")
    assert "NodeName=agent" in say("scontrol", "show", "node")
    assert say("scontrol", "show", "hostnames", "a,b") == "a\nb\n"


def test_srun_outside_of_a_job_is_one(call):
    done = call("srun", "--mem=64M", "-J", "alone", "sh", "-c", "echo out; exit 4")
    assert done.returncode == 4 and done.stdout == "out\n", done


def test_srun_inside_of_a_job_runs_its_tasks(say, tmp_path):
    number = submit(say, f"--mem={PLENTY_MB}M", "-n", "2", "-o", "o", "--wrap",
                    "srun --cpu-bind=q sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'")
    wait_state(say, number, "COMPLETED")
    assert sorted((tmp_path / "o").read_text().splitlines()) == ["0 of 2", "1 of 2"]


def test_users_see_their_own(cluster, call, say):
    number = submit(say, "--wrap", "sleep 1000")
    other = cluster.cli_env(USER)
    assert call("squeue", "-h", env=other).stdout == ""
    assert call("scancel", number, env=other).returncode == 1
    assert number in say("squeue", "-h", "-o", "%i", "--me").split()
    say("scancel", number)
    wait_state(say, number, "CANCELLED")
    time.sleep(0.1)
    say("scancel", number)
