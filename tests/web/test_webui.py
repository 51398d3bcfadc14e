# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 25.14, unmodified, in Chromium: somebody logs in and sees the known pages."""

import pytest

import webui
from browser import Browser
from client import ADMIN
from cluster import wait_for
from images import archive, programs, pushed
from runtimes import settings_of
from web import EMAIL, PASSWORD, Webbed
from webui import log_in, mistakes, wait_until


@pytest.fixture(scope="module", name="image")
def image_fixture(tmp_path_factory):
    """Pages take an image's name apart: one in a registry."""
    base = [archive(programs("sh", "sleep", "id"))]
    with pushed(tmp_path_factory.mktemp("images"), base, "team/small:1") as (_, names):
        yield names[0]


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(image):
    with Webbed(**settings_of("crun"), ALIQUOT_IMAGE_INSECURE=image.split("/")[0],
                ALIQUOT_IMAGE_KEEP_FREE="1") as made:
        made.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        made.start_agent()
        made.start_web("--static", webui.install("24.9.14"))
        yield made
        made.stop()


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield log_in(browser, cluster, EMAIL, PASSWORD, "Admin Lablup", is_wrong_first=True)


def test_cookie_and_storage(cluster, page):
    """No script can read what the manager lets in by."""
    assert "AIOHTTP_SESSION" not in page.evaluate("document.cookie")
    kept = page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    assert ADMIN[1] not in kept and PASSWORD not in kept


@pytest.mark.parametrize("path, text", [
    ("/summary", "Resource Statistics"), ("/job", "No sessions to display"),
    ("/session/start", "Confirm and Launch"), ("/data", "Create Folder and Upload Files"),
    ("/credential", "user@lablup.com"), ("/environment", "Resource Presets"),
    ("/resource-policy", "Max Session Lifetime"), ("/agent", "ALIVE")])
def test_pages(cluster, page, path, text):
    page.goto(cluster.origin + path)
    if path == "/agent":
        text = "agent"
    wait_until(page, text)
    assert not mistakes(page)


def test_a_session_is_in_the_list(cluster, page, image):
    made = page.evaluate("""fetch('/func/session', {method: 'POST',
        headers: {'Content-Type': 'application/json', 'X-BackendAI-Version': 'v8.20240915'},
        body: JSON.stringify({clientSessionToken: 'from-the-page', lang: 'IMAGE', enqueueOnly: true,
            config: {resources: {cpu: '1', mem: '256m'}}})}).then(it => it.status)""".replace(
                "IMAGE", image))
    assert made == 201
    page.goto(cluster.origin + "/job")
    wait_until(page, "from-the-page")
    wait_until(page, "RUNNING")
    assert not mistakes(page)


def test_the_manager_goes_and_comes_under_an_open_page(cluster, page):
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(lambda: page.evaluate("""fetch('/server/login-check', {method: 'POST'})
        .then(it => it.ok && it.json()).then(it => it && it.authenticated)"""), 60, "the manager")
    page.goto(cluster.origin + "/job")
    wait_until(page, "from-the-page")
