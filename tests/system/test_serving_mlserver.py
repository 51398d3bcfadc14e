# SPDX-License-Identifier: Apache-2.0
"""MLServer serves scikit-learn's digits by KServe's V2 protocol: trained here, in a folder with a model
definition of Backend.AI's form. It takes a minute to install and half a gigabyte, so it is not part of
the gate."""

import http.client
import json
import subprocess
import sys

import pytest

import fetched
from images import Layout, archive, folder
from model_service import SETTINGS, Serving
from python_image import pip_layer, python_layer
from runtimes import settings_of
from test_service_cli import Served

PACKAGES = ("mlserver==1.7.1", "mlserver-sklearn==1.7.1")
TRAIN = """
import json, sys
import joblib
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
images, digits = load_digits(return_X_y=True)
model = LogisticRegression(max_iter=200).fit(images[:1400] / 16, digits[:1400])
joblib.dump(model, sys.argv[1] + "/model.joblib")
print(json.dumps({"images": (images[1400:1500] / 16).tolist(), "digits": digits[1400:1500].tolist(),
                  "said": model.predict(images[1400:1500] / 16).tolist()}))
"""
DEFINITION = """
models:
  - name: digits
    model_path: /models
    service:
      start_command: mlserver start {model_path}
      port: 8080
      health_check:
        path: /v2/health/ready
        interval: 1
        max_retries: 10
"""
MODEL = {"name": "digits", "implementation": "mlserver_sklearn.SKLearnModel",
         "parameters": {"uri": "./model.joblib", "version": "v1"}}
ENVIRON = ("MLSERVER_PARALLEL_WORKERS=0", "MLSERVER_ENVIRONMENTS_DIR=/tmp", "MLSERVER_METRICS_DIR=/tmp",
           "OPENBLAS_NUM_THREADS=1")


class ServingCluster(Served, Serving):
    pass


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture(tmp_path_factory):
    place = tmp_path_factory.mktemp("digits")
    done = subprocess.run([sys.executable, "-c", TRAIN, place], check=True, text=True,
                          stdout=subprocess.PIPE, env={"PYTHONPATH": str(fetched.python_packages(*PACKAGES))})
    (place / "model-definition.yaml").write_text(DEFINITION)
    (place / "model-settings.json").write_text(json.dumps(MODEL))
    with ServingCluster(**{**settings_of("crun"), **SETTINGS}) as cluster:
        layout = Layout(cluster.folder / "layout")
        layout.image("mlserver", [python_layer(), pip_layer(*PACKAGES),
                                  archive([folder("tmp", mode=0o1777)])])
        cluster.image = layout.reference("mlserver")
        cluster.start()
        cluster.port = None
        cluster.start_proxy()
        for words in ("create", "digits"), ("cp", "-r", f"{place}/.", "digits:"):
            done_here = cluster.cli("folder", *words)
            assert done_here.returncode == 0, done_here
        cluster.known = json.loads(done.stdout)
        yield cluster
        cluster.check_audits()
        cluster.stop()


def infer(cluster, service, images):
    return cluster.request("POST", "/serve/digits/v2/models/digits/infer", {
        "id": "asked-1", "inputs": [{"name": "predict", "shape": [len(images), 64], "datatype": "FP64",
                                     "data": images}]}, service["token"])


def test_digits_by_the_v2_protocol(cluster):
    said = cluster.service("create", "digits", "--model", "digits", "--image", cluster.image, "-r", "cpu=1",
                           "-r", "mem=1g", "-o", "json",
                           *(word for one in ENVIRON for word in ("-e", one)))
    made = json.loads(said)
    service = {"token": made["token"]["token"]}
    try:
        done = cluster.cli("service", "wait", "--timeout", "8m", "digits", timeout=500)
        assert done.returncode == 0, done
        known = cluster.known
        status, _, body = infer(cluster, service, known["images"])
        assert status == 200, body
        answer = json.loads(body)
        assert (answer["id"], answer["model_name"]) == ("asked-1", "digits")
        assert answer["outputs"][0]["data"] == known["said"]
        assert sum(map(int.__eq__, known["said"], known["digits"])) > 80
        for path in "v2/health/live", "v2/health/ready", "v2/models/digits/ready", "v2/models/digits":
            assert cluster.request("GET", f"/serve/digits/{path}", token=service["token"])[0] == 200
        status, _, body = cluster.request("POST", "/serve/digits/v2/models/digits/infer", {"inputs": 1},
                                          service["token"])
        assert status == http.client.UNPROCESSABLE_ENTITY and b"inputs" in body
        assert cluster.request("GET", "/serve/digits/v2/models/nosuch", token=service["token"])[0] == 404
    finally:
        cluster.service("rm", "--yes", "--wait", "--force", "digits")
