# SPDX-License-Identifier: Apache-2.0
"""The console as somebody finds it who has not read anything: words, widths, keys and folders."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from browser import Browser  # noqa: E402
from client import ADMIN, USER  # noqa: E402
from cluster import wait_status  # noqa: E402
from console_cluster import ConsoleCluster  # noqa: E402
from images import archive, folder  # noqa: E402
from python_image import python_layer  # noqa: E402
from test_console import (SIZES, commands, launch, logged_in, made, nothing_left, see, text,  # noqa: E402
                          wait_text)
from web import EMAIL, PASSWORD  # noqa: E402

__all__ = ["nothing_left"]  # a fixture
SMALL = {"resources": {"cpu": "1", "mem": "64m"}}
LONG = "a-name-as-long-as-those-that-scripts-give-to-sessions-0123456789"
SIDEWAYS = "[...document.querySelectorAll('.screen, .rows')].map((it) => it.scrollWidth - it.clientWidth)"
SIZES["desk"] = {"width": 1440, "height": 900}


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with ConsoleCluster() as cluster:
        cluster.start(cards=4)
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


def test_a_new_folder_keeps_files(browser, cluster):
    """Somebody without folders reads that files go with a session, and makes a folder that stays."""
    client = cluster.client(USER)
    for each in client.get("/folders").json:
        assert client.delete(f"/folders/{each['id']}").status == 204
    page = logged_in(browser, cluster)
    launch(page, "shell", name="writes", command="echo remembered > kept/note", more={"#amount-mem": "64m"})
    wait_text(page, "The home directory is deleted when the session ends.", ".launch")
    assert page.evaluate("document.querySelector('#mount')") is None
    page.click("#new-folder")
    page.wait_for("document.activeElement.id === 'folder'")
    page.keyboard.type("kept")
    assert commands(page, ".folders") == {"Copy as command": "aliquot folder create kept"}
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('.folder select')?.value === 'kept'")
    assert "--mount kept" in commands(page, ".actions")["Copy as command"]
    wait_text(page, "starts at once", ".answer")
    page.click(".launch button.main")
    wait_text(page, "ended", ".peek header")

    launch(page, "shell", name="reads", command="cat kept/note", more={"#amount-mem": "64m"})
    page.click("#mount")
    page.click(".launch button.main")
    wait_text(page, "reads", ".peek header")
    wait_text(page, "ended", ".peek header")
    page.keyboard.press("l")
    wait_text(page, "remembered", ".log")
    assert not page.problems()


def test_the_form_says_what_it_lacks(browser, cluster):
    page = logged_in(browser, cluster)
    page.keyboard.press("n")
    wait_text(page, "Choose an image to see when it would start.", ".answer")
    page.click("text=batch")
    page.fill("#image", "shell")
    wait_text(page, "Enter a command to see when it would start.", ".answer")
    assert page.evaluate("document.querySelector('.launch button.main').disabled")
    page.fill("#command", "true")
    wait_text(page, "starts at once", ".answer")
    assert not page.problems()


def test_a_limit_is_explained_in_sentences(browser, cluster):
    """The lines of an explanation are joined as sentences are."""
    for words in (("create", "small", "--total-slots", "cpu=1"),
                  ("add-user", "small", "user@lablup.com")):
        assert cluster.cli("admin", "project", *words).returncode == 0
    session = made(cluster, USER, "above-limit", group="small",
                   config={"resources": {"cpu": "2", "mem": "64m"}})
    page = logged_in(browser, cluster)
    page.keyboard.press("3")
    wait_text(page, "The limit of project small is exceeded. cpu: used 0 + requested 2 > limit 1. "
              "It never starts: the limit allows cpu=1 at most.", ".queue .why")
    assert cluster.client(USER).delete(f"/session/{session}").status == 200
    assert not page.problems()


def test_a_folder_that_is_refused(browser, cluster):
    page = logged_in(browser, cluster)
    launch(page, "shell")
    page.click("#new-folder")
    page.fill("#folder", "a/b")
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('.said .bad') !== null")
    assert page.evaluate("document.querySelector('#folder').value") == "a/b", "it can be mended"
    page.click("text=Cancel")
    page.wait_for("document.querySelector('#folder') === null")


def test_choices_are_asked_for_again(browser, cluster):
    """One request that fails leaves the form without images only until the next."""
    page = logged_in(browser, cluster)
    page.evaluate("""(() => { const real = fetch; let failed = 0; window.fetch = (path, options) =>
        String(path).includes('image-aliases') && !failed++ ? Promise.reject(new TypeError()) : real(path, options);
        })()""")
    page.keyboard.press("n")
    wait_text(page, "The server cannot be reached.", ".said")
    page.wait_for("document.querySelector('.launch .chips button')?.textContent === 'lab'")


def test_words_of_the_launch_form(browser, cluster):
    page = logged_in(browser, cluster)
    page.keyboard.press("n")
    wait_text(page, "Resources", ".launch legend")
    wait_text(page, "runs until you end it", ".launch")
    page.click("text=batch")
    wait_text(page, "runs one command, then ends", ".launch")
    assert page.evaluate("document.querySelector('#name').placeholder") == "optional"


def test_a_name_that_is_refused(browser, cluster):
    """The form says why, in place of the browser's bubble, and marks the field."""
    page = logged_in(browser, cluster)
    launch(page, "shell", name="a name", more={"#amount-mem": "64m"})
    wait_text(page, "refused the name may have letters", ".answer")
    assert page.evaluate("document.querySelector('#name').ariaInvalid") == "true"
    page.click(".launch button.main")
    wait_text(page, "the name may have letters", ".said .bad")
    page.fill("#name", "a-name")
    wait_text(page, "starts at once", ".answer")


def test_an_answer_that_comes_after_launch_was_pressed(browser, cluster):
    """The scheduler's answer to what was typed before is not shown while the session is made."""
    page = logged_in(browser, cluster)
    launch(page, "shell", more={"#amount-mem": "64m"})
    wait_text(page, "starts at once", ".answer")
    page.evaluate("""(() => { const real = fetch; window.fetch = async (path, options) => {
        const held = (name) => new Promise((go, stop) => { window[name] = go;
          options.signal?.addEventListener('abort', () => stop(options.signal.reason)); });
        if (path.endsWith('/dry-run')) { await held('answer'); return new Response(
          '{"data": {"name": "came late"}}', { status: 400 }); }
        if (path.endsWith('/v1/sessions') && options.method === 'POST') await held('create');
        return real(path, options); }; })()""")
    page.fill("#name", "pressed")
    page.wait_for("window.answer !== undefined")
    page.click(".launch button.main")
    page.wait_for("window.create !== undefined")
    page.evaluate("window.answer()")
    page.evaluate("new Promise((go) => setTimeout(go, 300))")
    assert "came late" not in text(page, ".answer")
    page.evaluate("window.create()")
    wait_text(page, "pressed", ".peek header")
    assert not page.problems()


def test_keys_and_the_history(browser, cluster):
    """Steps from session to session are one step in the history, and keys take the focus along."""
    for i in range(4):
        made(cluster, USER, f"one-{i}", config=SMALL)
    page = logged_in(browser, cluster)
    page.click("nav a:nth-child(2)")
    page.wait_for("document.querySelectorAll('.rows .row').length === 4")
    before = page.evaluate("history.length")
    for key in "jjjkk":
        page.keyboard.press(key)
    wait_text(page, "one-3", ".peek h2")
    assert page.evaluate("history.length") == before + 1
    page.evaluate("history.back()")
    page.wait_for("document.querySelector('.peek') === null && location.hash === '#/sessions'")

    page.click("nav a:nth-child(2)")
    page.keyboard.press("n")
    page.wait_for("document.activeElement.id === 'image'")
    assert page.evaluate("document.activeElement.value") == ""
    page.keyboard.press("Escape")
    page.click("nav a:nth-child(2)")
    page.keyboard.press("3")
    page.wait_for("document.activeElement.className === 'screen'")
    page.keyboard.press("?")
    page.click(".keys [aria-label=Close]")
    page.wait_for("document.querySelector('.keys') === null")
    assert not page.problems()


@pytest.mark.parametrize("kind", ["interactive", "batch"])
def test_an_end_that_was_asked_for(browser, cluster, kind):
    """It is no failure, and nothing says that it is being ended once it has."""
    more = {"startupCommand": "exec sleep 1000"} if kind == "batch" else {}
    session = made(cluster, USER, f"cut-{kind}", config=SMALL, **more)
    wait_status(cluster.client(USER), session, "RUNNING")
    page = logged_in(browser, cluster)
    page.evaluate(f"location.hash = '#/sessions/{session}'")
    wait_text(page, "Running since", ".peek dl")
    page.keyboard.press("x")
    page.keyboard.press("y")
    page.wait_for("document.querySelector('.said')?.innerText.includes('ended')")
    wait_text(page, "Ended", ".peek dl")
    assert "is being ended" not in text(page, ".said")
    assert text(page, ".peek .state") == "ended"
    assert "on request" in text(page, ".peek dl")
    assert " (SIG" in text(page, ".peek dl")
    assert not page.problems()


def test_ports_have_names(browser, cluster):
    """One to which nobody listens is grey and says so; once somebody does, it is not."""
    cluster.layout.image("ports", [python_layer(), archive([folder("tmp", mode=0o1777)])],
                         Labels={"ai.backend.service-ports": "9000:preopen:9000,9001:preopen:9001"})
    serve = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=9000)"
    session = made(cluster, USER, "ports", "ports", config=SMALL, startupCommand=f"python3 -c '{serve}'")
    wait_status(cluster.client(USER), session, "RUNNING")
    page = logged_in(browser, cluster)
    see(page, session)
    shown = "[...document.querySelectorAll('.apps button')].map((it) => [it.innerText, it.ariaDisabled]).join()"
    page.wait_for(f"{shown} === 'Terminal,false,Port 9000,false,Port 9001,true'")
    page.click(".apps [aria-disabled=true]", {"force": True})
    wait_text(page, "Nothing listens on port 9001 yet.", ".said")
    assert page.opened() == []
    assert page.evaluate("document.querySelectorAll('.apps .copy').length") == 0
    assert commands(page)["Port 9000"] == "aliquot app ports 9000"
    page.click(".commands summary")
    page.wait_for("document.querySelector('.commands code').checkVisibility()")
    assert page.violations() == []
    assert not page.problems()


def test_nothing_scrolls_sideways(browser, cluster):
    """Long names are cut, also beside a session's pane and on a telephone."""
    session = made(cluster, ADMIN, LONG, config={"resources": {
        "cpu": "1", "mem": "64m", "cuda.shares": "0.5"}})
    wait_status(cluster.client(), session, "RUNNING")
    made(cluster, USER, "waits", wait_for_capacity=True, config={"resources": {"cpu": "1000", "mem": "64m"}})
    for size in ("desk", "narrow"):
        page = logged_in(browser, cluster, EMAIL, PASSWORD, size)
        for place in ("map", "sessions", "queue", f"map/{session}", f"sessions/{session}"):
            page.evaluate(f"location.hash = '#/{place}'")
            page.wait_for(f"document.querySelector('.peek') {'!==' if '/' in place else '==='} null")
            assert all(width <= 0 for width in page.evaluate(SIDEWAYS)), (size, place)
    assert not page.problems()


def test_the_map_at_each_width(browser, cluster):
    """Rows of cards are full, and the name of a resource group is a line."""
    columns = "getComputedStyle(document.querySelector('.map .cards > div')).gridTemplateColumns.split(' ').length"
    session = made(cluster, USER, "opens", config=SMALL)
    page = logged_in(browser, cluster, size="desk")
    assert page.evaluate(columns) == 4
    assert "Upper bar: GPU use, lower bar: memory use." in text(page, ".legend")
    page.evaluate(f"location.hash = '#/map/{session}'")
    page.wait_for(f"{columns} === 2")
    page = logged_in(browser, cluster, size="narrow")
    assert page.evaluate(columns) == 1
    assert page.evaluate("document.querySelector('.map caption').offsetHeight") < 40


def test_a_row_of_the_queue(browser, cluster):
    """The reason is one line, and as wide as the row."""
    made(cluster, USER, "waits", wait_for_capacity=True, config={"resources": {"cpu": "1000", "mem": "64m"}})
    for size in SIZES:
        page = logged_in(browser, cluster, size=size)
        page.keyboard.press("3")
        wait_text(page, "missing", ".queue .why")
        row, note, width = page.evaluate("""['.row', '.why div', '.rows'].map((selector) =>
            document.querySelector('.queue ' + selector).getBoundingClientRect())
            .map((it, i) => i < 2 ? it.height : it.width - document.querySelector('.why div').offsetWidth)""")
        assert row <= 61 and note < 28, size
        assert width == 0, size
    page.click(".queue .why")
    page.wait_for("""['.chosen', '.chosen .why div'].map((selector) =>
        getComputedStyle(document.querySelector(selector)).backgroundColor).every((it, _, all) => it === all[0])""")


def test_the_page_of_a_lost_cookie(browser, cluster):
    session = made(cluster, USER, "apart", config=SMALL)
    for scheme in ("light", "dark"):
        page = browser.page(viewport=SIZES["narrow"], colorScheme=scheme)
        page.goto(f"http://127.0.0.1:{cluster.port}/app/{session}/ttyd/")
        wait_text(page, "Open the app from the console")
        assert "sans-serif" in page.evaluate("getComputedStyle(document.body).fontFamily")
        assert page.evaluate("getComputedStyle(document.body).color") == (
            "rgb(255, 255, 255)" if scheme == "dark" else "rgb(0, 0, 0)")
        assert page.violations() == []
