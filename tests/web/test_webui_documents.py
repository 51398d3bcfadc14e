# SPDX-License-Identifier: Apache-2.0
"""Every GraphQL document in the files of Backend.AI's WebUI is one that our schema answers, but for
those that are written down in documents-VERSION.txt, with what it lacks of each."""

import re
import subprocess

import pytest

import graphql_js
import webui
from world import ROOT


def unanswered(text):
    rows = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    return {name: missing for name, *missing in rows if missing}


@pytest.mark.parametrize("version, documents", [("23.9.10", 60), ("24.9.14", 150), ("26.9.6", 300)])
def test_documents(version, documents):
    graphql_js.install()
    said = re.search(r'MANAGER_COMPATIBLE "([\d.]+)"',
                     (ROOT / "src/manager/cluster/hello_rest.c").read_text())
    done = subprocess.run(["node", "documents.mjs", ROOT / "src/manager/call/graphql/schema.graphql", said[1],
                           webui.install(version)], cwd=graphql_js.HERE, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) >= documents, "its files are written otherwise"
    listed = (ROOT / f"tests/web/documents-{version}.txt").read_text()
    assert unanswered(done.stdout) == unanswered(listed)
