# SPDX-License-Identifier: Apache-2.0
"""A manager that has stopped (SIGSTOP, a hung machine) closes no connection: who follows it is
told, and when it goes on nobody was lost."""

import contextlib
import os
import select
import signal
import subprocess
import time

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from world import BUILD


@pytest.fixture(scope="module")
def cluster():
    with Cluster(LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def session(cluster):
    """Runs, and prints nothing after its first line."""
    client = cluster.client()
    made = client.post("/session", batch("quiet", "echo begun; exec sleep 1000", image="process"))
    assert made.status == 201, made
    wait_status(client, made.json["sessionId"], "RUNNING")
    yield "quiet"
    client.send("DELETE", "/session/quiet?forced=true")
    wait_status(client, made.json["sessionId"], "TERMINATED")


@contextlib.contextmanager
def stopped(cluster):
    manager = cluster.programs["manager"]
    manager.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        manager.signal(signal.SIGCONT)


def wait_said(process, words, seconds=90):
    """Standard error until it has the words."""
    said, end = "", time.monotonic() + seconds
    while words not in said:
        left = end - time.monotonic()
        assert left > 0 and process.poll() is None, (said, process.poll())
        if select.select([process.stderr], [], [], min(left, 1))[0]:
            said += os.read(process.stderr.fileno(), 4096).decode()
    return said


@contextlib.contextmanager
def following(cluster, *words):
    process = subprocess.Popen([BUILD / "aliquot", *words], stdin=subprocess.DEVNULL,
                               env={**cluster.env, **cluster.cli_env()}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_logs_say_that_they_hear_nothing(cluster, session):
    with following(cluster, "logs", "-f", session) as process:
        assert process.stdout.readline() == b"begun\n"
        with stopped(cluster):
            said = wait_said(process, "the manager does not answer")
            assert said.count("aliquot:") == 1 and "waiting for it" in said, said
        wait_said(process, "the manager answers again")
        cluster.client().send("DELETE", f"/session/{session}")
        process.wait(60)


def test_who_waits_for_an_end_is_told(cluster, session):
    with following(cluster, "session", "wait", session) as process:
        time.sleep(1)
        with stopped(cluster):
            wait_said(process, "the manager does not answer")
        cluster.client().send("DELETE", f"/session/{session}")
        process.wait(60)
