# SPDX-License-Identifier: Apache-2.0
"""Model services in Backend.AI's WebUI, unmodified, in Chromium: 25.14 with its launcher and its page
of a service, 26.9 with its pages of deployments. Replicas are real containers that clients ask
through aliquot-proxy."""

import http.client
import json
import pathlib
import re
import sys
import uuid

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
import webui_documents  # noqa: E402
from browser import Browser  # noqa: E402
from cluster import wait_for  # noqa: E402
from images import Layout, LooseRegistry, archive, file, folder  # noqa: E402
from python_image import python_layer  # noqa: E402
from runtimes import settings_of  # noqa: E402
from storage import Stored  # noqa: E402
from test_proxy import Proxied  # noqa: E402
from web import EMAIL, PASSWORD, Webbed  # noqa: E402
from webui import log_in, mistakes, text_of, wait_until  # noqa: E402
from webui_page import Page  # noqa: E402

SERVER = """
import http.server, sys
class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Model).serve_forever()
"""
DEFINITION = """
models:
  - name: greeter
    model_path: /models
    service:
      start_command: python3 /app/serve.py
      port: 8000
      health_check: {path: /health, interval: 1}
"""
OURS = "/aliquot/v1/model-services"
EXPECTED = r"policy https://raw.githubusercontent.com/"
# A member of an endpoint is called as what GraphQL says of failures.
ERRORS_ARE_A_FIELD = r'200 \S*/admin/gql \{"data":\{"endpoint":\{"name"'
DIALOG = "[role=dialog]:visible"
# The page does not show the token that was made.
TOKEN = """(() => { const real = window.fetch; window.fetch = async (...words) => {
    const reply = await real(...words);
    if (/\\/token$/.test(reply.url)) window.token = (await reply.clone().json()).token;
    return reply; }; })()"""


class Serving(Proxied, Stored, Webbed):
    """An image that agents have, and a folder with a model."""

    def start(self, version):
        self.layout = Layout(self.folder / "layout")
        self.registry = LooseRegistry(self.layout)
        self.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        self.start_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
        self.proxy_port, self.port = self.port, None  # the storage's, from here on
        self.volume = self.folder / "volume1"
        self.volume.mkdir(mode=0o700)
        self.start_storage()
        self.start_agent(ALIQUOT_FOLDERS_VOLUMES=f"local:volume1={self.volume}",
                         ALIQUOT_IMAGE_INSECURE=self.registry.address)
        self.start_web("--static", webui.install(version))
        self.layout.image("greeter", [python_layer(), archive([
            folder("tmp", mode=0o1777), folder("app"), file("app/serve.py", SERVER.encode())])])
        self.image = f"{self.registry.address}/team/greeter:greeter"
        self.query("mutation($names: [String]!) {preload_image(references: $names, target_agents: "
                   "[\"agent\"]) {ok}}", names=[self.image])
        wait_for(lambda: self.query("{images {name}}")["images"], 60, "the image")
        made = self.client().post("/folders", {"name": "greeter", "usage_mode": "model",
                                               "host": "local:volume1"}).json
        place = self.place(uuid.UUID(made["id"]))
        (place / "model-definition.yaml").write_text(DEFINITION)

    def query(self, text, **variables):
        reply = self.client().post("/admin/gql", {"query": text, "variables": variables}).json
        assert "errors" not in reply, reply
        return reply["data"]

    def asked(self, name, token=None):
        """The status and body of a client's request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy_port, timeout=60)
        connection.request("GET", f"/serve/{name}/", headers={
            "Authorization": f"Bearer {token}"} if token else {})
        reply = connection.getresponse()
        return reply.status, reply.read()

    def service(self, name):
        return self.client().get(f"{OURS}/{name}").json

    def wait_ready(self, name, count=1):
        wait_for(lambda: self.service(name)["replicas"]["ready"] == count, 90,
                 lambda: json.dumps(self.service(name), indent=1))


@pytest.fixture(name="cluster")
def cluster_fixture(request):
    with Serving(**{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "8"}, ALIQUOT_IMAGE_ALLOW="*",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as made:
        made.start(request.param)
        yield made
        made.stop()
        made.registry.stop()


@pytest.fixture(name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


def wait_ended(cluster, name):
    wait_for(lambda: cluster.service(name).get("status") == "ended", 90, lambda: cluster.service(name))


@pytest.mark.parametrize("cluster", ["24.9.14"], ids=["25.14"], indirect=True)
def test_a_service_of_25_14(cluster, browser):
    """By its launcher; asked with a token; edited, and terminated in the list."""
    made = Page(cluster, browser, EMAIL, PASSWORD, "Admin Lablup")
    page = made.page
    made.go("/serving", "Start Service")
    made.press("Start Service")
    made.see("Service Name", "Number of replicas", "greeter")
    page.fill("#serviceName", "greeter")
    page.click("button:has-text('Create'):visible >> nth=-1")
    made.see("Start Service", "greeter")
    cluster.wait_ready("greeter")
    page.click("a:has-text('greeter')")
    made.see("Generate Token", "HEALTHY")
    page.evaluate(TOKEN)
    made.press("Generate Token")
    made.see("Generate new token")
    page.click(".ant-modal-content >> visible=true >> button.ant-btn-primary")
    token = wait_for(lambda: page.evaluate("window.token"), 60, "the token")
    made.see("(token ")
    assert cluster.asked("greeter")[0] == 401
    assert cluster.asked("greeter", token) == (200, b"hello")
    page.click("button:has-text('Edit'):visible")
    made.see("Number of replicas")
    page.fill(".ant-form-item:has-text('Number of replicas') input >> nth=0", "2")
    page.keyboard.press("Tab")
    wait_for(lambda: "replicas%22%3A2" in page.evaluate("location.href"), 60, "the form to take it")
    page.click("button:has-text('Update'):visible")
    cluster.wait_ready("greeter", 2)
    made.go("/serving", "Start Service")
    page.click("tr:has-text('greeter') button >> nth=-1")
    page.click(".ant-modal-confirm-btns button >> nth=-1")
    wait_ended(cluster, "greeter")
    assert not mistakes(page, EXPECTED, ERRORS_ARE_A_FIELD)


def revision(cluster, documents, service):
    """As the form of the page sends it to a manager that is as new: to ours it does not open the list of
    folders."""
    def send(document, **variables):
        reply = cluster.client().gql(documents[document], variables).json
        assert "errors" not in reply, reply
        return reply["data"]
    runtimes = send("BAIRuntimeVariantSelectPaginatedQuery", limit=20, offset=0,
                    filter={"name": {"equals": "custom"}})["runtimeVariants"]
    model = cluster.query("{vfolder_list(limit: 1, offset: 0) {items {id}}}")["vfolder_list"]["items"][0]
    send("DeploymentAddRevisionModalAddMutation", input={
        "deploymentId": service, "clusterConfig": {"mode": "SINGLE_NODE", "size": 1},
        "resourceConfig": {"resourceSlots": {"entries": [
            {"resourceType": "cpu", "quantity": "1"}, {"resourceType": "mem", "quantity": "256m"}]},
            "resourceOpts": None},
        "image": {"id": cluster.query("{images {id}}")["images"][0]["id"]},
        "modelRuntimeConfig": {"runtimeVariantId": runtimes["edges"][0]["node"]["id"], "environ": None},
        "modelMountConfig": {"vfolderId": model["id"], "mountDestination": "/models",
                             "definitionPath": None},
        "modelDefinition": None, "extraMounts": None, "options": {"autoActivate": True}})


@pytest.mark.parametrize("cluster", ["26.9.6"], ids=["26.9"], indirect=True)
def test_a_deployment_of_26_9(cluster, browser):
    """Created, asked with a token, scaled by hand and given a rule, and deleted."""
    page = log_in(browser, cluster, EMAIL, PASSWORD, "Start Interactive Session")
    page.goto(f"{cluster.origin}/project/default/deployments")
    wait_until(page, "Create Deployment")
    page.click("button:has-text('Create Deployment') >> nth=0")
    wait_until(page, "Deployment Name")
    page.fill(f"{DIALOG} input[type=text]:visible >> nth=0", "greeter")
    page.click(f"{DIALOG} button:has-text('Create')")
    wait_until(page, "Basic Information", "No revision is deployed", "Pending")
    revision(cluster, webui_documents.texts("26.9.6", "26.9.0"), cluster.service("greeter")["id"])
    cluster.wait_ready("greeter")
    page.reload()
    wait_until(page, "Healthy", "Running", "Active")

    page.click("button:has-text('Create Access Token') >> nth=0")
    page.click(f"{DIALOG} button:has-text('Create')")
    wait_until(page, "aqs-")
    token = re.search(r"aqs-[\w-]{43}", text_of(page))[0]
    assert cluster.asked("greeter")[0] == 401
    assert cluster.asked("greeter", token) == (200, b"hello")
    page.reload()
    wait_until(page, "Add Rules")

    page.click("button:has-text('Add Rules') >> nth=0")
    wait_until(page, "Metric Source")
    page.fill(f"{DIALOG} input[placeholder*='cpu_util']", "cpu_util")
    page.fill(f"{DIALOG} input[placeholder='Max Threshold'], {DIALOG} input[aria-label='Max Threshold']",
              "80")
    page.click(f"{DIALOG} button:has-text('OK')")
    wait_until(page, "cpu_util")
    rule, = cluster.service("greeter")["scaling"]["rules"]
    assert (rule["name"], rule["threshold"], rule["step"]) == ("cpu_util", 80, 1)

    page.click("button:has-text('Edit') >> nth=0")
    wait_until(page, "Edit Deployment")
    page.fill(f"{DIALOG} :text('Desired Replicas') >> xpath=following::input[1]", "2")
    page.click(f"{DIALOG} button:has-text('Save')")
    cluster.wait_ready("greeter", 2)

    page.click("button[aria-label='More'] >> nth=-1")
    page.click(":text('Delete Deployment'):visible >> nth=-1")
    page.fill(f"{DIALOG} input >> visible=true", "greeter")
    page.click(f"{DIALOG} button:has-text('Delete') >> nth=-1")
    wait_ended(cluster, "greeter")
    wait_until(page, "Create Deployment")
    page.click(":text('Terminated'):visible >> nth=0")
    wait_until(page, "greeter", "Stopped")
    assert not mistakes(page)
