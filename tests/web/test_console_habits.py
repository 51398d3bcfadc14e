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
