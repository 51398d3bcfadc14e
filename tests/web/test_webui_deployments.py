# SPDX-License-Identifier: Apache-2.0
"""The documents of the WebUI's pages of model services as deployments, as the files of 26.9 have
them for its own manager, with variables as its forms make them. Node and proxy are played."""

import base64
import datetime
import itertools

import pytest

import webui_documents
from client import ADMIN, USER
from cluster import Cluster, wait_for
from played_serving import Node, Proxy

OURS = "/aliquot/v1/model-services"
numbers = itertools.count(1)


@pytest.fixture(name="documents", scope="module")
def documents_fixture():
    return webui_documents.texts("26.9.6", "26.9.0")


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_AGENTS_HEARTBEAT="300s", ALIQUOT_AGENTS_TIMEOUT="1h") as cluster:
        cluster.start_manager()
        cluster.node, cluster.proxy = Node(cluster), Proxy(cluster)
        cluster.user, cluster.admin = cluster.client(USER), cluster.client(ADMIN)
        yield cluster
        cluster.proxy.end()
        cluster.node.stop()
        cluster.stop()


class Pages:
    def __init__(self, client, documents):
        self.client, self.documents = client, documents

    def send(self, document, **variables):
        reply = self.client.gql(self.documents[document], variables).json
        assert "errors" not in reply, (document, reply)
        return reply["data"]

    def fails(self, document, **variables):
        return self.client.gql(self.documents[document], variables).json["errors"][0]["message"]

    def list(self, document="DeploymentListPageQuery", where=None, order=None, **more):
        data = self.send(document, filter=where or {"status": {"notIn": ["STOPPED"]}}, orderBy=order,
                         limit=10, offset=0, **more)
        page, = data.values()
        return page["count"], [edge["node"] for edge in page["edges"]]

    def show(self, document, of, **variables):
        return self.send(document, deploymentId=of, **{"limit": 10, "offset": 0, **variables})["deployment"]

    def create(self, project, **more):
        name = f"dep-{next(numbers)}"
        made = self.send("DeploymentSettingModalCreateMutation", input={
            "metadata": {"projectId": project, "domainName": "default", "name": name,
                         "tags": ["blue", "big"], "resourceGroupName": "default"},
            "networkAccess": {"preferredDomainName": None, "openToPublic": False},
            "defaultDeploymentStrategy": {"type": "ROLLING"}, "replicaCount": 1,
            "initialRevision": None, **more})["createModelDeployment"]["deployment"]
        return name, made["id"]


def local(id):
    return base64.b64decode(id).decode().split(":", 1)[1]


@pytest.fixture(name="pages")
def pages_fixture(there, documents):
    yield Pages(there.user, documents)
    for one in there.user.get(OURS).json["items"]:
        there.user.delete(f"{OURS}/{one['id']}?force=true")
    wait_for(lambda: not there.user.get(OURS).json["items"], 60, "the services to end")


@pytest.fixture(name="project", scope="module")
def project_fixture(there):
    return there.user.gql("{ groups_by_name(name: \"default\") { id } }").json["data"]["groups_by_name"][0]["id"]


def revision(pages, of, of_image, **more):
    variants = pages.send("BAIRuntimeVariantSelectPaginatedQuery", limit=20, offset=0,
                          filter={"name": {"iContains": "c"}})["runtimeVariants"]
    custom, = [edge["node"]["id"] for edge in variants["edges"] if edge["node"]["name"] == "custom"]
    return {"deploymentId": local(of), "clusterConfig": {"mode": "SINGLE_NODE", "size": 1},
            "resourceConfig": {"resourceSlots": {"entries": [
                {"resourceType": "cpu", "quantity": "1"}, {"resourceType": "mem", "quantity": "64m"}]},
                "resourceOpts": {"entries": [{"name": "shmem", "value": "16m"}]}},
            "image": {"id": of_image},
            "modelRuntimeConfig": {"runtimeVariantId": local(custom),
                                   "environ": {"entries": [{"name": "A", "value": "1"}]}},
            "modelDefinition": {"models": [{"name": "model", "modelPath": "/models", "service": {
                "preStartActions": [{"action": "log", "args": {"message": "hello"}}],
                "startCommand": ["python3", "serve it.py"], "port": 8000,
                "healthCheck": {"enable": True, "path": "/health", "interval": 5, "maxRetries": 3,
                                "maxWaitTime": 10, "expectedStatusCode": 200, "initialDelay": 60}}}]},
            "extraMounts": None, "options": {"autoActivate": True}, **more}


@pytest.fixture(name="image", scope="module")
def image_fixture(there):
    """The played node has it."""
    images = there.user.gql("{ images { id name } }").json["data"]["images"]
    return images[0]["id"]


def test_lists(there, pages, documents, project):
    first, _ = pages.create(project)
    second, _ = pages.create(project, networkAccess={"preferredDomainName": None, "openToPublic": True})
    running = {"status": {"notIn": ["STOPPED"]}}
    names = {"asc": [first, second], "desc": [second, first]}
    for where, order, expected in (
            ({}, [{"field": "CREATED_AT", "direction": "ASC"}], names["asc"]),
            ({}, [{"field": "NAME", "direction": "DESC"}], names["desc"]),
            ({"name": {"iContains": second.upper()}}, None, [second]),
            ({"openToPublic": True}, None, [second]), ({"tags": {"contains": "blue"}}, None, names["desc"]),
            ({"projectId": {"equals": project}}, None, names["desc"]),
            ({"projectId": {"equals": "00000000-0000-0000-0000-000000000001"}}, None, [])):
        count, nodes = pages.list(where={**running, **where}, order=order)
        assert [node["metadata"]["name"] for node in nodes] == expected, where
        assert count == len(expected)
    assert pages.list("ProjectAdminDeploymentsPageQuery", projectId=project)[0] == 2
    admin = Pages(there.admin, documents)
    assert admin.list()[0] == 0 and admin.list("AdminDeploymentQuery")[0] == 2
    page = pages.send("DeploymentSelectQuery", limit=1, offset=1, filter=running)["myDeployments"]
    assert (page["count"], len(page["edges"])) == (2, 1)


def becomes_ready(there, name, count=1):
    def sessions():
        found = [one["session"] for one in there.user.get(f"{OURS}/{name}").json["replica_list"]
                 if not one["draining"]]
        return len(found) == count and set(found) <= set(there.node.kernels) and found
    found = wait_for(sessions, 60, lambda: there.user.get(f"{OURS}/{name}").json)
    for session in found:
        there.node.health(session)
    wait_for(lambda: there.user.get(f"{OURS}/{name}").json["replicas"]["ready"] == count, 60,
             lambda: there.user.get(f"{OURS}/{name}").json)
    return found


def test_revisions(there, pages, project, image):
    name, made = pages.create(project)
    added = pages.send("DeploymentAddRevisionModalAddMutation",
                       input=revision(pages, made, image))["addModelRevision"]["revision"]
    assert added["revisionNumber"] == 1 and added["deployment"]["currentRevisionId"] == local(added["id"])
    session, = becomes_ready(there, name)
    kept = there.user.get(f"{OURS}/{name}").json["revision"]
    assert kept["health"]["path"] == "/health" and kept["port"] == 8000
    assert "'serve it.py'" in kept["command"] and "hello" in kept["bootstrap"]
    replica = pages.show("DeploymentReplicasCardListQuery", made,
                         filter={"status": {"notIn": ["TERMINATED", "FAILED_TO_START"]},
                                 "trafficStatus": {"in": ["ACTIVE"]}},
                         orderBy=[{"field": "CREATED_AT", "direction": "DESC"}])["replicas"]
    node = replica["edges"][0]["node"]
    assert (replica["count"], node["sessionId"], node["status"], node["healthStatus"]) == (
        1, session, "RUNNING", "HEALTHY")
    assert node["revision"]["revisionNumber"] == 1 and node["sessionV2"]["metadata"]["name"]
    shown = pages.show("DeploymentDetailPageQuery", made)
    assert shown["metadata"]["status"] == "READY" and shown["runningReplicas"]["count"] == 1
    environ = shown["currentRevision"]["modelRuntimeConfig"]["environ"]["entries"]
    assert environ == [{"name": "A", "value": "1"}]
    # one that is only kept, and is deployed later
    second = pages.send("DeploymentAddRevisionModalAddMutation", input=revision(
        pages, made, image, options={"autoActivate": False}))["addModelRevision"]["revision"]
    history = pages.show("DeploymentRevisionHistoryTabListQuery", made,
                         filter={"revisionNumber": {"greaterThan": 0}},
                         orderBy=[{"field": "REVISION_NUMBER", "direction": "DESC"}])
    assert [edge["node"]["revisionNumber"] for edge in history["revisionHistory"]["edges"]] == [2, 1]
    assert history["currentRevisionId"] == local(added["id"])
    done = pages.send("DeploymentRevisionHistoryTabActivateMutation", input={
        "deploymentId": local(made), "revisionId": local(second["id"])})["activateDeploymentRevision"]
    assert done["activatedRevisionId"] == second["id"] and done["previousRevisionId"] == added["id"]
    wait_for(lambda: pages.show("DeploymentDetailPageQuery", made)["deployingRevision"], 60,
             "the second revision to be on its way")
    assert there.user.get(f"{OURS}/{name}").json["revision"]["number"] == 2


def test_bad_revisions(pages, project, image):
    _, made = pages.create(project)
    for more, text in (
            ({"image": {"id": "nosuch"}}, "image.id"),
            ({"modelRuntimeConfig": {"runtimeVariantId": project}}, "runtimeVariantId"),
            ({"clusterConfig": {"mode": "SINGLE_NODE", "size": 0}}, "clusterConfig.size"),
            ({"modelMountConfig": {"vfolderId": project}}, "there is no folder"),
            ({"extraMounts": [{"vfolderId": "x"}]}, "vfolderId"),
            ({"modelDefinition": None}, "port"),
            ({"resourceConfig": {"resourceSlots": {"entries": [
                {"resourceType": "cpu", "quantity": "x"}]}}}, "resourceConfig.resourceSlots.cpu")):
        said = pages.fails("DeploymentAddRevisionModalAddMutation",
                           input=revision(pages, made, image, **more))
        assert text in said, (more, said)
    assert pages.show("DeploymentRevisionHistoryTabListQuery", made)["revisionHistory"]["count"] == 0


def test_tokens(there, pages, project):
    _, made = pages.create(project)
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=7)
    token = pages.send("DeploymentAccessTokensCardCreateMutation", input={
        "modelDeploymentId": local(made), "expiresAt": until.isoformat().replace("+00:00", "Z")})
    token = token["createAccessToken"]["accessToken"]
    assert token["token"].startswith("aqs-") and token["expiresAt"][:10] == until.isoformat()[:10]
    listed = pages.show("DeploymentAccessTokensCardListQuery", made)["accessTokens"]
    assert listed["count"] == 1 and listed["edges"][0]["node"]["token"] != token["token"]
    said = pages.fails("DeploymentAccessTokensCardCreateMutation", input={
        "modelDeploymentId": local(made), "expiresAt": "2020-01-01T00:00:00Z"})
    assert "expiresAt" in said and "2020" in said
    pages.send("DeploymentAccessTokensCardDeleteMutation", input={"id": local(token["id"])})
    assert pages.show("DeploymentAccessTokensCardListQuery", made)["accessTokens"]["count"] == 0
    assert "no token" in pages.fails("DeploymentAccessTokensCardDeleteMutation",
                                     input={"id": local(token["id"])})


def test_rules(there, pages, project):
    name, made = pages.create(project)
    rule = {"metricSource": "KERNEL", "metricName": "cpu_util", "minThreshold": "10",
            "maxThreshold": "80", "stepSize": 2, "timeWindow": 60, "minReplicas": 1, "maxReplicas": 5}
    pages.send("AutoScalingRuleEditorModalCreateMutation",
               input={"modelDeploymentId": local(made), **rule})
    page = pages.show("DeploymentAutoScalingCardListQuery", made,
                      orderBy=[{"field": "CREATED_AT", "direction": "DESC"}])["autoScalingRules"]
    node = page["edges"][0]["node"]
    assert page["count"] == 1 and {key: node[key] for key in rule} == rule and node["createdAt"]
    steps = there.user.get(f"{OURS}/{name}").json["scaling"]["rules"]
    assert len(steps) == 1
    changed = pages.send("AutoScalingRuleEditorModalUpdateMutation", input={
        "id": local(node["id"]), **rule, "minThreshold": None, "maxThreshold": "85",
        "maxReplicas": None})["updateAutoScalingRule"]["rule"]
    assert (changed["minThreshold"], changed["maxThreshold"], changed["maxReplicas"]) == (None, "85", None)
    for more, text in (({"maxThreshold": "high"}, "maxThreshold"), ({"stepSize": 0}, "stepSize"),
                       ({"maxThreshold": None}, "maxThreshold"), ({"minThreshold": "90"}, "minThreshold"),
                       ({"timeWindow": -1}, "timeWindow"),
                       ({"prometheusQueryPresetId": made}, "prometheusQueryPresetId")):
        said = pages.fails("AutoScalingRuleEditorModalUpdateMutation",
                           input={"id": local(node["id"]), "minThreshold": None, **more})
        assert text in said, (more, said)
    pages.send("DeploymentAutoScalingCardDeleteMutation", input={"id": local(node["id"])})
    assert pages.show("DeploymentAutoScalingCardListQuery", made)["autoScalingRules"]["count"] == 0


def test_of_somebody_else(there, documents, pages, project):
    """Neither seen nor changed."""
    _, made = pages.create(project)
    person = there.admin.post("/aliquot/v1/users", {"email": "stranger@lablup.com", "domain": "default",
                                                    "groups": ["default"]}).json
    key = there.admin.post("/aliquot/v1/keypairs", {"user": person["email"]}).json
    other = Pages(there.client((key["access_key"], key["secret_key"])), documents)
    assert other.list()[0] == 0 and other.list("AdminDeploymentQuery")[0] == 0
    assert other.show("DeploymentDetailPageQuery", made) is None
    for document, data in (("DeploymentListPageDeleteMutation", {"id": local(made)}),
                           ("DeploymentSettingModalUpdateMutation", {"id": local(made), "replicaCount": 2}),
                           ("DeploymentAccessTokensCardCreateMutation",
                            {"modelDeploymentId": local(made), "expiresAt": "2099-12-31T00:00:00Z"})):
        assert "there is no model service" in other.fails(document, input=data), document


def test_without_a_revision(there, pages, project):
    """It is there after a restart, runs nothing, and can be changed and ended. The played node does
    not come back: this test is the last."""
    name, made = pages.create(project)
    node = pages.show("DeploymentDetailPageQuery", made)
    assert node["metadata"]["status"] == "PENDING" and node["currentRevision"] is None
    assert node["metadata"]["projectV2"]["basicInfo"]["name"] == "default"
    assert there.user.get(f"{OURS}/{name}").json["revision"] is None
    assert "no revision" in there.user.get(f"{OURS}/{name}").json["problem"]
    pages.send("DeploymentSettingModalUpdateMutation", input={
        "id": local(made), "name": name, "tags": None, "openToPublic": True, "replicaCount": 3})
    there.programs["manager"].kill()
    there.programs["manager"].start()
    wait_for(there.is_serving, 60, "the manager")
    count, nodes = pages.list()
    assert count == 1 and nodes[0]["metadata"]["tags"] == [] and nodes[0]["currentRevisionId"] is None
    assert nodes[0]["replicaState"]["desiredReplicaCount"] == 3
    assert nodes[0]["networkAccess"]["openToPublic"] and nodes[0]["creator"]["basicInfo"]["email"]
    pages.send("DeploymentListPageDeleteMutation", input={"id": local(made)})
    wait_for(lambda: pages.list()[0] == 0, 60, lambda: pages.list())
    count, nodes = pages.list(where={"status": {"in": ["STOPPED"]}, "name": {"equals": name}})
    assert [node["metadata"]["status"] for node in nodes] == ["STOPPED"]
