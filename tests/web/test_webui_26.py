# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 26.9, unmodified, in Chromium: an afternoon of somebody who works with it."""

import hashlib
import os
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
from browser import Browser  # noqa: E402
from cluster import wait_for  # noqa: E402
from console_cluster import NVIDIA_SMI, PROGRAMS  # noqa: E402
from gpu_cluster import GpuCluster  # noqa: E402
from images import Layout, LooseRegistry, archive, file, folder, programs  # noqa: E402
from python_image import pip_layer, python_layer  # noqa: E402
from runtimes import settings_of  # noqa: E402
from storage import Stored  # noqa: E402
from test_notebook import LAB, PATH  # noqa: E402
from test_proxy import Proxied  # noqa: E402
from web import EMAIL, PASSWORD, USER_EMAIL, USER_PASSWORD, Webbed  # noqa: E402
from webui import end_sessions, log_in, mistakes, text_of, tried, wait_until  # noqa: E402

DIALOG = "[role=dialog]:visible"
SIZE = 50 << 20


class Working(GpuCluster, Proxied, Stored, Webbed):
    """Storage hosts and proxies are asked on ports of their own."""

    def start(self):
        self.layout = Layout(self.folder / "layout")
        self.registry = LooseRegistry(self.layout)
        self.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        self.start_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
        self.port = None  # the storage's, from here on
        self.volume = self.folder / "volume1"
        self.volume.mkdir(mode=0o700)
        self.start_storage()
        self.start_agent(ALIQUOT_FOLDERS_VOLUMES=f"local:volume1={self.volume}",
                         ALIQUOT_IMAGE_INSECURE=self.registry.address)
        self.start_web("--static", webui.install("26.9.6"))
        self.make_images()

    def make_images(self):
        """People choose among images that agents have."""
        own = archive([*programs(*PROGRAMS, "ls", "sha256sum"), folder("tmp", mode=0o1777),
                       file("usr/bin/nvidia-smi", NVIDIA_SMI, mode=0o755)])
        base = [python_layer(), own]
        for name, layers in (("shell", base), ("tools", base), ("lab", [*base, pip_layer(*LAB)])):
            self.layout.image(name, [*layers, archive([file("name", name.encode())])], how=None,
                              Env=[PATH])
        names = [f"{self.registry.address}/team/{name}:{name}" for name in ("shell", "tools", "lab")]

        def ask(query, **variables):
            return self.client().post("/admin/gql", {"query": query, "variables": variables}).json
        ask("mutation($names: [String]!) {preload_image(references: $names, target_agents: [\"agent\"])"
            " {ok}}", names=names)
        wait_for(lambda: len(ask("{images {name}}")["data"]["images"]) == len(names), 60, "the images")


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Working(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="*", ALIQUOT_IMAGE_KEEP_FREE="0") as made:
        made.start()
        yield made
        made.stop()
        made.registry.stop()


@pytest.fixture(autouse=True)
def no_sessions_left(cluster):
    yield
    end_sessions(cluster)


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster, browser):
    return log_in(browser, cluster, EMAIL, PASSWORD, "Start Interactive Session", is_wrong_first=True)


def go(page, cluster, path, *texts):
    page.goto(f"{cluster.origin}/project/default/{path}")
    wait_until(page, *texts)


def launch(page, cluster, name, image, shares=None, mounted=None, command=None):
    """By the form, as somebody fills it in; with a command as a batch session."""
    go(page, cluster, "session/start", "Session Name")
    if command:
        page.click("input[type=radio][value=batch]")
        page.fill("textarea:visible >> nth=0", command)
    page.fill("input[type=text]:visible:below(:text('Session Name')) >> nth=0", name)
    page.click("button:has-text('Next')")
    wait_until(page, "Resource Presets", "team")
    page.click("button:has-text('team'):visible >> nth=0")
    page.click(f"[role=option]:has-text('{image}'):visible")
    wait_until(page, "Minimum requirements")
    if shares:
        page.fill("input[type=text]:visible:below(:text('AI Accelerator')) >> nth=0", shares)
        page.keyboard.press("Tab")
        wait_until(page, "Custom allocation")
    if mounted:
        page.click("button:has-text('Next')")
        page.click(":text('Select Folder'):visible >> nth=-1")
        page.click(f"[role=option]:has-text('{mounted}'):visible")
        page.keyboard.press("Escape")
    page.click("button:has-text('Skip to review')")
    wait_until(page, "Total Allocation")
    page.click("button:has-text('Launch'):not(:has-text('Multiple')):not(:has-text('Confirm')):visible")
    if not mounted:
        page.click(f"{DIALOG} button:has-text('Start')")
    wait_for(lambda: "/session/start" not in page.evaluate("location.pathname"), 60, "the list")
    wait_until(page, name)


def row(name):
    return f"tr:has-text('{name}')"


def wait_row(page, name, status):
    """The list is asked for again each 15 seconds; by hand sooner."""
    def has():
        tried(page.click, "[aria-label='Refresh'] >> nth=-1")
        return status in page.evaluate(
            f"[...document.querySelectorAll('tr')].filter((tr) => tr.innerText.includes('{name}'))"
            ".map((tr) => tr.innerText).join()")
    wait_for(has, 90, lambda: f"{name} to be {status}: {text_of(page)[-2000:]}")


@pytest.mark.parametrize("path, text", [
    ("dashboard", "My Total Resource Usage"), ("data", "Create Folder"),
    ("session", "Session Name"), ("session/start", "Confirm and Launch"),
    ("agent-summary", "fGPU")])
def test_pages(cluster, page, path, text):
    go(page, cluster, path, text)
    assert "An error has occurred" not in text_of(page) and not mistakes(page)


def open_app(page, session, app):
    """By its dialog: its tab."""
    before = len(page.opened())
    page.click(f"{row(session)} [aria-label='See App Dialog']")
    page.click(f"{DIALOG} [aria-label='{app}']")
    tab = wait_for(lambda: page.opened()[before:], 60, "the tab")[0]
    page.click(f"{DIALOG} [aria-label='Close']")
    return tab


def in_terminal(tab, command, *answers):
    tab.wait_for("document.querySelector('.xterm-rows')?.innerText.includes('$')")
    tab.keyboard.type(command + "\n")
    for answer in answers:
        tab.wait_for(f"document.querySelector('.xterm-rows').innerText.includes('{answer}')")


def confirm(page):
    page.click("button:has-text('Confirm'):visible")


def test_three_sessions_on_two_shares(cluster, page):
    for name, image in (("first", "shell"), ("second", "tools"), ("third", "lab")):
        launch(page, cluster, name, image, "1")
    for name, status in (("first", "RUNNING"), ("second", "RUNNING"), ("third", "PENDING")):
        wait_row(page, name, status)
    page.click(f"{row('first')} [aria-label='Terminate Session']")
    page.click(f"{DIALOG} button:has-text('Terminate')")
    wait_row(page, "third", "RUNNING")
    assert not mistakes(page)


@pytest.fixture(scope="module", name="data")
def data_fixture(cluster, page):
    """Bytes of the file in the folder "my-data", made and filled by the page."""
    big = cluster.folder / "big.bin"
    big.write_bytes(os.urandom(SIZE))
    go(page, cluster, "data", "Create Folder")
    page.click("button:has-text('Create Folder') >> nth=0")
    page.fill(f"{DIALOG} input[type=text]:visible >> nth=0", "my-data")
    page.click("[data-testid=create-folder-button]")
    page.click(f"{row('my-data')} a:has-text('my-data')")
    page.setInputFiles("input[type=file][multiple]", str(big))
    wait_until(page, "52.43 MB")
    assert not mistakes(page)
    return big.read_bytes()


def test_half_of_an_fgpu_and_a_folder(cluster, page, data):
    """The terminal sees a quarter of the card, and what was uploaded; Jupyter is opened."""
    launch(page, cluster, "half", "lab", "0.5", mounted="my-data")
    wait_row(page, "half", "RUNNING")
    tab = open_app(page, "half", "Console")
    in_terminal(tab, "nvidia-smi; ls -l my-data; sha256sum my-data/big.bin", "0MiB / 2048MiB",
                str(SIZE), hashlib.sha256(data).hexdigest())
    assert not tab.problems()
    lab = open_app(page, "half", "JupyterLab")
    lab.wait_for("document.querySelector('.jp-LauncherCard') !== null")
    assert not lab.problems() and not mistakes(page)


def test_somebody_else_is_invited(cluster, browser, page, data):
    """Accepts, mounts the folder and reads in it; it stays while it is mounted."""
    go(page, cluster, "data", "my-data")
    page.click(f"{row('my-data')} [aria-label='Share']")
    page.fill(f"{DIALOG} input[placeholder='Enter email address']", USER_EMAIL)
    page.click(f"{DIALOG} button:has-text('Add')")
    wait_until(page, "Successfully invited")

    other = log_in(browser, cluster, USER_EMAIL, USER_PASSWORD, "Start Interactive Session")
    go(other, cluster, "data", "Pending invitations (1)")
    other.click("a:has-text('Pending invitations')")
    other.click(f"{DIALOG} button:has-text('Accept')")
    wait_until(other, "Successfully accepted invitation", "Read only")
    launch(other, cluster, "theirs", "shell", mounted="my-data")
    wait_row(other, "theirs", "RUNNING")
    tab = open_app(other, "theirs", "Console")
    in_terminal(tab, "sha256sum my-data/big.bin; echo x >my-data/x",
                hashlib.sha256(data).hexdigest(), "Read-only file system")
    assert not tab.problems() and not mistakes(other) and not mistakes(page)

    go(page, cluster, "data", "my-data")
    page.click(f"{row('my-data')} [aria-label='Move to trash bin']")
    confirm(page)
    wait_until(page, "is mounted by the session")


def test_a_batch_session(cluster, page):
    """Its log and how it ended."""
    launch(page, cluster, "counting", "shell", command="echo $((6 * 7)) is counted; exit 3")
    page.click("button:has-text('Finished')")
    wait_row(page, "counting", "TERMINATED")
    page.click(f"{row('counting')} button:has-text('counting')")
    wait_until(page, "task-failed")
    page.click("[aria-label='See Container Logs']:visible >> nth=0")
    wait_until(page, "42 is counted")
    assert not mistakes(page)


def test_a_session_is_renamed(cluster, page):
    launch(page, cluster, "before", "shell")
    wait_row(page, "before", "RUNNING")
    page.click(f"{row('before')} button:has-text('before')")
    page.click("[aria-label='Edit']:visible")
    page.keyboard.press("Control+A")
    page.keyboard.type("afterwards\n")
    wait_row(page, "afterwards", "RUNNING")
    assert not mistakes(page)


def test_a_folder_is_renamed_and_deleted(cluster, page):
    go(page, cluster, "data", "Create Folder")
    page.click("button:has-text('Create Folder') >> nth=0")
    page.fill(f"{DIALOG} input[type=text]:visible >> nth=0", "new-data")
    page.click("[data-testid=create-folder-button]")
    page.click(f"{row('new-data')} a:has-text('new-data')")
    page.click(f"{DIALOG} [aria-label='Edit']")
    page.keyboard.press("Control+A")
    page.keyboard.type("old-data\n")
    wait_until(page, "File renamed")
    go(page, cluster, "data", "old-data")
    for way_back in ("Restore", "Delete"):
        page.click(f"{row('old-data')} [aria-label='Move to trash bin']")
        confirm(page)
        page.click("button:has-text('Trash'):visible >> nth=0")
        page.click(f"{row('old-data')} [aria-label='{way_back}']")
        if way_back == "Restore":
            confirm(page)
            page.click("button:has-text('Active'):visible >> nth=0")
    page.fill(f"{DIALOG} input[type=text]:visible", "old-data")
    page.click(f"{DIALOG} button:has-text('Delete forever')")
    wait_until(page, "Permanently deleted the old-data folder")
    assert not mistakes(page)


def test_a_manager_that_comes_back(cluster, page):
    """Under the open page, which says that it has failed; nobody logs in again."""
    go(page, cluster, "session", "Session Name")
    cluster.programs["manager"].kill()
    wait_for(lambda: not tried(page.click, "[aria-label='Refresh'] >> nth=-1"), 60, "the error")
    wait_until(page, "An error has occurred")
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")
    page.click("button:has-text('Reload the page')")
    wait_until(page, "Session Name")
    assert not mistakes(page)
