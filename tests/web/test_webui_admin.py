# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 25.14, unmodified: administrators work with its forms, and people with theirs."""

import pytest

import webui
from browser import Browser
from cluster import wait_for
from images import archive, programs, pushed
from runtimes import settings_of
from storage import Stored
from web import EMAIL, PASSWORD, USER_EMAIL, USER_PASSWORD, Webbed
from webui import log_in, mistakes, text_of, wait_until

MODAL = ".ant-modal-content >> visible=true >> "
YES = (".ant-popover:not(.ant-popover-hidden) .ant-popconfirm-buttons button:last-child,"
       " .ant-modal-confirm-btns button:last-child")


class Cluster(Stored, Webbed):
    def query(self, text):
        reply = self.client().post("/admin/gql", {"query": text, "variables": {}}).json
        assert "errors" not in reply, reply
        return reply["data"]


class Page:
    """What people do with the page's tables and forms."""

    def __init__(self, cluster, browser, email, password):
        self.cluster, self.page = cluster, log_in(browser, cluster, email, password, "Lablup")

    def see(self, text):
        wait_until(self.page, text)

    def go(self, path, text, tab=None):
        self.page.goto(self.cluster.origin + path)
        self.see(text)
        if tab:
            self.page.click(f"[role=tab]:has-text('{tab}')")

    def reload(self, text):
        """What it shows when it is loaded again."""
        self.page.reload()
        self.see(text)

    def press(self, text):
        self.page.click(f"button:has-text('{text}') >> visible=true")

    def press_in(self, row, icon):
        self.page.click(f"tr:has-text('{row}') button:has(.{icon})")

    def fill(self, **fields):
        for name, value in fields.items():
            self.page.fill(f"{MODAL}[id='{name.replace('__', '.')}'] >> visible=true", value)

    def choose(self, name, value):
        self.page.click(f".ant-select:has(#{name})")
        self.page.click(".ant-select-dropdown:not(.ant-select-dropdown-hidden)"
                        f" .ant-select-item-option[title='{value}']")

    def done(self):
        """It is sent, and the form closes."""
        self.page.click(MODAL + ".ant-modal-footer .ant-btn-primary")
        wait_for(lambda: self.page.evaluate("![...document.querySelectorAll('.ant-modal-content')]"
                                            ".some(it => it.getClientRects().length)"), 60,
                 lambda: f"the form to close: {mistakes(self.page)} {text_of(self.page)[-500:]}")


@pytest.fixture(scope="module", name="registry")
def registry_fixture(tmp_path_factory):
    base = [archive(programs("sh", "sleep", "id"))]
    names = ["team/python:3.12-ubuntu22.04"]
    with pushed(tmp_path_factory.mktemp("images"), base, *names) as (address, _):
        yield address


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(registry):
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_INSECURE=registry,
                 ALIQUOT_IMAGE_KEEP_FREE="1") as made:
        made.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        made.start_agent()
        made.start_storage()
        made.start_web("--static", webui.install("24.9.14"))
        yield made
        made.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(scope="module", name="admin")
def admin_fixture(cluster, browser):
    return Page(cluster, browser, EMAIL, PASSWORD)


@pytest.fixture(autouse=True)
def nothing_goes_wrong_fixture(admin):
    admin.page.evaluate("window.asked = []")
    yield
    assert not mistakes(admin.page)


def eventually(cluster, query, wanted):
    """The store's answer, once it is that."""
    wait_for(lambda: cluster.query(query) == wanted, 60, lambda: f"{wanted}: {cluster.query(query)}")


def test_a_user(cluster, admin):
    admin.go("/credential", "user@lablup.com")
    admin.press("Create User")
    admin.fill(email="ann@example.com", username="ann", full_name="Ann Lee", password="S3cret!word",
               password_confirm="S3cret!word")
    admin.choose("role", "admin")
    admin.done()
    admin.reload("ann@example.com")
    query = '{user(email: "ann@example.com") {full_name role status description groups {name}}}'
    row = {"full_name": "Ann Lee", "role": "admin", "status": "active",
           "description": "ann's Account", "groups": [{"name": "default"}]}
    assert cluster.query(query)["user"] == row
    admin.press_in("ann@example.com", "anticon-setting")
    admin.fill(full_name="Ann Kim", description="of the lab", password="N3w!secret",
               password_confirm="N3w!secret")
    admin.choose("role", "user")
    admin.done()
    admin.reload("of the lab")
    row.update(full_name="Ann Kim", role="user", description="of the lab")
    assert cluster.query(query)["user"] == row
    assert cluster.browser().login("ann@example.com", "N3w!secret").json["authenticated"]
    admin.press_in("ann@example.com", "lucide-ban")
    admin.page.click(YES)
    eventually(cluster, query, {"user": {**row, "status": "inactive"}})
    admin.page.click("label:has-text('Inactive')")
    admin.see("ann@example.com")
    admin.press_in("ann@example.com", "lucide-undo")
    admin.page.click(YES)
    eventually(cluster, query, {"user": row})


def test_a_keypair(cluster, admin):
    admin.go("/credential", "user@lablup.com", "Credentials")
    admin.press("Add Credential")
    admin.fill(user_id="user@lablup.com", rate_limit="5000")
    admin.choose("resource_policy", "default")
    admin.done()

    def key():
        return next((row for row in cluster.query(
            "{keypairs {access_key user_id rate_limit is_active}}")["keypairs"]
            if row["rate_limit"] in (5000, 7000)), None)
    made = wait_for(key, 60, "the keypair")
    assert made["user_id"] == "user@lablup.com"
    admin.reload(made["access_key"])
    admin.press_in(made["access_key"], "anticon-setting")
    admin.fill(rate_limit="7000")
    admin.done()
    assert key()["rate_limit"] == 7000
    admin.press_in(made["access_key"], "lucide-ban")
    admin.page.click(YES)
    wait_for(lambda: not key()["is_active"], 60, "the keypair to be out of use")
    admin.page.click("label:has-text('Inactive')")
    admin.press_in(made["access_key"], "anticon-delete")
    admin.page.click(YES)
    wait_for(lambda: not key(), 60, "the keypair to go")


def test_policies(cluster, admin):
    admin.go("/resource-policy", "Max Session")
    admin.press("Create")
    admin.fill(name="team-a", max_containers_per_session="4")
    admin.done()
    admin.reload("team-a")
    admin.press_in("team-a", "anticon-setting")
    admin.fill(max_containers_per_session="2")
    admin.done()
    query = "{keypair_resource_policies {name max_containers_per_session}}"
    assert {"name": "team-a", "max_containers_per_session": 2} in \
        cluster.query(query)["keypair_resource_policies"]
    admin.press_in("team-a", "anticon-delete")
    admin.page.click(YES)
    wait_for(lambda: "team-a" not in str(cluster.query(query)), 60, "the policy to go")


@pytest.mark.parametrize("tab", ["User", "Project"])
def test_policies_of_folders(cluster, admin, tab):
    query = "{policy: %s_resource_policy(name: \"labs\") {max_vfolder_count}}" % tab.lower()
    admin.go("/resource-policy", "Max Session", tab)
    admin.see("Max Folder Count")
    admin.press("Create")
    admin.fill(name="labs")
    admin.page.click(MODAL + "label:has-text('Unlimited') >> nth=0")
    admin.fill(max_vfolder_count="3")
    if tab == "User":
        admin.fill(max_session_count_per_model_session="1", max_customized_image_count="1")
    admin.done()
    admin.reload("labs")
    assert cluster.query(query)["policy"] == {"max_vfolder_count": 3}
    admin.press_in("labs", "anticon-setting")
    admin.fill(max_vfolder_count="5")
    admin.done()
    assert cluster.query(query)["policy"] == {"max_vfolder_count": 5}
    admin.press_in("labs", "anticon-delete")
    admin.page.click(YES)
    eventually(cluster, query, {"policy": None})


def test_a_registry_and_its_images(cluster, admin, registry):
    admin.go("/environment", "Resource Presets", "Registries")
    admin.press("Add Registry")
    admin.fill(registry_name=registry, url="http://" + registry, project="other")
    admin.choose("type", "docker")
    admin.done()
    admin.reload(registry)
    admin.press_in(registry, "anticon-setting")
    admin.fill(project="team")
    admin.done()
    admin.see("team")
    admin.press_in(registry, "anticon-sync")
    wait_for(lambda: cluster.query("{images {name}}")["images"], 90, "the registry's images")
    admin.go("/environment", "team/python:3.12-ubuntu22.04")
    admin.press_in("team/python", "anticon-setting")
    admin.fill(cpu="2", mem="3072")
    admin.done()
    query = "{images {name installed resource_limits {key min}}}"
    limits = cluster.query(query)["images"][0]["resource_limits"]
    assert sorted(map(str, limits)) == sorted(map(str, [
        {"key": "cpu", "min": "2"}, {"key": "mem", "min": str(3 << 30)}]))
    assert cluster.client().send("POST", "/admin/gql", {"query": """mutation($t: String!) {modify_image(
        target: $t, props: {resource_limits: []}) {ok}}""", "variables": {
            "t": registry + "/team/python:3.12-ubuntu22.04"}}).json["data"]["modify_image"]["ok"]
    admin.reload("team/python")
    admin.page.click("tr:has-text('team/python') .ant-checkbox-input")
    admin.press("Install")
    admin.done()
    wait_for(lambda: cluster.query(query)["images"][0]["installed"], 90, "the image on the agent")


def test_a_preset(cluster, admin):
    query = "{resource_presets {name resource_slots shared_memory}}"
    admin.go("/environment", "Resource Presets", "Resource Presets")
    admin.press("Create Preset")
    admin.fill(name="tiny", resource_slots_cpu="2", resource_slots_mem="512", shared_memory="64")
    admin.done()
    admin.reload("tiny")
    row = {"name": "tiny", "resource_slots": '{"cpu":"2","mem":"536870912"}',
           "shared_memory": 64 << 20}
    assert cluster.query(query)["resource_presets"] == [row]
    admin.press_in("tiny", "anticon-setting")
    admin.fill(resource_slots_cpu="3")
    admin.done()
    row["resource_slots"] = '{"cpu":"3","mem":"536870912"}'
    assert cluster.query(query)["resource_presets"] == [row]
    admin.press_in("tiny", "anticon-delete")
    admin.page.click(YES)
    eventually(cluster, query, {"resource_presets": []})


def test_an_agent_and_storages(cluster, admin):
    query = '{agent(agent_id: "agent") {schedulable}}'
    admin.go("/agent", "x86_64")
    for wanted in (False, True):
        admin.press_in("x86_64", "anticon-setting")
        admin.page.click("#schedulable")
        admin.done()
        eventually(cluster, query, {"agent": {"schedulable": wanted}})
        admin.reload("x86_64")
    admin.page.click("[role=tab]:has-text('Storages')")
    admin.see("local:volume1")
    assert "NaN" not in text_of(admin.page)
    admin.go("/storage-settings/local:volume1", "vfolder")


def test_a_resource_group(cluster, admin):
    query = '{scaling_group(name: "gpu") {description is_active scheduler_opts}}'
    admin.go("/agent", "x86_64", "Resource Group")
    admin.press("Create")
    admin.fill(name="gpu")
    admin.done()
    admin.press_in("gpu", "anticon-setting")
    admin.fill(description="cards", pendingTimeout="60")
    admin.done()
    found = cluster.query(query)["scaling_group"]
    assert found["description"] == "cards" and '"pending_timeout":60' in found["scheduler_opts"]
    assert '"backfill":true' in found["scheduler_opts"], "the page does not know it"
    admin.press_in("gpu", "lucide-ban")
    admin.page.click(YES)
    wait_for(lambda: not cluster.query(query)["scaling_group"]["is_active"], 60, "it is out of use")
    admin.page.click("label:has-text('Inactive')")
    admin.press_in("gpu", "anticon-delete")
    admin.fill(confirmText="gpu")
    admin.done()
    eventually(cluster, "{scaling_groups {name}}", {"scaling_groups": [{"name": "default"}]})


def test_maintenance(cluster, admin):
    admin.go("/maintenance", "Recalculate Usage")
    admin.press("Recalculate Usage")
    admin.see("Recalculation finished")
    admin.press("Rescan Images")
    admin.see("Rescan")


@pytest.mark.parametrize("path, text", [("/settings", "Overlay Network"), ("/logs", "Logs"),
                                        ("/information", "API version")])
def test_other_pages(admin, path, text):
    admin.go(path, text)


def test_own_scripts_and_keys(cluster, admin):
    client = cluster.client()
    admin.go("/usersettings", "Edit Bootstrap Script")
    for place, text, path in ((2, "echo page", "/user-config/bootstrap-script"),
                              (3, "alias ll=ls", "/user-config/dotfiles")):
        admin.page.click(f"button:has-text('Config') >> nth={place}")
        admin.page.click(MODAL + ".cm-content")
        admin.page.keyboard.insertText(text)
        admin.press("Save And Close")
        wait_for(lambda: text in str(client.get(path).json), 60, path)
        admin.reload("Edit Bootstrap Script")
    admin.page.click("button:has-text('Config') >> nth=1")
    admin.press("Generate")
    admin.see("BEGIN OPENSSH PRIVATE KEY")
    assert client.get("/auth/ssh-keypair").json["ssh_public_key"] in text_of(admin.page)


def test_people_change_their_name_and_password(cluster, browser):
    user = Page(cluster, browser, USER_EMAIL, USER_PASSWORD)
    user.page.click("text=User Lablup")
    user.page.click("text=My Account")
    user.fill(full_name="User Kim")
    user.done()
    user.see("User Kim")
    user.page.click("text=User Kim")
    user.page.click("text=My Account")
    user.fill(originalPassword=USER_PASSWORD, newPassword="N3w!secret9",
              newPasswordConfirm="N3w!secret9")
    user.done()
    user.see("Password is successfully updated")
    assert cluster.browser().login(USER_EMAIL, "N3w!secret9").json["authenticated"]
    assert cluster.query('{user(email: "%s") {full_name}}' % USER_EMAIL)["user"]["full_name"] == \
        "User Kim"
