# SPDX-License-Identifier: Apache-2.0
"""Reservations in the console: the list, the form, a change, a cancellation, a launch in one, and a
session that waits because of one."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from browser import Browser  # noqa: E402
from client import USER  # noqa: E402
from cluster import wait_status  # noqa: E402
from console_cluster import ConsoleCluster  # noqa: E402
from test_console import (SIZES, commands, logged_in, made, nothing_left, see,  # noqa: E402
                          text, wait_text)
from web import EMAIL, PASSWORD  # noqa: E402

__all__ = ["nothing_left"]  # a fixture
PATH = "/aliquot/v1/reservations"
ROWS = "[...document.querySelectorAll('.rows .row')].map((row) => row.innerText.replace(/\\s+/g, ' '))"


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
def none_left(cluster, nothing_left):
    yield
    for reservation in cluster.client().get(PATH).json["items"]:
        assert cluster.client().post(f"{PATH}/{reservation['id']}/cancel", {}).status == 204


def reserve(cluster, name, start, cpus="8"):
    reply = cluster.client().post(PATH, {"name": name, "start": start, "duration": "1h",
                                         "resources": {"cpu": cpus}, "for": ["project:default"]})
    assert reply.status == 201, reply
    return reply.json


def fill(page, **fields):
    page.wait_for("document.querySelector('#reserve-name') !== null")
    for name, value in fields.items():
        page.fill(f"#reserve-{name}", value)


@pytest.mark.gate
def test_created_changed_and_canceled(browser, cluster):
    page = logged_in(browser, cluster, EMAIL, PASSWORD)
    page.keyboard.press("5")
    wait_text(page, "There are no reservations for you.")
    page.click(".filters a.main")
    fill(page, name="exam", resources="cpu=2", start="1h", duration="1h", **{"for": "project:nowhere"})
    page.click(".launch button.main")
    wait_text(page, "there is no project 'nowhere'", ".said")
    page.wait_for("document.querySelector('#reserve-for').getAttribute('aria-invalid') === 'true'")
    page.fill("#reserve-for", "project:default")
    assert commands(page, ".actions")["Copy as command"] == (
        "aliquot reservation create --start 1h --duration 1h -r cpu=2 --for project:default exam")
    page.click(".launch button.main")
    wait_text(page, "planned", ".run header")
    made = cluster.client().get(f"{PATH}/exam").json
    assert (made["duration"], made["resources"]["cpu"], made["for"]) == (3600, "2", ["project:default"])
    assert page.violations() == []

    page.fill("#reserve-duration", "2h")
    assert commands(page, ".actions")["Copy as command"] == (
        "aliquot reservation update --duration 2h exam")
    page.click(".launch button.main")
    wait_text(page, "was changed", ".said")
    assert cluster.client().get(f"{PATH}/exam").json["duration"] == 7200

    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("5")
    page.wait_for(f"{ROWS}.some((row) => row.includes('planned exam 2 CPU'))")
    assert page.evaluate("document.querySelectorAll('.time-line > .planned').length") == 1
    assert page.violations() == []
    page.click("text=exam")
    wait_text(page, "planned", ".run header")
    page.keyboard.press("x")
    page.keyboard.press("y")
    wait_text(page, "canceled", ".run header .state")
    assert cluster.client().get(f"{PATH}/exam").json["state"] == "canceled"
    assert [problem for problem in page.problems() if "400 (Bad Request)" not in problem] == []


@pytest.mark.gate
def test_a_session_is_launched_in_one(browser, cluster):
    reserve(cluster, "course", "0s", cpus="4")
    page = logged_in(browser, cluster)
    page.keyboard.press("5")
    page.click("text=course")
    wait_text(page, "active", ".run header")
    assert "Change" not in text(page, ".run")  # users see it, administrators change it
    page.click("text=Launch in it")
    page.wait_for("document.querySelector('#reservation')?.value === 'course'")
    page.fill("#image", "shell")
    page.fill("#name", "inside")
    assert "--reservation course" in commands(page, ".actions")["Copy as command"]
    wait_text(page, "starts", ".answer")
    page.click(".launch button.main")
    shown = wait_status(cluster.client(USER), "inside", "RUNNING")
    assert shown["reservation"] == "course"
    page.keyboard.press("5")
    page.click("text=course")
    wait_text(page, "inside", ".run dl")
    assert not page.problems()


def test_a_session_that_waits_leads_to_it(browser, cluster):
    reserve(cluster, "later", "1h")
    session = made(cluster, USER, "endless", config={"resources": {"cpu": "1", "mem": "64m"}})
    page = logged_in(browser, cluster)
    page.evaluate("location.hash = '#/sessions'")
    see(page, session)
    wait_text(page, "reservation 'later' begins", ".peek .reason")
    page.click(".peek .reason a")
    wait_text(page, "later", ".run h2")
    assert page.violations() == []
    assert not page.problems()


@pytest.mark.parametrize("size", SIZES)
def test_it_fits_the_screen(browser, cluster, size):
    reserve(cluster, "exam", "1h", cpus="2")
    page = logged_in(browser, cluster, EMAIL, PASSWORD, size)
    for at in ("#/reservations", "#/reservation/exam", "#/reserve"):
        page.evaluate(f"location.hash = {at!r}")
        page.wait_for("document.querySelector('.rows .row, .launch') !== null")
        assert page.violations() == [], at
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), at
    assert not page.problems()
