# SPDX-License-Identifier: Apache-2.0
"""The console in Chromium: an afternoon of work, what goes wrong meanwhile, and how it looks."""

import gzip
import json
import os
import pathlib
import signal
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from browser import Browser  # noqa: E402
from client import ADMIN, USER  # noqa: E402
from cluster import batch, interactive, wait_for, wait_status  # noqa: E402
from console_cluster import HOST, ConsoleCluster  # noqa: E402
from images import archive, file, programs  # noqa: E402
from python_image import pip_layer, python_layer  # noqa: E402
from terminal import Terminal  # noqa: E402
from test_notebook import LAB, PATH  # noqa: E402
from web import EMAIL, PASSWORD, USER_EMAIL, USER_PASSWORD  # noqa: E402
from world import BUILD, ROOT  # noqa: E402

KEPT = ROOT / "check-results" / "console"
SIZES = {"wide": {"width": 1280, "height": 800}, "narrow": {"width": 390, "height": 844}}
SHARES = "[id='amount-cuda.shares']"
STATES = "[...document.querySelectorAll('.rows .state')].map((state) => state.textContent).join()"
# It turns text around, names the window, writes elsewhere and is HTML.
HOSTILE = "\u202eevil \x1b]0;owned\x07\x1b[2J<b>fat</b>"


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with ConsoleCluster() as cluster:
        cluster.start()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(autouse=True)
def nothing_left(cluster, browser):
    yield
    browser.close_pages()
    for session in cluster.live_sessions():
        cluster.client().delete("/aliquot/v1/sessions", {"sessions": [session["id"]], "forced": True})
    wait_for(lambda: not cluster.live_sessions(), 60, "the sessions to end")


def text(page, selector="body"):
    return page.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")


def wait_text(page, words, selector="body"):
    page.wait_for(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(words)})")


def logged_in(browser, cluster, email=USER_EMAIL, password=USER_PASSWORD, size="wide", **options):
    page = browser.page(viewport=SIZES[size], **options)
    page.goto(cluster.origin + "/")
    page.wait_for("document.querySelector('[name=username]') !== null")
    page.fill("[name=username]", email)
    page.fill("[name=password]", password)
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('.map tbody tr') !== null")
    return page


def launch(page, image, **fields):
    """By the form, as somebody fills it in."""
    page.keyboard.press("n")
    page.wait_for("document.querySelector('.launch .chips button') !== null")
    page.fill("#image", image)
    if "command" in fields:
        page.click("text=batch")
    for selector, value in fields.pop("more", {}).items():
        page.fill(selector, value)
    for name, value in fields.items():
        page.fill(f"#{name}", value)


def made(cluster, keypair, name, image="shell", **more):
    body = (batch if "startupCommand" in more else lambda name, _, **rest: interactive(name, **rest))(
        name, more.pop("startupCommand", None), **more)
    reply = cluster.client(keypair).post("/session", {
        **body, "image": cluster.layout.reference(image), "enqueueOnly": True})
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def see(page, session, tab="s"):
    """One session, beside the list: its summary, or "l", its log."""
    page.evaluate(f"location.hash = '#/sessions/{session}'")
    page.wait_for(f"document.querySelector('.chosen [data-of=\"{session}\"]') !== null")
    page.keyboard.press(tab)


def commands(page, selector=".peek"):
    """{what it does: what its button copies}"""
    return page.evaluate(f"Object.fromEntries([...document.querySelectorAll('{selector} .copy')]"
                         ".map((it) => [(it.querySelector('span') ?? it).textContent, it.title]))")


def terminal(page, *typed):
    """The tab of the session's terminal, in which this is typed."""
    page.keyboard.press("t")
    tab = wait_for(page.opened, 30, "the tab")[-1]
    tab.wait_for("document.querySelector('.xterm-rows') !== null")
    tab.wait_for("document.querySelector('#bar').hidden")
    tab.keyboard.type("\n".join((*typed, "")))
    return tab


@pytest.mark.gate
def test_an_afternoon(browser, cluster):
    """Three sessions of a whole fGPU on a card of two."""
    page = browser.page(viewport=SIZES["wide"])
    page.goto(cluster.origin + "/")
    page.wait_for("document.querySelector('[name=username]') !== null")
    page.fill("[name=username]", USER_EMAIL)
    page.fill("[name=password]", "wrong")
    page.keyboard.press("Enter")
    wait_text(page, "Wrong e-mail address or password.", "[role=alert]")
    page.fill("[name=password]", USER_PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('.map tbody tr') !== null")
    wait_text(page, "ready", ".map")

    launch(page, "python", name="train", count="3", more={SHARES: "1", "#amount-mem": "256m"})
    assert text(page, ".chips").split()[:3] == ["lab", "python", "shell"]
    wait_text(page, "2 of 3 start at once", ".answer")
    page.click(".launch button.main")
    page.wait_for(f"{STATES} === 'waiting,running,running'")
    page.keyboard.press("1")
    page.wait_for("document.querySelectorAll('.map .part.own .name').length === 2")
    assert text(page, ".card .left").split()[0] == "0"
    page.keyboard.press("3")
    wait_text(page, "1 missing on node1", ".queue .why")
    assert text(page, ".queue tbody td") == "1/1"

    page.keyboard.press("2")
    page.click(".rows .row:last-child a")
    wait_text(page, "running", ".peek header")
    tab = terminal(page, "nvidia-smi")
    tab.wait_for("document.querySelector('.xterm-rows').textContent.includes('MiB / 4096MiB')")
    assert not tab.problems()
    page.keyboard.press("x")
    page.keyboard.press("y")
    page.wait_for(f"{STATES} === 'running,running'")
    page.click("text=all")
    page.wait_for(f"{STATES} === 'running,running,ended'")

    assert not page.problems()
    page.click("text=Log out")
    page.wait_for("document.querySelector('[name=username]') !== null")
    assert not page.problems()


def test_each_action_as_a_command(browser, cluster):
    """What the page does is typed in place of it, as it was copied."""
    page = logged_in(browser, cluster)
    launch(page, "shell", name="copied", command='for i in 1 2 3; do echo "it\'s $i"; done',
           more={"#amount-mem": "64m"})
    create = commands(page, ".actions")["Copy as command"]
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    cluster.type(create)
    page.click("text=ended")
    page.click("text=copied")
    wait_text(page, "ended", ".peek header")
    assert sorted(commands(page)) == ["Log", "Show"]
    assert '"copied"' in cluster.type(f"{commands(page)['Show']} -o json")
    page.keyboard.press("l")
    wait_text(page, "it's 3", ".log")
    assert cluster.type(commands(page)["Log"]).splitlines() == ["it's 1", "it's 2", "it's 3"]

    session = made(cluster, USER, "stays", config={"resources": {"cpu": "1", "mem": "64m"}})
    wait_status(cluster.client(USER), session, "RUNNING")
    see(page, session)
    wait_text(page, "Terminal", ".apps")
    app = commands(page)["Terminal"]
    typed = Terminal("/bin/sh", "-c", app, env={**cluster.env, **cluster.cli_env(USER),
                                                "PATH": f"{BUILD}:/usr/bin:/bin"})
    typed.send(b"echo $((6*7))-is-it; exit\n")
    typed.expect(b"42-is-it")
    cluster.type(commands(page)["End"])
    wait_text(page, "ended", ".peek header")
    assert not page.problems()


def test_a_slow_start(browser, cluster):
    """What is being done, how far it is; and it can be cancelled meanwhile."""
    cluster.layout.image("large", [archive([*programs("sh", "sleep"),
                                            file("data", os.urandom(8 << 20))])])
    page = logged_in(browser, cluster)
    launch(page, cluster.registry.name("large"), more={"#amount-mem": "64m"})
    page.click(".launch button.main")
    page.wait_for("/^fetching [4-9]\\d %$/.test(document.querySelector('.peek .state')?.textContent)")
    assert " MiB of " in text(page, ".peek [aria-label=Start]")
    assert page.evaluate("document.querySelector('.peek progress').position") > 0.3
    page.keyboard.press("x")
    page.keyboard.press("y")
    page.wait_for("document.querySelector('.peek .state').textContent === 'ended'")
    cluster.registry.may_go_on.set()
    assert not page.problems()


def test_a_folder(browser, cluster):
    client = cluster.client(USER)
    for name in ("data", "other"):
        assert client.post("/folders", {"name": name, "host": HOST}).status == 201
    page = logged_in(browser, cluster)
    launch(page, "shell", name="reads", command=": > other/y && cat other/y && echo as said; : > /in/x",
           more={"#amount-mem": "64m"})
    for _ in range(2):
        page.click("#mount")
    page.fill(".folder:nth-child(1) input:not([type])", "/in")
    page.click(".folder:nth-child(1) [type=checkbox]")
    wait_text(page, "starts at once", ".answer")
    assert "--mount data:/in:ro --mount other" in commands(page, ".actions")["Copy as command"]
    page.click(".launch button.main")
    wait_text(page, "failed (2)", ".peek header")
    page.keyboard.press("l")
    wait_text(page, "as said", ".log")
    assert "Read-only" in text(page, ".log")
    assert not page.problems()


def drawn_pixels(page, row):
    """How many pixels of a row of the terminal differ from its ground, as the page is drawn."""
    clip = page.evaluate(f"""(() => {{
        const it = document.querySelectorAll('.xterm-rows > div')[{row}].getBoundingClientRect();
        return {{x: Math.ceil(it.x), y: Math.ceil(it.y), width: 120, height: Math.floor(it.height)}}; }})()""")
    kept = KEPT / "terminal-row.png"
    kept.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot({"path": str(kept), "clip": clip})
    return page.evaluate(f"""createImageBitmap(new Blob([Uint8Array.from({list(kept.read_bytes())})]))
        .then((image) => {{
            const canvas = new OffscreenCanvas(image.width, image.height);
            const drawn = canvas.getContext('2d');
            drawn.drawImage(image, 0, 0);
            const {{ data }} = drawn.getImageData(0, 0, image.width, image.height);
            let count = 0;
            for (let at = 0; at < data.length; at += 4) if (Math.abs(data[at] - data[0]) > 40) count++;
            return count; }})""")


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_terminal_shows_underscores(browser, cluster, size):
    """Each row of underscores has a line that is drawn, at the usual size of the letters."""
    session = made(cluster, USER, "shell-2", config={"resources": {"cpu": "1", "mem": "64m"}})
    wait_status(cluster.client(USER), session, "RUNNING")
    page = logged_in(browser, cluster, size=size, colorScheme="light")
    see(page, session)
    page.wait_for("document.querySelector('.apps button') !== null")
    tab = terminal(page, "stty -echo; printf '\\033[?25l\\033[2J\\033[H________\\n        \\n________\\n'; sleep 60")
    rows = "[...document.querySelectorAll('.xterm-rows > div')].map((row) => row.textContent.trim())"
    tab.wait_for(f"{rows}.slice(0, 4).join('|') === '________||________|'")
    under, spaces, again = (drawn_pixels(tab, row) for row in range(3))
    assert spaces == 0 and under == again
    assert under >= 50, "eight letters have at least one row of pixels"


def test_terminal_when_manager_and_proxy_were_killed(browser, cluster):
    """It outlives the manager. Without its proxy it says that it reconnects, does so without a key, and
    the new shell goes on below what was shown."""
    session = made(cluster, USER, "shell-1", config={"resources": {"cpu": "1", "mem": "64m"}})
    wait_status(cluster.client(USER), session, "RUNNING")
    page = logged_in(browser, cluster)
    page.evaluate(f"location.hash = '#/sessions/{session}'")
    page.wait_for("document.querySelector('.apps button') !== null")
    page.click(".apps button")
    tab = wait_for(page.opened, 30, "the tab")[0]
    tab.wait_for("document.querySelector('.xterm-rows') !== null")
    tab.wait_for("document.querySelector('#bar').hidden")

    def type_and_see(typed, shown):
        tab.keyboard.type(typed + "\n")
        tab.wait_for(f"document.querySelector('.xterm-rows').textContent.includes({json.dumps(shown)})")
    has_mouse = "document.querySelector('.xterm').classList.contains('enable-mouse-events')"
    type_and_see("echo $((6*7))-is-it", "42-is-it")
    assert not page.problems() and not tab.problems()
    cluster.programs["manager"].kill()
    # a program of the whole screen that hides the cursor and takes the mouse
    type_and_see("printf '\\033[?1049h\\033[?25l\\033[?1000hwhole-%s' screen; sleep 600", "whole-screen")
    tab.wait_for(has_mouse)
    assert tab.evaluate("document.querySelector('#bar').hidden")
    cluster.programs["proxy"].kill()
    tab.wait_for("!document.querySelector('#bar').hidden")
    assert text(tab, "#bar span").startswith("Connection lost, reconnecting…")
    assert "whole-screen" in text(tab, ".xterm-rows"), "what was shown stays while it reconnects"
    for name in ("manager", "proxy"):
        cluster.programs[name].start()
    wait_for(cluster.is_serving, 60, "the manager")
    tab.wait_for("document.querySelector('#bar').hidden", 60)
    type_and_see("echo $((6*9))-is-it", "54-is-it")
    rows = text(tab, ".xterm-rows")
    assert rows.index("42-is-it") < rows.index("connection lost at") < rows.index("54-is-it"), rows
    assert "whole-screen" not in rows.partition("connection lost at")[2], rows
    assert not tab.evaluate(has_mouse)


def test_jupyter(browser, cluster):
    cluster.layout.image("lab", [python_layer(), pip_layer(*LAB)], how=None, Env=[PATH])
    session = made(cluster, USER, "lab-1", "lab", config={"resources": {"cpu": "1", "mem": "1g"}})
    wait_status(cluster.client(USER), session, "RUNNING")
    page = logged_in(browser, cluster)
    page.evaluate(f"location.hash = '#/sessions/{session}'")
    wait_text(page, "JupyterLab", ".apps")
    page.click("text=JupyterLab")
    tab = wait_for(page.opened, 30, "the tab")[0]
    tab.wait_for("document.querySelector('#jp-main-dock-panel, .jp-LauncherCard') !== null", 120)
    assert not page.problems()


def test_log_and_words_that_steer(browser, cluster):
    """Other people's words are shown, never obeyed."""
    session = made(cluster, USER, "says", startupCommand=f"printf %s '{HOSTILE}'; exit 3",
                   config={"resources": {"cpu": "1", "mem": "64m"}})
    wait_status(cluster.client(USER), session, "TERMINATED")
    assert cluster.client().post("/aliquot/v1/agents/node1/drain", {"reason": HOSTILE}).status == 204
    page = logged_in(browser, cluster)
    wait_text(page, "drained", ".map")
    assert "[U+202E]evil [U+001B]]0;owned[U+0007]" in text(page, ".map") and "<b>fat</b>" in text(page, ".map")
    assert cluster.client().post("/aliquot/v1/agents/node1/undrain", {}).status == 204
    wait_text(page, "ready", ".map")
    page.evaluate(f"location.hash = '#/sessions/{session}?show=ended'")
    wait_text(page, "failed (3)", ".peek header")
    page.keyboard.press("l")
    wait_text(page, "End of the log.", ".peek")
    assert text(page, ".log") == "[U+202E]evil <b>fat</b>"
    assert page.evaluate("document.title") == "Sessions · aliquot"
    assert not page.problems()


def test_kernels(browser, cluster):
    """A session of two: how it is made, and whose log, apps and commands are shown."""
    page = logged_in(browser, cluster)
    launch(page, "shell", size="2", command="echo I am rank $RANK; sleep 1000",
           more={"#amount-mem": "64m"})
    page.click("[aria-label=Nodes] button:last-of-type")
    wait_text(page, "starts at once", ".answer")
    assert "--cluster 2 --cluster-mode single-node" in next(iter(commands(page, ".launch").values()))
    page.click(".launch button.main")
    wait_text(page, "running", ".peek header")
    wait_text(page, "sub1", ".kernels")
    rows = page.evaluate("[...document.querySelectorAll('.kernels tbody tr')].map((row) => "
                         "[...row.cells].map((cell) => cell.textContent).join(' ').trim())")
    assert rows == ["main1 main running node1", "sub1 sub running node1"], rows
    page.keyboard.press("l")
    wait_text(page, "I am rank 0", ".log")
    page.evaluate("(it => { it.value = 'sub1'; it.dispatchEvent(new Event('change', "
                  "{ bubbles: true })) })(document.querySelector('.kernel select'))")
    wait_text(page, "I am rank 1", ".log")
    name = text(page, ".peek h2")
    assert commands(page)["Log"] == f"aliquot logs --follow --kernel sub1 {name}"
    assert commands(page)["End"] == f"aliquot session rm {name}"
    assert page.violations() == []
    KEPT.mkdir(parents=True, exist_ok=True)
    page.keyboard.press("s")
    page.screenshot({"path": str(KEPT / "kernels.png")})
    tab = terminal(page, "echo this is $BACKENDAI_CLUSTER_HOST")
    tab.wait_for("document.querySelector('.xterm-rows').textContent.includes('this is sub1')")
    assert not page.problems() and not tab.problems()


def test_what_would_not_start(browser, cluster):
    """Refused, or to wait: said before it is made, and as a command."""
    page = logged_in(browser, cluster, permissions=["clipboard-read", "clipboard-write"])
    made(cluster, ADMIN, "holds", config={"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "2"}})
    launch(page, "shell", more={SHARES: "1", "#amount-mem": "256m"})
    wait_text(page, "would wait", ".answer")
    assert "cuda.shares" in text(page, ".answer")
    page.click(".launch .copy")
    page.wait_for("navigator.clipboard.readText().then((text) => text.startsWith('aliquot'))")
    assert page.evaluate("navigator.clipboard.readText()") == (
        "aliquot session create --image shell -r cpu=1 -r mem=256m -r cuda.shares=1")
    page.fill(SHARES, "1000")
    wait_text(page, "refused", ".answer")
    assert "cuda.shares" in text(page, ".answer")


def test_others_are_nobody(browser, cluster):
    session = made(cluster, ADMIN, "secret-name", config={
        "resources": {"cpu": "1", "mem": "64m", "cuda.shares": "1"}})
    wait_status(cluster.client(), session, "RUNNING")
    page = logged_in(browser, cluster)
    page.wait_for("document.querySelectorAll('.card .part').length === 1")
    assert page.evaluate("document.querySelector('.card .part').title").startswith("1 of 2: somebody;")
    assert "secret-name" not in page.evaluate("document.documentElement.outerHTML")
    assert session not in page.evaluate("document.documentElement.outerHTML")


def test_rights_reach_an_open_page(browser, cluster):
    """Nodes are those of the resource groups that somebody may use now, new ones among them."""
    client = cluster.client()
    page = logged_in(browser, cluster)
    assert client.post("/aliquot/v1/resource-groups", {"name": "lab"}).status == 201
    try:
        for verb, where in (("allow", "lab"), ("disallow", "")):
            if verb == "allow":
                assert client.send("PATCH", "/aliquot/v1/agents/node1",
                                   {"resource_group": "lab"}).status == 204
                page.wait_for("document.querySelector('.map tbody') === null")
            reply = client.post(f"/aliquot/v1/resource-groups/lab/{verb}", {"domain": "default"})
            assert reply.status == 204, reply
            page.wait_for(f"(document.querySelector('.map caption')?.textContent ?? '') === '{where}'")
    finally:
        assert client.send("PATCH", "/aliquot/v1/agents/node1", {"resource_group": ""}).status == 204
    wait_text(page, "default", ".map caption")
    assert not page.problems()


def test_a_login_that_ends(browser, cluster):
    """The page says so, and what was begun is still there afterwards."""
    page = logged_in(browser, cluster)
    launch(page, "shell", name="begun")
    client = cluster.client(USER)
    for login in client.get("/aliquot/v1/logins").json["items"]:
        assert client.delete(f"/aliquot/v1/logins/{login['id']}").status == 204
    wait_text(page, "This login has ended", "[role=alert]")
    assert page.evaluate("document.querySelector('[name=username]').value") == USER_EMAIL
    assert page.violations() == []
    page.fill("[name=password]", USER_PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('#name')?.value === 'begun'")


def test_many_sessions(browser, cluster):
    """Rows that nobody sees are not there, and by the keys the list is gone through to its end."""
    client = cluster.client(USER)
    many = [{**interactive(f"many-{i}", wait_for_capacity=True, enqueueOnly=True),
             "image": cluster.layout.reference("shell"),
             "config": {"resources": {"cpu": "1000", "mem": "64m"}}} for i in range(400)]
    for at in range(0, len(many), 100):
        reply = client.post("/aliquot/v1/sessions", many[at:at + 100])
        assert reply.status in (200, 201), reply
    page = logged_in(browser, cluster)
    for key, screen in (("2", ".sessions"), ("3", ".queue")):
        page.keyboard.press(key)
        page.wait_for(f"document.querySelector('{screen} .rows') !== null")
        page.wait_for("document.querySelector('nav [aria-current]').innerText.includes('400')")
        rows = page.evaluate("document.querySelectorAll('.row').length")
        assert 20 < rows < 120
        for _ in range(40):
            page.keyboard.press("j")
        page.wait_for("""(() => { const it = document.querySelector('.chosen')?.getBoundingClientRect();
            return it && it.top > 0 && it.bottom <= innerHeight
                && document.querySelector('.rows').scrollTop > 0; })""")
        page.keyboard.press("Escape")
        page.wait_for("document.activeElement.dataset.of !== undefined")
        page.evaluate("document.querySelector('.rows').scrollTo(0, 1e9)")
        page.wait_for("[...document.querySelectorAll('.row th')].some((it) => it.innerText === 'many-0')"
                      if key == "2" else "document.querySelectorAll('.row').length < 120")
    assert not page.problems()


def test_the_manager_goes_and_comes(browser, cluster):
    page = logged_in(browser, cluster)
    cluster.programs["manager"].kill()
    wait_text(page, "No connection to the manager", ".notice")
    assert "node1" in text(page, ".map") and "unknown" in text(page, ".map")
    assert page.violations() == []
    cluster.programs["manager"].start()
    page.wait_for("document.querySelector('.notice') === null")
    wait_text(page, "ready", ".map")


def test_the_manager_stops_without_a_word(browser, cluster):
    """A stopped process keeps its connections; the page says all the same that it hears nothing."""
    page = logged_in(browser, cluster)
    wait_text(page, "live", ".bar .link")
    manager = cluster.programs["manager"]
    manager.signal(signal.SIGSTOP)
    try:
        page.wait_for("document.querySelector('.bar .link').textContent === 'not connected'", 60)
        wait_text(page, "No connection to the manager since")
    finally:
        manager.signal(signal.SIGCONT)
    page.wait_for("document.querySelector('.bar .link').textContent === 'live'", 120)
    page.wait_for("document.querySelector('[role=alert]') === null")


def test_each_time_it_is_loaded(browser, cluster):
    """What came before the screen was drawn is in it."""
    made(cluster, USER, "waits", wait_for_capacity=True, config={"resources": {"cpu": "1000", "mem": "64m"}})
    page = logged_in(browser, cluster)
    page.evaluate("location.hash = '#/sessions'")
    for _ in range(8):
        page.reload()
        page.wait_for("document.querySelector('.rows tbody tr') !== null", 10)
    assert not page.problems()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_how_it_looks(browser, cluster, scheme, size):
    KEPT.mkdir(parents=True, exist_ok=True)
    if not cluster.client().get("/folders").json:
        assert cluster.client().post("/folders", {"name": "models", "host": HOST}).status == 201
    for name, shares in (("first", "0.5"), ("second", "1"), ("third", "1")):
        made(cluster, ADMIN, name, config={"resources": {"cpu": "1", "mem": "64m", "cuda.shares": shares}})
    page = logged_in(browser, cluster, EMAIL, PASSWORD, size, colorScheme=scheme)
    page.wait_for("document.querySelectorAll('.map .part.own .name').length === 2")
    keys = {"map": "1", "sessions": "2", "queue": "3", "launch": "n", "peek": "j", "keys": "?"}
    for screen, key in keys.items():
        if screen == "peek":
            page.keyboard.press("2")
        page.keyboard.press(key)
        if screen == "launch":
            page.fill("#image", "lab")
            page.click("#mount")
            wait_text(page, "starts at once", ".answer")
            page.keyboard.press("Escape")
        page.wait_for("document.readyState === 'complete'")
        page.screenshot({"path": str(KEPT / f"{screen}-{scheme}-{size}.png")})
        assert page.violations() == [], screen
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), screen
    assert not page.problems()


def test_size(cluster):
    """What a browser fetches before anybody can log in."""
    browser = cluster.browser()
    page = browser.ask("GET", "/")
    parts = [browser.ask("GET", f"/console.{kind}", Accept_Encoding="gzip") for kind in ("js", "css")]
    assert all(part.headers["Content-Encoding"] == "gzip" for part in parts)
    assert sum(len(part.body) for part in parts) + len(gzip.compress(page.body)) < 130_000
    assert "Preact" in browser.ask("GET", "/licences.txt").body.decode()
