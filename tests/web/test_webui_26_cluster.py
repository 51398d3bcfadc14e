# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 26.9, unmodified, in Chromium: sessions of two kernels on two nodes."""

import pathlib
import sys
import time

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
from browser import Browser  # noqa: E402
from cluster import wait_for  # noqa: E402
from hosts import Hosts  # noqa: E402
from runtimes import settings_of  # noqa: E402
from test_proxy import Proxied  # noqa: E402
from test_webui_26 import DIALOG, go, in_terminal, open_app, row, wait_row  # noqa: E402
from web import Webbed  # noqa: E402
from webui import end_sessions, log_in, mistakes, wait_until  # noqa: E402

# Each process adds its rank to the sum of all. Debian's torchrun finds no member of Std for 0.
TRAIN = """\
cat > sum.py <<'END'
import os, socket, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} on {socket.gethostname()}: {total.item()}",
      flush=True)
dist.barrier()
END
cat > torchrun.py <<'END'
from torch.distributed.elastic.multiprocessing.api import Std
Std.from_str = classmethod(lambda cls, text: cls.NONE)
from torch.distributed.run import main
main()
END
exec /usr/bin/python3 torchrun.py sum.py
"""


class Nodes(Proxied, Webbed, Hosts):
    """Two nodes, each with room for one kernel. All files of the node are the image."""

    def start(self):
        self.begin()
        self.start_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
        self.start_web("--static", webui.install("26.9.6"))


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Nodes(count=2, **{**settings_of("crun"), "ALIQUOT_NETWORK_ENABLED": "true",
                           "ALIQUOT_RESOURCE_CPUS": "2", "ALIQUOT_RESOURCE_MEM": "16g",
                           "ALIQUOT_IMAGE_ALLOW": "rootfs:/"}) as made:
        made.start()
        yield made
        made.check_all_gone()


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield log_in(browser, cluster, *cluster.login, "Start Interactive Session")


@pytest.fixture(autouse=True)
def no_sessions_left(cluster, page):
    yield
    assert not mistakes(page)
    end_sessions(cluster)


def fill(page, label, value):
    page.fill(f"input[type=text]:visible:below(:text('{label}')) >> nth=0", value)
    page.keyboard.press("Tab")


def fill_resources(page):
    """The form sets them, too, when it has read what there is; whether they stay."""
    page.fill("[data-bai-field-id=environments_manual]:visible", "rootfs:/")
    fill(page, "CPU", "2")
    fill(page, "Amount", "1")
    time.sleep(1)
    return page.evaluate(
        "[...document.querySelectorAll('input')].filter(it => it.offsetParent)"
        ".map(it => it.value).slice(0, 3)") == ["rootfs:/", "2", "1"]


def launch(page, cluster, name, command=None):
    """A session of two kernels, by the form and its slider; with a command as a batch session."""
    go(page, cluster, "session/start", "Session Name")
    if command:
        page.click("input[type=radio][value=batch]")
        page.fill("textarea:visible >> nth=0", command)
    fill(page, "Session Name", name)
    page.click("button:has-text('Next')")
    wait_for(lambda: fill_resources(page), 60, "the form to keep what is typed")
    page.focus("[role=slider] >> nth=-1")
    page.keyboard.press("ArrowRight")
    page.click("button:has-text('Skip to review')")
    wait_until(page, "Total Allocation", "Number of container\n2", "Cluster Mode\nMulti Node")
    page.click("button:has-text('Launch'):not(:has-text('Multiple')):not(:has-text('Confirm')):visible")
    page.click(f"{DIALOG} button:has-text('Start')")
    wait_for(lambda: "/session/start" not in page.evaluate("location.pathname"), 60, "the list")


def see_kernels(page, session):
    """The drawer of a session lists them by their names."""
    page.click(f"{row(session)} button:has-text('{session}')")
    wait_until(page, "Cluster Mode", "(2)")
    page.wait_for("['main1', 'sub1'].every(name => [...document.querySelectorAll('tr')]"
                  ".some(it => it.innerText.startsWith(name)))")


def see_log(page, kernel, text):
    page.click(f"tr:has-text('{kernel}') [aria-label='See Container Logs']:visible")
    wait_until(page, text)
    page.click(f"{DIALOG} [aria-label='Close'] >> nth=-1")


def test_an_interactive_session(cluster, page):
    """The terminal is main1's, which reaches the other kernel by its name."""
    launch(page, cluster, "pair")
    wait_row(page, "pair", "RUNNING")
    assert {kernel["agent"] for kernel in cluster.live_sessions()[0]["kernels"]} == {"node0", "node1"}
    tab = open_app(page, "pair", "Console")
    in_terminal(tab, "ssh sub1 'echo on $(hostname), rank $RANK'", "on sub1, rank 1")
    assert not tab.problems()
    see_kernels(page, "pair")


def test_torchrun(cluster, page):
    launch(page, cluster, "sums", TRAIN)
    page.click("button:has-text('Finished')")
    wait_row(page, "sums", "TERMINATED")
    see_kernels(page, "sums")
    wait_until(page, "task-finished")
    assert cluster.client().get("/aliquot/v1/sessions/sums").json["result"] == "SUCCESS"
    see_log(page, "main1", "rank 0 of 2 on main1: 1.0")
    see_log(page, "sub1", "rank 1 of 2 on sub1: 1.0")
