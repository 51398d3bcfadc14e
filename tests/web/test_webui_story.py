# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 25.14, unmodified, in Chromium: document 002's afternoon.

Two fGPU on one simulated card of 8 GB, real containers, folders, and apps by the proxy."""

import hashlib
import json
import os
import pathlib
import re
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
from browser import Browser  # noqa: E402
from cluster import wait_for  # noqa: E402
from gpu_cluster import GpuCluster  # noqa: E402
from images import Layout, Registry, archive, file, folder  # noqa: E402
from python_image import pip_layer, python_layer  # noqa: E402
from runtimes import settings_of  # noqa: E402
from storage import Stored  # noqa: E402
from test_notebook import LAB, OUTPUT, PATH, new_notebook, problems, run_cell, says  # noqa: E402
from test_proxy import Proxied  # noqa: E402
from web import USER_EMAIL, USER_PASSWORD, Webbed  # noqa: E402
from webui import end_sessions, log_in, mistakes, text_of, tried, wait_until  # noqa: E402

# What the program of this name says of memory, from the same library.
SMI = """\
#!/usr/bin/python3
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, memory = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0
print(f"{memory[2] >> 20}MiB / {memory[0] >> 20}MiB")
"""
# Images as Backend.AI names them: the name, the module, its version.
IMAGES = (("python-tensorflow:2.2-py36-cuda10.1", "tensorflow", "2.2.0"),
          ("python-tensorflow:1.13-py36-cuda9", "tensorflow", "1.13.1"),
          ("python-pytorch:1.5-py36-cuda10.1", "torch", "1.5.0"))
LABELS = {"ai.backend.role": "COMPUTE", "ai.backend.resource.min.cpu": "1",
          "ai.backend.resource.min.mem": "512m", "ai.backend.resource.min.cuda.shares": "0"}
SIZE = 50 << 20
SUM = """python3 -c 'import hashlib as h; it = open("data/big.bin", "rb").read(); """ \
      """print(len(it), h.sha256(it).hexdigest())'"""
FRIEND = {"email": "ann@example.com", "password": "Ann-1234567"}
OWN = ("400 (Bad Request)", "404 (Not Found)")  # webui.EXPECTED


class Afternoon(GpuCluster, Proxied, Stored, Webbed):
    def start(self):
        self.registry = Registry(self.folder / "registry").start()
        self.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        self.start_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
        self.port = None  # the proxy's; now the storage's
        self.volume = self.folder / "volume1"
        self.volume.mkdir(mode=0o700)
        self.start_storage()
        self.start_agent(ALIQUOT_FOLDERS_VOLUMES=f"local:volume1={self.volume}",
                         ALIQUOT_IMAGE_INSECURE=self.registry.address)
        self.start_web("--static", webui.install("24.9.14"))
        self.make_images()

    def make_images(self):
        layout = Layout(self.folder / "layout")
        smi = archive([file("usr/bin/nvidia-smi", SMI.encode(), mode=0o755), folder("tmp", mode=0o1777)])
        lab = [pip_layer(*LAB)]  # the first one's
        for name, module, version in IMAGES:
            own = archive([folder("opt"), folder(f"opt/{module}"), file(
                f"opt/{module}/__init__.py", f"__version__ = '{version}'\n".encode())])
            layout.image(version, [python_layer(), smi, own, *lab], how=None, Env=["PYTHONPATH=/opt", PATH],
                         Labels=LABELS)
            lab = []
            layout.push(version, self.registry, "stable/" + name)
        reply = self.client().post("/config/set", {
            "key": "config/docker/registry/" + self.registry.address,
            "value": {"": "http://" + self.registry.address}})
        assert reply.status == 200, reply
        assert self.cli("admin", "registry", "rescan", self.registry.address).returncode == 0

    def add_user(self, email, password):
        props = {"username": email, "password": password, "full_name": "Ann", "role": "user",
                 "status": "active", "domain_name": "default", "need_password_change": False}
        reply = self.client().post("/admin/gql", {
            "query": "mutation($email: String!, $props: UserInput!) {"
                     " create_user(email: $email, props: $props) { ok msg } }",
            "variables": {"email": email, "props": props}})
        assert reply.json["data"]["create_user"]["ok"], reply
        assert self.cli("admin", "project", "add-user", "default", email).returncode == 0

    def statuses(self):
        return sorted(session["status"] for session in self.live_sessions())


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Afternoon(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="*", ALIQUOT_IMAGE_KEEP_FREE="0") as made:
        made.start()
        yield made
        made.stop()
        made.registry.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(scope="module", name="page")
def page_fixture(browser, cluster):
    return log_in(browser, cluster, USER_EMAIL, USER_PASSWORD, "Start Interactive")


@pytest.fixture(autouse=True)
def no_sessions_left(cluster):
    yield
    end_sessions(cluster)


def check(page):
    assert not mistakes(page)
    assert not [text for text in page.problems() if not any(own in text for own in OWN)]


def choose(page, field, option):
    page.click(f".ant-select:has(#environments_{field})")
    page.click(f".ant-select-dropdown:not(.ant-select-dropdown-hidden) .ant-select-item-option:has-text('{option}')")


def fill_number(page, label, number):
    page.fill(f".ant-form-item:has(label:has-text('{label}')) .ant-input-number-input >> nth=0", str(number))
    page.keyboard.press("Tab")


def reviewed(page, gpu, count):
    """Amounts filled in; false if the form has put those of the image back since."""
    page.click(".ant-steps-item:has-text('Environments & Resource')")
    fill_number(page, "Sessions", count)
    fill_number(page, "AI Accelerator", gpu)
    page.click("button:has-text('Skip to review')")
    page.waitForSelector("button:has-text('Launch')")
    return f"{float(gpu):.2f}" in page.innerText("body")


def launch(page, cluster, name, environment, version, gpu, count=1, data=None, command=None):
    """By the form, as somebody fills it in; a batch session if it has a command."""
    page.goto(cluster.origin + "/session/start")
    wait_until(page, "Skip to review")
    page.fill("#sessionName", name)
    if command:
        page.click("label:has-text('Batch')")
        page.fill("#batch_command", command)
    if data:
        page.click(".ant-steps-item:has-text('Data & Storage')")
        page.click(f".ant-table-row:has-text('{data}') .ant-checkbox-input")
        wait_until(page, "/home/work/" + data)
    page.click(".ant-steps-item:has-text('Environments & Resource')")
    choose(page, "environment", environment)
    choose(page, "version", version)
    wait_for(lambda: reviewed(page, gpu, count), 60, "the amounts")
    page.click("button:has-text('Launch')")
    if not data:
        page.click(".ant-modal button:has-text('Start')")  # though nothing is kept
    wait_for(lambda: "/job" in page.url(), 60, page.url)


def open_app(page, name):
    """Its tab, by the dialog that comes when the session runs, unless that took long."""
    before = len(page.opened())
    app = f"#app-dialog .app-icon:has-text('{name}') mwc-icon-button"
    wait_for(lambda: page.isVisible(app) or tried(page.click, "[id='0-apps']"), 90, "its apps")
    page.click(app)
    return wait_for(lambda: page.opened()[before:], 60, "the tab")[0]


def in_terminal(tab, command, answer):
    tab.wait_for("document.querySelector('.xterm-rows') !== null")
    tab.wait_for("document.querySelector('#bar').hidden")
    tab.keyboard.type(command + "\n")
    tab.wait_for(f"document.querySelector('.xterm-rows').textContent.includes({json.dumps(answer)})")


def end_first(page):
    """The first session of the list."""
    page.click("[id='0-power']")
    page.click("#terminate-session-dialog mwc-button.ok")


def test_half_of_an_fgpu(cluster, page):
    """Three images to choose from; the web terminal sees a quarter of the card."""
    page.goto(cluster.origin + "/session/start")
    page.click(".ant-steps-item:has-text('Environments & Resource')")
    page.click(".ant-select:has(#environments_environment)")
    wait_until(page, "PyTorch")
    page.click(".ant-select-item-option:has-text('TensorFlow')")
    page.click(".ant-select:has(#environments_version)")
    wait_until(page, "1.13")
    wait_until(page, "2.2")
    launch(page, cluster, "half", "TensorFlow", "2.2", "0.5")
    wait_until(page, "0.50")
    wait_until(page, "(SHM: 0.06GiB)")
    tab = open_app(page, "Console")
    in_terminal(tab, "nvidia-smi", "0MiB / 2048MiB")
    in_terminal(tab, "python3 -c 'import tensorflow as t; print(t.__version__)'", "2.2.0")
    assert not tab.problems()
    page.click("#terminal-guide mwc-icon-button[icon='close']")

    lab = open_app(page, "JupyterLab")
    new_notebook(lab)
    run_cell(lab, "import tensorflow; tensorflow.__version__[::-1]")
    lab.wait_for(says(OUTPUT, "'0.2.2'"))
    assert not problems(lab)

    page.click("#session-rename-icon")
    page.fill("#session-rename-field input", "half-a-card")
    page.click("#session-rename-icon")
    wait_until(page, "half-a-card")
    assert [session["name"] for session in cluster.live_sessions()] == ["half-a-card"]

    end_first(page)
    tab.wait_for("document.querySelector('#bar span').textContent === 'The session has ended.'")
    assert tab.evaluate("document.querySelector('#bar button').matches(':empty')")
    check(page)


def test_a_batch_session(cluster, page):
    """Its end, its exit status and its log are in the list of those that have finished."""
    launch(page, cluster, "count", "PyTorch", "1.5", "0.5",
           command="python3 -c 'print(\"counted to\", 6 * 7)'; exit 3")
    wait_for(lambda: not cluster.live_sessions(), 60, cluster.statuses)
    page.click("mwc-tab:has-text('finished')")
    wait_until(page, "count", "BATCH", "task-failed")
    page.click("mwc-icon-button[icon='help']:visible >> nth=0")
    wait_for(lambda: re.search(r"Kernel Exit Code\s+3\s", text_of(page)), 60, "the exit status")
    page.click("#status-detail-dialog mwc-icon-button[icon='close']:visible")
    page.click("[id='0-assignment']:visible")
    wait_until(page, "Container Logs", "counted to 42")
    check(page)


def test_three_on_two(cluster, page):
    """Three sessions of an fGPU at once: the third waits, and says for what, until one is ended."""
    launch(page, cluster, "train", "PyTorch", "1.5", "1", count=3)
    wait_for(lambda: cluster.statuses() == ["PENDING", "RUNNING", "RUNNING"], 60, cluster.statuses)
    wait_until(page, "no-available-instances")
    wait_for(lambda: page.isVisible("[id='0-power']"), 60, "the list")
    page.click("mwc-icon-button[icon='help']")
    wait_until(page, "cuda.shares: 1 missing")
    page.click("#status-detail-dialog mwc-icon-button[icon='close']")
    end_first(page)
    wait_for(lambda: cluster.statuses() == ["RUNNING", "RUNNING"], 60, cluster.statuses)
    check(page)


def test_a_folder(cluster, browser, page):
    """Made, filled with a file of 50 MB, which a session reads; shared with somebody else, who accepts
    it, reads it as well, and leaves it."""
    big = cluster.folder / "big.bin"
    big.write_bytes(os.urandom(SIZE))
    answer = f"{SIZE} {hashlib.sha256(big.read_bytes()).hexdigest()}"
    cluster.add_user(**FRIEND)
    page.goto(cluster.origin + "/data")
    page.click("button:has-text('Create Folder') >> nth=0")
    page.fill(".ant-modal input[type=text] >> nth=0", "data")
    page.click(".ant-modal button:has-text('Create') >> nth=-1")
    page.click(".ant-table-row a:has-text('data')")
    page.setInputFiles("#fileInput", str(big))
    wait_until(page, "52.43 MB")
    launch(page, cluster, "reader", "PyTorch", "1.5", "0.5", data="data")
    in_terminal(open_app(page, "Console"), SUM, answer)
    page.goto(cluster.origin + "/data")
    page.click(".ant-table-row:has-text('data') button >> nth=0")
    page.fill(".ant-modal #email", FRIEND["email"])
    page.click(".ant-modal button:has-text('Add')")
    wait_until(page, "Successfully invited")

    other = log_in(browser, cluster, FRIEND["email"], FRIEND["password"], "Start Interactive")
    other.goto(cluster.origin + "/data")
    other.click("sup.ant-badge-count[title='+1']")
    other.click(".ant-modal button:has-text('Accept')")
    wait_until(other, "Successfully accepted invitation")
    wait_for(lambda: other.isVisible(".ant-table-row:has-text('data'):has-text('Read only')"), 60, "the folder")
    launch(other, cluster, "guest", "PyTorch", "1.5", "0.5", data="data")
    tab = open_app(other, "Console")
    in_terminal(tab, SUM, answer)
    in_terminal(tab, "echo mine >data/mine.txt", "Read-only file system")
    other.goto(cluster.origin + "/data")
    other.click(".ant-table-row:has-text('data') button >> nth=0")
    other.click(".ant-modal .ant-table-row button")
    other.click(".ant-popconfirm .ant-btn-primary")
    wait_until(other, "Successfully left")
    wait_for(lambda: not other.isVisible(".ant-table-row:has-text('data')"), 60, "its row to go")
    check(other)
    check(page)
