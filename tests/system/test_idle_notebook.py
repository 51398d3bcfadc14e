# SPDX-License-Identifier: Apache-2.0
"""A real JupyterLab in Chromium that nobody works in: a page that is left open does not keep it, a
notebook that computes does, also when its page is closed."""

import time

import pytest

from browser import Browser
from cluster import wait_for, wait_status
from images import Layout
from python_image import pip_layer, python_layer
from runtimes import settings_of
from test_notebook import DOMAIN, LAB, OUTPUT, PATH, new_notebook, run_cell, says
from test_proxy import Proxied

LIMIT = 60


@pytest.fixture(scope="module")
def cluster():
    with Proxied(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.start_proxy(**DOMAIN)
        cluster.layout = Layout(cluster.folder / "layout")
        cluster.layout.image("lab", [python_layer(), pip_layer(*LAB)], how=None, Env=[PATH])
        for words in (("config", "set", "config/idle/warnings", "25s,5s"),
                      ("policy", "set", "default", "--idle-timeout-sec", f"{LIMIT}s")):
            done = cluster.cli("admin", *words)
            assert done.returncode == 0, done.stderr
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def browser(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


def open_lab(cluster, browser, name):
    done = cluster.cli("notebook", "-t", name, "-r", "cpu=1", "-r", "mem=1g",
                       cluster.layout.reference("lab"))
    assert done.returncode == 0, done.stderr
    page = browser.page()
    page.goto(done.stdout.strip())
    new_notebook(page)
    return page


def show(cluster, name):
    return cluster.client().get(f"/aliquot/v1/sessions/{name}").json


def test_left_alone_with_an_open_page(cluster, browser):
    page = open_lab(cluster, browser, "left")
    run_cell(page, "6 * 7")
    page.wait_for(says(OUTPUT, "42"))
    session = show(cluster, "left")["id"]
    requests = show(cluster, "left")["app_traffic"]
    wait_for(lambda: show(cluster, "left")["idle_ends_at"], LIMIT + 60, "the warning")
    assert show(cluster, "left")["app_traffic"] != requests, "the page went on asking"
    run_cell(page, "43")
    page.wait_for(says(OUTPUT, "43"))
    wait_for(lambda: not show(cluster, "left")["idle_ends_at"], 10, "use of it")
    wait_for(lambda: show(cluster, "left")["idle_ends_at"], LIMIT + 60, "the next warning")
    done = cluster.cli("session", "extend", "left", "40s")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: not show(cluster, "left")["idle_ends_at"], 10, "the extension")
    ended = wait_status(cluster.client(), session, "TERMINATED", seconds=LIMIT + 90)
    assert ended["reason"] == "idle-timeout"


def test_computing_with_a_closed_page(cluster, browser):
    page = open_lab(cluster, browser, "computes")
    run_cell(page, "print('begun')\nwhile True: pass")
    page.wait_for(says(OUTPUT, "begun"))
    browser.close_pages()
    end = time.monotonic() + 2.5 * LIMIT
    while time.monotonic() < end:
        assert show(cluster, "computes")["status"] == "RUNNING"
        time.sleep(5)
    assert not show(cluster, "computes")["idle_ends_at"]
    assert cluster.cli("rm", "--wait", "computes").returncode == 0
