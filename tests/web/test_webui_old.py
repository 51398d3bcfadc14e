# SPDX-License-Identifier: Apache-2.0
"""Older WebUIs, unmodified, in Chromium: somebody logs in, launches a session by the form and ends it."""

import pytest

import webui
from browser import Browser
from cluster import interactive, wait_for, wait_status
from test_webui import image_fixture  # noqa: F401
from runtimes import settings_of
from web import EMAIL, PASSWORD, Webbed
from webui import HOOK, mistakes, tried, wait_until

# Version of the wheel -> what its page says that it is.
VERSIONS = {"23.9.10": "23.09.10", "22.9.23": "22.09.20"}
# The first that is shown, in whatever component it is.
FIND = """(selector) => { const walk = (root) => { for (const it of root.querySelectorAll('*')) {
    if (it.matches(selector) && it.getBoundingClientRect().width) return it;
    const found = it.shadowRoot && walk(it.shadowRoot); if (found) return found; } return null; };
  return walk(document); }"""
# Is there a newer one? And the app proxy is not part of this test.
EXPECTED = (r"\w+ https://raw.githubusercontent.com/", r"\w+ http://127.0.0.1:5050/")


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(image):
    with Webbed(**settings_of("crun"), ALIQUOT_IMAGE_INSECURE=image.split("/")[0],
                ALIQUOT_IMAGE_KEEP_FREE="1") as made:
        made.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        made.start_agent()
        client = made.client()  # their launchers offer what some agent has
        assert client.post("/session", {**interactive("first"), "image": image}).status == 201
        wait_status(client, "first", "RUNNING")
        assert client.delete("/session/first?forced=true").status == 200
        wait_status(client, "first", "TERMINATED")
        yield made
        made.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(scope="module", name="page", params=VERSIONS)
def page_fixture(cluster, browser, request):
    """Of one version, with somebody logged in, after a wrong password."""
    cluster.start_web("--static", webui.install(request.param))
    page = browser.page(viewport={"width": 1280, "height": 900})
    page.addInitScript(HOOK)
    page.goto(cluster.origin)
    wait_shown(page, "#id_user_id")
    for password in ("wrong", PASSWORD):
        page.fill("#id_user_id input", EMAIL)
        page.fill("#id_password input", password)
        page.keyboard.press("Enter")
        wait_until(page, "Login failed" if password == "wrong" else "Admin Lablup")
    wait_until(page, VERSIONS[request.param])
    yield page
    page.close()
    assert cluster.programs["web"].stop() == 0


def wait_shown(page, selector):
    page.wait_for(f"({FIND})({selector!r}) !== null", 90)


def click(page, selector):
    wait_shown(page, selector)
    page.click(selector)


def ended_by_its_button(page):
    """What runs shows its apps at once, over the list."""
    page.keyboard.press("Escape")
    return tried(page.click, "[id='0-power']")


def test_a_session_by_the_form(cluster, page):
    page.goto(cluster.origin + "/job")
    wait_until(page, "No sessions to display")
    wait_shown(page, "#launch-session:not([disabled])")
    click(page, "#launch-session")
    wait_until(page, "1 / x86_64")
    page.fill("#session-name input", "from-the-form")
    click(page, "#launch-button")
    wait_until(page, "No storage folder is mounted")
    click(page, "#launch-button")
    click(page, "#launch-confirmation-button")
    wait_status(cluster.client(), "from-the-form", "RUNNING")
    wait_until(page, "RUNNING")
    wait_until(page, "from-the-form")
    wait_for(lambda: ended_by_its_button(page), 60, "the button that ends it")
    click(page, "#terminate-session-dialog .ok")
    wait_for(lambda: not cluster.live_sessions(), 60, "the session to end")
    assert not mistakes(page, *EXPECTED)
