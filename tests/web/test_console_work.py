# SPDX-License-Identifier: Apache-2.0
"""Batch work in the console: pipelines and their runs, arrays, attempts, idle sessions."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from browser import Browser  # noqa: E402
from client import ADMIN, USER  # noqa: E402
from cluster import batch, wait_for, wait_status  # noqa: E402
from console_cluster import ConsoleCluster  # noqa: E402
from test_console import (KEPT, SIZES, commands, logged_in, made, nothing_left, see, text,  # noqa: E402
                          wait_text)
from web import EMAIL, PASSWORD  # noqa: E402

__all__ = ["nothing_left"]  # a fixture
SMALL = {"resources": {"cpu": "1", "mem": "64m"}}
RUNS = "/aliquot/v1/pipeline-runs"
ARRAYS = "/aliquot/v1/arrays"
POLICY = "/aliquot/v1/keypair-policies/default"
ROWS = "[...document.querySelectorAll('.rows .row')].map((row) => row.innerText.replace(/\\s+/g, ' '))"
# What each box of the graph is called and how far it is.
BOXES = "[...document.querySelectorAll('.box')].map((box) => box.querySelector('title').textContent)"

DIGITS = """\
name: digits
parameters:
  word: {{type: string, description: what it greets}}
  epochs: {{default: 3, type: integer}}
defaults: {{image: {image}, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  prepare: {{command: "echo ${{{{ parameters.word }}}} ${{{{ parameters.epochs }}}}"}}
  train:
    needs: [prepare]
    matrix: {{rate: [0.1, 0.01], seed: [1, 2]}}
    retry: 1
    command: "echo rate ${{{{ matrix.rate }}}}; test -e /tmp/never || sleep {seconds}"
  broken: {{needs: [prepare], command: "exit 3"}}
  evaluate: {{needs: [train], command: "true"}}
  report: {{needs: [evaluate, broken], command: "true"}}
"""


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with ConsoleCluster(ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(autouse=True)
def no_runs_left(cluster, nothing_left):
    yield
    client = cluster.client()
    for run in client.get(f"{RUNS}?all=true").json["items"]:
        if run["state"] == "running":
            client.post(f"{RUNS}/{run['id']}/cancel", {})
    for array in client.get(f"{ARRAYS}?all=true&status=PENDING").json["items"]:
        client.delete(f"{ARRAYS}/{array['id']}?owner_access_key={array['access_key']}")


def digits(cluster, seconds=1000):
    return DIGITS.format(image=cluster.layout.reference("shell"), seconds=seconds)


def keep(cluster, payload, keypair=USER):
    reply = cluster.client(keypair).post("/aliquot/v1/pipelines", {"payload": payload})
    assert reply.status == 201, reply


def start(cluster, payload, keypair=USER, **more):
    reply = cluster.client(keypair).post(RUNS, {"payload": payload, **more})
    assert reply.status == 201, reply
    return reply.json


def boxes(page):
    """{name of a box: how far it is, and what it needs}"""
    return dict(label.split(": ", 1) for label in page.evaluate(BOXES))


def wait_box(page, label):
    page.wait_for(f"{BOXES}.some((label) => label.startsWith({label!r}))")


@pytest.mark.gate
def test_a_kept_pipeline_runs_is_cancelled_and_resumed(browser, cluster):
    keep(cluster, digits(cluster))
    page = logged_in(browser, cluster)
    page.keyboard.press("4")
    page.click("text=kept pipelines")
    page.click("text=digits")
    page.wait_for("document.querySelector('#parameter-word') !== null")
    assert boxes(page) == {"prepare": "1 task", "train": "4 tasks; needs prepare",
                           "broken": "1 task; needs prepare", "evaluate": "1 task; needs train",
                           "report": "1 task; needs broken, evaluate"}
    page.fill("#parameter-word", "hello")
    page.fill("#parameter-epochs", "many")
    page.click(".launch button.main")
    wait_text(page, "of type integer", ".said")
    page.wait_for("document.querySelector('#parameter-epochs').getAttribute('aria-invalid') === 'true'")
    page.fill("#parameter-epochs", "4")
    assert commands(page, ".actions")["Copy as command"] == (
        "aliquot pipeline run digits -p word=hello -p epochs=4")
    page.click(".launch button.main")

    wait_box(page, "prepare: succeeded")
    wait_box(page, "train: 4 running")
    wait_box(page, "broken: failed")
    wait_box(page, "report: skipped")
    assert "Parameters: word=hello, epochs=4" in text(page, ".run")
    page.click(".box[data-box^=train]")
    page.wait_for(f"{ROWS}.length === 4")
    page.click(".rows .row a")
    wait_text(page, "rate=0.1, seed=1", ".peek")
    wait_text(page, "rate 0.1", ".log")
    page.click(".box[data-box^=report]")
    wait_text(page, "task 'broken', which it needs, has failed", ".peek .reason")
    page.click(".box[data-box^=broken]")
    wait_text(page, "exit code 3", ".peek .reason")

    page.keyboard.press("x")
    page.keyboard.press("y")
    wait_text(page, "cancelled", ".run header .state")
    wait_box(page, "train: 4 cancelled")
    assert page.evaluate("document.querySelector('nav [aria-current]').innerText") == "Pipelines\n0"
    name = text(page, ".run h2").split("/ ")[1]
    assert commands(page, ".run header")["Resume"] == f"aliquot pipeline resume {name}"
    page.click("text=Resume")
    wait_box(page, "train: 4 running")
    wait_text(page, "running", ".run header .state")
    page.click(".box[data-box^=train]")
    page.click(".rows .row a")
    page.keyboard.press("s")  # to the task's session
    wait_text(page, "running", ".peek header")
    assert page.evaluate("location.hash").startswith("#/sessions/")
    assert [problem for problem in page.problems() if "400 (Bad Request)" not in problem] == []


def thousand(cluster):
    """200 samples that pass four steps each, a task with a matrix of 150, and reports."""
    lines = ["name: samples", f"defaults: {{image: {cluster.layout.reference('shell')}, "
                              "resources: {cpu: 1, mem: 64m}}", "max_parallel: 2", "tasks:",
             '  fetch: {command: "true"}']
    for i in range(200):
        before = "fetch"
        for step in ("align", "sort", "call", "check"):
            lines.append(f'  {step}-{i}: {{needs: [{before}], command: "sleep 1000"}}')
            before = f"{step}-{i}"
    lines.append(f'  merge: {{needs: [{", ".join(f"check-{i}" for i in range(200))}], command: "true"}}')
    lines.append(f'  plot: {{needs: [merge], matrix: {{page: {list(range(150))}}}, command: "true"}}')
    return "\n".join(lines) + "\n"


def test_a_thousand_tasks(browser, cluster):
    """Tasks that are alike share a box; only the rows that can be seen are there."""
    run = start(cluster, thousand(cluster))
    page = logged_in(browser, cluster)
    page.keyboard.press("4")
    page.keyboard.press("j")
    wait_box(page, "align-*: 2 running, 198 waiting")
    assert [label.split(":")[0] for label in page.evaluate(BOXES)] == [
        "fetch", "align-*", "sort-*", "call-*", "check-*", "merge", "plot"]
    assert boxes(page)["plot"] == "150 waiting; needs merge"
    assert page.evaluate("document.querySelectorAll('.rows .row').length") < 100
    page.click(".box[data-box^=align]")
    page.wait_for("document.querySelector('.filters .count').innerText === '200'")
    page.click("text=running 2")
    page.wait_for(f"{ROWS}.length === 2")
    reply = cluster.client(USER).delete("/aliquot/v1/sessions", {
        "sessions": [cluster.client(USER).get(f"{RUNS}/{run['id']}").json["tasks"][1]["session_id"]]})
    assert reply.status in (200, 202, 204), reply
    page.wait_for("document.querySelector('.box[data-box^=align]')"
                  ".querySelector('title').textContent.includes('1 cancelled')")
    assert not page.problems()


def test_runs_of_others(browser, cluster):
    run = start(cluster, digits(cluster), ADMIN, parameters={"word": "secret"})
    page = logged_in(browser, cluster)
    page.keyboard.press("4")
    wait_text(page, "Pipelines", ".bar nav")
    page.evaluate(f"location.hash = '#/run/{run['id']}'")
    page.wait_for("document.querySelector('.screen .empty')?.innerText.includes('pipeline')")
    assert "secret" not in page.evaluate("document.documentElement.outerHTML")


def test_an_array_is_one_row(browser, cluster):
    made(cluster, USER, "alone", startupCommand="sleep 1000", config=SMALL)
    array = made(cluster, USER, "many", startupCommand="test $ALIQUOT_ARRAY_INDEX -lt 2 || sleep 1000",
                 array="0-119", config={"resources": {"cpu": "2", "mem": "64m"}})
    page = logged_in(browser, cluster)
    page.keyboard.press("2")
    page.wait_for(f"{ROWS}.length === 2")
    page.wait_for(f"{ROWS}.some((row) => row.includes('many[0-119]')"
                  " && row.includes('2 done, 3 running, 115 waiting'))")
    assert page.evaluate("document.querySelector('nav [aria-current]').innerText") == "Sessions\n2"
    page.click(".fold")
    page.wait_for(f"{ROWS}.length === 52")
    wait_text(page, "many[0]", ".rows")
    page.click("text=many[0]")
    wait_text(page, "ended", ".peek header")
    page.evaluate("document.querySelector('.rows').scrollTo(0, 1e9)")
    page.click("text=Show more elements")
    page.wait_for("document.querySelector('.filters .count').innerText === '102'")
    page.evaluate("document.querySelector('.rows').scrollTo(0, 0)")

    page.click("text=many[0-119]")
    wait_text(page, "2 done, 3 running, 115 waiting", ".peek")
    wait_text(page, "3 of 120 elements run, 115 wait", ".peek .reason")
    assert commands(page)["Cancel"] == "aliquot rm many"
    assert page.violations() == []
    page.keyboard.press("x")
    wait_text(page, "Cancel 118 sessions?", ".peek")
    page.keyboard.press("y")
    page.wait_for(f"{ROWS}.length === 1")
    wait_text(page, "2 done, 118 cancelled", ".peek")
    page.click("text=ended")
    page.wait_for(f"{ROWS}.some((row) => row.includes('cancelled many[0-119]'))")
    shown = cluster.client(USER).get(f"{ARRAYS}/{array}").json
    assert (shown["succeeded"], shown["cancelled"]) == (2, 118)
    assert not page.problems()


def test_an_array_of_somebody_else_is_cancelled_by_an_administrator(browser, cluster):
    made(cluster, USER, "theirs", startupCommand="sleep 1000", array="1-3", config=SMALL)
    page = logged_in(browser, cluster, EMAIL, PASSWORD)
    page.keyboard.press("2")
    page.click("text=theirs[1-3]")
    wait_text(page, "3 running", ".peek")
    page.keyboard.press("x")
    wait_text(page, "Cancel 3 sessions?", ".peek")
    page.keyboard.press("y")
    wait_text(page, "cancelled", ".peek header")
    assert not page.problems()


def test_attempts_dependencies_and_use(browser, cluster):
    failing = made(cluster, USER, "failing", startupCommand="sleep 6; exit 4", config=SMALL,
                   retry=2, retry_delay="1s")
    after = made(cluster, USER, "after", startupCommand="true", dependencies=[failing], config=SMALL)
    page = logged_in(browser, cluster)
    page.evaluate("location.hash = '#/sessions'")
    see(page, after)
    wait_text(page, "Waits for the success of failing.", ".peek .reason")
    see(page, failing)
    wait_text(page, "of 3", ".peek dl")
    page.wait_for("document.querySelectorAll('[aria-label=Attempts] tbody tr').length === 3")
    wait_text(page, "failed (4)", ".peek header")
    wait_text(page, "3 of 3", ".peek dl")
    wait_text(page, "Memory peak", ".peek dl")
    assert text(page, "[aria-label=Attempts] tbody tr").split("\t")[3:5] == ["task-failed", "4"]
    assert page.violations() == []
    assert not page.problems()


def settle(cluster, idle):
    client = cluster.client()
    reply = client.post("/config/set", {"key": "config/idle/warnings", "value": "25s"})
    assert reply.status == 200, reply
    reply = client.send("PATCH", POLICY, {"idle_timeout_sec": idle})
    assert reply.status in (200, 204), reply


def test_an_idle_session_counts_down_and_is_extended(browser, cluster):
    session = made(cluster, USER, "left", config=SMALL)
    wait_status(cluster.client(USER), session, "RUNNING")
    settle(cluster, 30)
    try:
        page = logged_in(browser, cluster)
        page.keyboard.press("2")
        wait_text(page, "unless it is extended", ".rows")
        see(page, session)
        wait_text(page, "unless it is used", ".peek .idle")
        first = text(page, ".idle [role=timer]")
        page.wait_for(f"![undefined, {first!r}]"
                      ".includes(document.querySelector('.idle [role=timer]')?.innerText)")
        assert page.violations() == []
        page.click(".idle button")
        wait_text(page, "left is extended", ".said")
        page.wait_for("document.querySelector('.idle') === null")
        shown = cluster.client(USER).get(f"/aliquot/v1/sessions/{session}").json
        assert shown["idle"]["extended_until"] and not shown["idle"]["ends_soon"]
        assert not page.problems()
    finally:
        settle(cluster, 0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_how_it_looks(browser, cluster, scheme, size):
    KEPT.mkdir(parents=True, exist_ok=True)
    keep(cluster, digits(cluster), ADMIN)
    small = start(cluster, digits(cluster), ADMIN, parameters={"word": "hello"})
    wait_for(lambda: cluster.client().get(f"{RUNS}/{small['id']}").json["failed"], 60, "its failure")
    large = start(cluster, thousand(cluster), ADMIN)
    made(cluster, ADMIN, "sweep", startupCommand="sleep 1000", array="0-19", config=SMALL)
    page = logged_in(browser, cluster, EMAIL, PASSWORD, size, colorScheme=scheme)
    places = {"runs": "#/pipelines", "kept": "#/pipelines?show=kept", "pipeline": "#/pipeline/digits",
              "run": f"#/run/{small['id']}", "run-task": f"#/run/{small['id']}?box=2&task=broken",
              "run-large": f"#/run/{large['id']}?box=1", "array": "#/sessions"}
    for name, at in places.items():
        page.evaluate(f"location.hash = {at!r}")
        if name.startswith("run-") or name == "run":
            page.wait_for("document.querySelector('.box') !== null")
            wait_box(page, "align-*: " if name == "run-large" else "broken: failed")
        elif name == "pipeline":
            page.wait_for("document.querySelector('.box') !== null")
        else:
            page.wait_for("document.querySelector('.rows .row') !== null")
        if name == "array":
            page.click(".fold")
            page.wait_for(f"{ROWS}.length > 10")
        page.screenshot({"path": str(KEPT / f"{name}-{scheme}-{size}.png")})
        assert page.violations() == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert not page.problems()
