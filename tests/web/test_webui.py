# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 25.14, unmodified, in Chromium: somebody logs in and sees the known pages."""

import pytest

import webui
from browser import Browser
from client import ADMIN
from cluster import wait_for
from images import Layout, Registry, archive, programs
from runtimes import settings_of
from web import EMAIL, PASSWORD, Webbed

# Every text of a page, in its components, too.
TEXT = """() => { const all = []; const walk = root => { for (const it of root.querySelectorAll('*')) {
    if (it.shadowRoot) walk(it.shadowRoot);
    if (!['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(it.tagName))
      for (const part of it.childNodes) if (part.nodeType === 3) all.push(part.data); } };
  walk(document); return all.join(' '); }"""
# What it asks, and what it is answered.
HOOK = """window.asked = []; const real = window.fetch; window.fetch = async (...words) => {
    const reply = await real(...words); const copy = reply.clone();
    copy.text().then(text => { if (!reply.ok || text.includes('"errors"'))
        window.asked.push([reply.status, reply.url, text.slice(0, 500)]); }).catch(() => {});
    return reply; };
document.addEventListener('securitypolicyviolation', it =>
    it.blockedURI === 'eval' // the test's own questions
        || window.asked.push(['policy', it.blockedURI, it.violatedDirective]));"""
EXPECTED = (("400", "/server/login"), ("404", "/func/totp"))  # nobody has typed yet; we have none


@pytest.fixture(scope="module", name="image")
def image_fixture(tmp_path_factory):
    """Pages take an image's name apart: one in a registry."""
    folder = tmp_path_factory.mktemp("images")
    registry = Registry(folder / "registry").start()
    layout = Layout(folder / "layout")
    layout.image("small", [archive(programs("sh", "sleep", "id"))])
    yield layout.push("small", registry, "team/small:1")
    registry.stop()


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
    """With somebody logged in, after a wrong password."""
    with Browser(cluster.folder) as browser:
        page = browser.page(viewport={"width": 1280, "height": 900})
        page.addInitScript(HOOK)
        page.goto(cluster.origin)
        wait_until(page, "Login")
        for password in ("wrong", PASSWORD):
            wait_for(lambda: try_to(page.fill, "input[type=text] >> nth=0", EMAIL), 60, "the form")
            page.fill("input[type=password] >> nth=0", password)
            page.keyboard.press("Enter")
            wait_until(page, "mismatch" if password == "wrong" else "Admin Lablup")
        yield page


def try_to(function, *words):
    try:
        function(*words)
        return True
    except Exception:
        return False


def wait_until(page, text):
    return wait_for(lambda: text in page.evaluate(f"({TEXT})()"), 90,
                    lambda: f"{text!r} in {page.evaluate(f'({TEXT})()')[-3000:]}")


def mistakes(page):
    return [row for row in page.evaluate("window.asked")
            if not any(str(row[0]) == status and path in row[1] for status, path in EXPECTED)]


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
