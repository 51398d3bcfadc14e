# SPDX-License-Identifier: Apache-2.0
"""Snakemake's own executor for Slurm, unmodified, with Slurm's commands as links to aliquot."""

import signal
import subprocess
import sys
import time

import pytest

import fetched
from cluster import Cluster, wait_for
from slurm_links import OFFER, PLENTY_MB, environment

PACKAGES = ("snakemake==9.27.1", "snakemake-executor-plugin-slurm==2.8.0",
            "snakemake-executor-plugin-slurm-jobstep==0.6.1")
OPTIONS = ("--executor", "slurm", "--jobs", "4", "--latency-wait", "15",
           "--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1",
           "--default-resources", f"mem_mb={PLENTY_MB}", "runtime=5")

# Two of each of three rules, which may run at the same time, then three that need them.
SIX_RULES = """
rule all:
    input: "report.txt"
rule fetch:
    output: "raw/{n}.txt"
    shell: "echo c b a | tr ' ' '\\n' >{output}"
rule sort:
    input: "raw/{n}.txt"
    output: "sorted/{n}.txt"
    shell: "sort {input} >{output}"
rule count:
    input: "sorted/{n}.txt"
    output: "count/{n}.txt"
    shell: "wc -l <{input} >{output}"
rule merge:
    input: expand("count/{n}.txt", n=["x", "y"])
    output: "merged.txt"
    shell: "cat {input} >{output}"
rule report:
    input: "merged.txt"
    output: "report.txt"
    shell: "cat {input} >{output}"
"""

ONE_FAILS = """
rule all:
    input: "good.txt", "bad.txt"
rule good:
    output: "good.txt"
    shell: "echo good >{output}"
rule bad:
    output: "bad.txt"
    shell: "echo it goes wrong >&2; exit 3"
"""

LONG = """
rule all:
    input: "0.txt", "1.txt"
rule long:
    output: "{n}.txt"
    shell: "touch started-{wildcards.n}; sleep 1000"
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**OFFER) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def user(cluster, tmp_path_factory):
    packages = fetched.python_packages(*PACKAGES)
    env = environment(cluster, tmp_path_factory.mktemp("slurm"))
    return {**env, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}


def start(user, folder, rules):
    (folder / "Snakefile").write_text(rules)
    return subprocess.Popen([sys.executable, "-m", "snakemake", *OPTIONS], cwd=folder, env=user,
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ask(user, *words):
    return subprocess.run(words, env=user, capture_output=True, text=True, check=True).stdout


def test_a_workflow_of_six_rules(user, tmp_path):
    made = start(user, tmp_path, SIX_RULES)
    said, _ = made.communicate(timeout=580)
    assert made.returncode == 0, said
    assert (tmp_path / "report.txt").read_text().split() == ["3", "3"]
    run = said.split("SLURM run ID: ")[1].split()[0]
    rows = ask(user, "sacct", "-nP", "-o", "JobIDRaw,State,Comment,JobName", "--name", run).split()
    assert len(rows) == 8 and all("|COMPLETED|rule_" in row and run in row for row in rows), rows


def test_a_job_that_fails(user, tmp_path):
    made = start(user, tmp_path, ONE_FAILS)
    said, _ = made.communicate(timeout=300)
    assert made.returncode == 1 and "SLURM status is: 'FAILED'" in said, said
    assert (tmp_path / "good.txt").read_text() == "good\n"
    logs = list(tmp_path.glob(".snakemake/slurm_logs/rule_bad/*.log"))
    assert len(logs) == 1 and "it goes wrong" in logs[0].read_text(), said


def test_ctrl_c_ends_the_jobs(cluster, user, tmp_path):
    made = start(user, tmp_path, LONG)
    wait_for(lambda: len(list(tmp_path.glob("started-*"))) == 2, 200, "both jobs")
    time.sleep(1)
    made.send_signal(signal.SIGINT)
    said, _ = made.communicate(timeout=100)
    assert made.returncode != 0, said
    wait_for(lambda: not ask(user, "squeue", "-h", "--me"), 60, "the jobs to be gone")
    assert not cluster.live_sessions()
