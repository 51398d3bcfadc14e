# SPDX-License-Identifier: Apache-2.0
"""What is put into a cluster: the program and the Helm chart say the same, and little enough."""

import os
import re
import subprocess

import pytest
import yaml

from kubernetes import helm
from world import BUILD, ROOT

CHART = ROOT / "packaging/helm/aliquot"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SETS = [[], ["evict=true", "hami=true", "computeUnits=10", "memory=example.com/gpu-memory",
             "replicas=3", "policy=high-performance", "nodeLabel=gpu", "nodeLabelValue=yes-1"]]


def run(*words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"],
                                                         "HOME": "/nonexistent"})


def objects(text):
    found = [item for item in yaml.safe_load_all(text) if item]
    named = {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item
             for item in found}
    assert len(named) == len(found)
    return named


def manifests(*words):
    done = run(BUILD / "aliquot-k8s", "manifests", *words)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def options(values):
    return [word for value in values for word in ("--set", value)]


def of_kind(items, kind):
    return {name: item for (found, _, name), item in items.items() if found == kind}


def templates(items):
    """Of each of ours, from what pods are made."""
    return {name: item["spec"]["template"] for kind in ("DaemonSet", "Deployment")
            for name, item in of_kind(items, kind).items()}


def pods(items):
    return {name: template["spec"] for name, template in templates(items).items()}


@pytest.mark.parametrize("values", SETS, ids=("usual", "set"))
def test_chart_and_manifests_say_the_same(values):
    done = run(helm(), "template", "aliquot", CHART, "--namespace", "gpus", "--no-hooks",
               *options(values))
    assert done.returncode == 0, done.stderr
    ours = manifests("--namespace", "gpus", *options(values))
    space = ours.pop(("Namespace", None, "gpus"))
    assert space["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    assert objects(done.stdout) == ours
    assert len(ours) == 21 + (2 if values else 0)


def test_what_helm_runs_at_the_end_may_little_and_goes_by_itself():
    done = run(helm(), "template", "aliquot", CHART, "--show-only", "templates/uninstall.yaml")
    items = objects(done.stdout)
    for item in items.values():
        said = item["metadata"]["annotations"]
        assert said["helm.sh/hook"] == "post-delete"
        assert "hook-succeeded" in said["helm.sh/hook-delete-policy"]
    (role,) = of_kind(items, "ClusterRole").values()
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"],
                              "verbs": ["list", "watch", "patch"]}]
    (job,) = of_kind(items, "Job").values()
    pod = job["spec"]["template"]["spec"]
    security = pod["containers"][0]["securityContext"]
    assert security["allowPrivilegeEscalation"] is False and security["readOnlyRootFilesystem"]
    assert security["capabilities"] == {"drop": ["ALL"]} and "volumes" not in pod
    assert job["spec"]["activeDeadlineSeconds"] < 300  # helm waits so long


def test_chart_has_nothing_to_complain_of():
    done = run(helm(), "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gate
def test_everything_is_in_the_namespace_or_named_by_us():
    for kind, space, name in manifests("--namespace", "gpus"):
        assert space in ("gpus", None) or (kind, space) == ("RoleBinding", "kube-system")
        assert name.startswith("aliquot") or kind == "Namespace"


@pytest.mark.gate
def test_rights_are_few():
    items = manifests()
    for role in (*of_kind(items, "ClusterRole").values(), *of_kind(items, "Role").values()):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            # what may be read or written of these is the one object that is ours
            if {"leases", "secrets", "mutatingwebhookconfigurations"} & set(rule["resources"]):
                assert len(rule["resourceNames"]) == 1 and "create" not in rule["verbs"]
    bound = {subject["name"] for kind in ("ClusterRoleBinding", "RoleBinding")
             for item in of_kind(items, kind).values() for subject in item["subjects"]}
    assert bound == {"aliquot-plugin", "aliquot-scheduler"}, "what keeps memory files needs none"
    keep = pods(items)["aliquot-keep"]
    assert keep["automountServiceAccountToken"] is False
    assert "aliquot-plugin-evict" not in of_kind(items, "ClusterRole")
    rules = manifests("--set", "evict=true")["ClusterRole", None, "aliquot-plugin-evict"]["rules"]
    assert [rule["resources"] for rule in rules] == [["pods/eviction"]]


@pytest.mark.gate
def test_containers_are_confined():
    for name, pod in pods(manifests()).items():
        assert pod.get("hostPID", False) == (name == "aliquot-plugin")
        assert not pod.get("hostNetwork")
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] and container["resources"]["requests"]
            if name != "aliquot-plugin":  # which opens the devices of the driver
                assert security["allowPrivilegeEscalation"] is False
                assert security["capabilities"] == {"drop": ["ALL"]}
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted <= {volume["name"] for volume in pod["volumes"]}


@pytest.mark.gate
def test_webhook_is_asked_of_few_pods():
    items = manifests("--namespace", "gpus")
    (hook,) = items["MutatingWebhookConfiguration", None, "aliquot"]["webhooks"]
    assert hook["failurePolicy"] == "Fail" and hook["matchConditions"]
    assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["kube-system", "gpus"]
    assert [(rule["operations"], rule["resources"]) for rule in hook["rules"]] == [
        (["CREATE"], ["pods"]), (["UPDATE"], ["pods/ephemeralcontainers"])]
    service = items["Service", "gpus", "aliquot-webhook"]
    assert hook["clientConfig"]["service"]["name"] == service["metadata"]["name"]
    selector = service["spec"]["selector"].items()
    template = items["Deployment", "gpus", "aliquot-scheduler"]["spec"]["template"]
    assert selector <= template["metadata"]["labels"].items()


@pytest.mark.gate
def test_scheduler_asks_the_extender():
    items = manifests("--set", "memory=a.b/m", "--set", "compute=a.b/c")
    config = yaml.safe_load(items["ConfigMap", "aliquot-system", "aliquot"]["data"]
                            ["scheduler.yaml"])
    (extender,) = config["extenders"]
    assert extender["managedResources"] == [
        {"name": name, "ignoredByScheduler": False} for name in ("a.b/m", "a.b/c")]
    assert [profile["schedulerName"] for profile in config["profiles"]] == [
        "aliquot", "alnair-cost-saving", "alnair-high-performance"]


@pytest.mark.parametrize("name", VALUES)
def test_pods_are_started_anew_with_other_settings(name):
    usual = VALUES[name]
    other = "true" if usual is False else str(usual + 1) if isinstance(usual, int) else f"{usual}2"
    before, after = manifests(), manifests("--set", f"{name}={other}")
    assert before != after
    config = "ConfigMap", "aliquot-system", "aliquot"
    assert before[config] == after[config] or templates(before) != templates(after)


@pytest.mark.gate
@pytest.mark.parametrize("words", [
    ["--set", "nothing=1"], ["--set", "=1"], ["--set", "hami"], ["--set", 'image=a"b'],
    ["--image", ""], ["--image"], ["--namespace", "a b"], ["--other", "1"], ["more"],
    ["--set", "replicas={{ .Values.image }}"]], ids=" ".join)
def test_what_cannot_be_set_is_refused(words):
    done = run(BUILD / "aliquot-k8s", "manifests", *words)
    assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1


@pytest.mark.gate
def test_help_has_every_value():
    said = run(BUILD / "aliquot-k8s", "manifests", "--help").stdout
    assert dict(re.findall(r"^  (\w+): (.*)$", said, re.M)) == {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in VALUES.items()}
