# SPDX-License-Identifier: Apache-2.0
"""Real apps, as pip installs them, in Chromium through the proxy: opened by the address that the
command line prints, used, left, and opened again."""

import json
import re
import signal
import subprocess

import pytest

from browser import Browser
from cluster import running, wait_for
from images import Layout, archive, folder
from ports import free_ports
from python_image import pip_layer, python_layer
from runtimes import settings_of
from test_proxy import Proxied
from world import BUILD

DOMAIN = {"ALIQUOT_PROXY_DOMAIN": "localhost"}
LAB = ("jupyterlab==4.4.7", "matplotlib==3.10.6")
BOARD = ("tensorboard==2.20.0", "setuptools<81")
PATH = "PATH=/usr/local/bin:/usr/bin:/bin"
# What JupyterLab asks for to find out whether it is there, and was asking when it was left.
USUAL = ("404 (Not Found)", "Failed to fetch")
SCALARS = """
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("logs/first")
for step in range(5):
    value = Summary.Value(tag="loss", simple_value=1 / (step + 1))
    writer.add_event(Event(step=step, wall_time=1700000000 + step, summary=Summary(value=[value])))
writer.close()
"""
OUTPUT = ".jp-CodeCell .jp-OutputArea-output"

PLOT = """%matplotlib inline
import matplotlib.pyplot as plt
_ = plt.plot([1, 4, 9])"""
# Before, a cell is not run, and nobody says so.
CONNECTED = """fetch("/api/kernels").then((reply) => reply.json()).then((kernels) =>
  kernels.some((kernel) => kernel.connections && kernel.execution_state === "idle"))"""
FILES = """fetch("/api/contents").then((reply) => reply.json()).then((folder) =>
  folder.content.map((file) => file.name))"""
SEEN = """() => [...document.querySelectorAll(".jp-OutputArea-output img")].some((image) => {
  const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
  const context = canvas.getContext("2d");
  if (image.naturalWidth < 100) return false;
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size > 10;
})"""
@pytest.fixture(scope="module")
def cluster():
    with Proxied(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.start_proxy(**DOMAIN)
        layout = Layout(cluster.folder / "layout")
        layout.image("bare", [archive([folder("tmp", mode=0o1777)]), python_layer()])
        layout.image("lab", [python_layer(), pip_layer(*LAB)], how=None, Env=[PATH])
        layout.image("board", [python_layer(), pip_layer(*BOARD)], how=None, Env=[PATH])
        cluster.layout = layout
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def browser(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(scope="module")
def lab(cluster):
    """The address that 'aliquot notebook' printed."""
    done = cluster.cli("notebook", "-t", "lab", "-r", "cpu=1", "-r", "mem=1g",
                       cluster.layout.reference("lab"))
    assert done.returncode == 0, done.stderr
    assert "again: aliquot app lab jupyterlab --open" in done.stderr
    stages = [line for line in done.stderr.splitlines() if line.startswith("lab: ")]
    assert len(set(stages)) == len(stages), "each is told once"
    yield done.stdout.strip()
    assert cluster.cli("rm", "--wait", "lab").returncode == 0


def opened(cluster, session, app, *words, opener="xdg-open"):
    """The address that --open shows to a browser, which it prints, too."""
    programs = cluster.folder / f"opens-{opener}"
    programs.mkdir(exist_ok=True)
    said = programs / "said"
    said.unlink(missing_ok=True)
    (programs / opener).write_text(
        f'#!/bin/sh\necho "$1" >{said}.new && /bin/mv {said}.new {said}\n')
    (programs / opener).chmod(0o755)
    done = cluster.cli("app", session, app, "--open", *words, PATH=str(programs), BROWSER="firefox")
    assert done.returncode == 0, done.stderr
    wait_for(said.exists, 30, "the browser")
    assert said.read_text() == done.stdout
    return done.stdout.strip()


def says(selector, text):
    return (f"[...document.querySelectorAll({json.dumps(selector)})].some("
            f"(element) => element.textContent.trim() === {json.dumps(text)})")


def problems(page):
    return [text for text in page.problems() if not any(usual in text for usual in USUAL)]


def run_cell(page, code):
    """Into the last cell."""
    page.click(".jp-Notebook .jp-CodeCell:last-child .cm-content")
    page.keyboard.insertText(code)
    page.keyboard.press("Shift+Enter")


def new_notebook(page):
    page.click('.jp-LauncherCard[data-category="Notebook"]')
    page.wait_for('document.querySelector(".jp-Notebook .jp-CodeCell") !== null')
    # first, as a server that is asked for its kernels while one starts may answer with 500
    page.wait_for('document.querySelector("#jp-main-statusbar").textContent.includes("| Idle")')
    page.wait_for(CONNECTED)


def test_jupyterlab(cluster, browser, lab):
    page = browser.page()
    page.goto(lab)
    place = page.url()
    assert re.match(rf"http://jupyterlab--[0-9a-f]{{32}}\.localhost:{cluster.port}/lab", place), place
    assert "token" not in place
    for name in ("id_container", "id_other"):
        (cluster.folder / name).touch()
        assert cluster.cli("cp", cluster.folder / name, f"lab:{name}").returncode == 0
    listed = page.evaluate(FILES)
    assert "id_other" in listed and "id_container" not in listed, "the session's private key"
    new_notebook(page)
    run_cell(page, PLOT)
    page.wait_for(SEEN)
    run_cell(page, "'plt' in globals()")
    page.wait_for(says(OUTPUT, "True"))
    page.click('jp-button[data-jp-item-name="restart"], [data-jp-item-name="restart"] jp-button')
    page.click(".jp-Dialog .jp-mod-accept")
    page.wait_for('!document.querySelector(".jp-Dialog")')
    run_cell(page, "'plt' in globals()")
    page.wait_for(says(OUTPUT, "False"))
    assert not problems(page)
    # left, and opened again: the cookie is enough
    page.goto("about:blank")
    page.goto(place)
    page.wait_for('document.querySelector("#jp-main-dock-panel") !== null')
    assert not problems(page)
    page.close()


def test_a_terminal_of_jupyterlab(cluster, browser, lab):
    page = browser.page()
    page.goto(opened(cluster, "lab", "jupyterlab", opener="firefox"))
    page.goto(page.url().partition("?")[0] + "?reset")  # no tabs of others
    page.click('.jp-LauncherCard:has-text("Terminal")')
    page.wait_for('document.querySelector(".jp-Terminal .xterm-screen") !== null')
    page.click(".jp-Terminal .xterm-screen")
    page.keyboard.type("echo $((6 * 7)) >counted\n")
    wait_for(lambda: cluster.cli("exec", "lab", "cat", "counted").stdout == "42\n", 60,
             "what was typed")
    assert not problems(page)
    page.close()


def test_jupyterlab_through_a_tunnel(cluster, browser, lab):
    tunnel = subprocess.Popen([BUILD / "aliquot", "app", "lab", "jupyterlab"], text=True,
                              stdout=subprocess.PIPE, env={**cluster.env, **cluster.cli_env()})
    try:
        page = browser.page()
        page.goto(tunnel.stdout.readline().strip() + "/lab?reset")
        new_notebook(page)
        run_cell(page, "6 * 7")
        page.wait_for(says(OUTPUT, "42"))
        assert not problems(page)
        page.close()
    finally:
        tunnel.send_signal(signal.SIGINT)
        assert tunnel.wait(60) == 0


@pytest.fixture
def ports(cluster):
    """The ports of a proxy that has no domain."""
    first = free_ports(2)
    cluster.programs["proxy"].kill()
    cluster.start_proxy(ALIQUOT_PROXY_PORTS=f"{first}-{first + 1}")
    yield range(first, first + 2)
    cluster.programs["proxy"].kill()
    cluster.start_proxy(**DOMAIN)


def test_jupyterlab_at_a_port(cluster, browser, lab, ports):
    """Its links are absolute, and lead to the app."""
    page = browser.page()
    page.goto(opened(cluster, "lab", "jupyterlab"))
    found = re.match(r"http://127\.0\.0\.1:(\d+)/lab", page.url())
    assert found and int(found[1]) in ports, page.url()
    page.goto(page.url().partition("?")[0] + "?reset")
    new_notebook(page)
    run_cell(page, "6 * 7")
    page.wait_for(says(OUTPUT, "42"))
    assert not problems(page)
    page.close()


def test_tensorboard(cluster, browser):
    with running(cluster.client(), "board", image=cluster.layout.reference("board"),
                 config={"resources": {"cpu": "1", "mem": "512m"}}):
        done = cluster.cli("exec", "board", "python3", "-c", SCALARS)
        assert done.returncode == 0, done.stderr
        page = browser.page()
        page.goto(opened(cluster, "board", "tensorboard"))
        page.wait_for('document.querySelector("scalar-card svg, scalar-card canvas") !== null')
        page.wait_for(says("scalar-card .tag", "loss"))
        assert not problems(page)
        page.close()


def test_an_address_is_good_once(cluster, browser, lab):
    address = cluster.cli("app", "lab", "jupyterlab", "--url").stdout.strip()
    for works in (True, False):
        page = browser.page()
        page.goto(address)
        assert (page.title() == "JupyterLab") == works
        assert any(status in text for text in page.problems() for status in ("401", "403")) != works
        page.close()


def test_an_image_without_jupyter(cluster):
    """It is said, with what to do, and nothing is left running."""
    done = cluster.cli("notebook", "-t", "bare", "-r", "cpu=1", "-r", "mem=64m", "--image",
                       cluster.layout.reference("bare"))
    assert done.returncode == 5, done.stderr
    assert "has no Jupyter" in done.stderr and "pip install jupyterlab" in done.stderr
    wait_for(lambda: not [each for each in cluster.live_sessions() if each["name"] == "bare"], 60,
             "its end")
    done = cluster.cli("notebook", "-t", "none")
    assert done.returncode == 2 and "name an image" in done.stderr, done.stderr
    assert "none" not in [each["name"] for each in cluster.sessions()]
