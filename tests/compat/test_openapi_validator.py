# SPDX-License-Identifier: Apache-2.0
"""A validator of OpenAPI 3.1 reads the manager's document."""

import json
import os
import subprocess

import fetched

PACKAGE = "openapi-spec-validator==0.9.0"
SCRIPT = """
import json, sys
from openapi_spec_validator import OpenAPIV31SpecValidator
document = json.load(sys.stdin)
print(json.dumps([str(error.message)[:300] for error in
                  OpenAPIV31SpecValidator(document).iter_errors()]))
"""


def errors_of(document):
    packages = fetched.python_packages("--only-binary=:all:", PACKAGE)
    done = subprocess.run([packages.parent / "venv/bin/python", "-c", SCRIPT], text=True,
                          input=json.dumps(document), capture_output=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(packages)})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_the_document_is_valid(cluster):
    document = cluster.client(None).get("/spec/openapi").json
    assert document["openapi"] == "3.1.0" and len(document["paths"]) > 200
    assert not errors_of(document)
    del document["paths"]["/session/{name}"]["get"]["responses"]["200"]["description"]
    document["paths"]["/session/{name}"]["get"]["parameters"][0]["in"] = "nowhere"
    assert errors_of(document), "the validator finds what is wrong"
