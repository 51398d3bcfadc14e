# SPDX-License-Identifier: Apache-2.0
"""The GraphQL documents in the files of Backend.AI's WebUI, as it sends them."""

import json
import subprocess

import graphql_js
import webui
from world import ROOT


def texts(version, manager):
    """NAME -> text, as they are sent to a manager of that version."""
    graphql_js.install()
    done = subprocess.run(["node", "documents.mjs", ROOT / "src/manager/call/graphql/schema.graphql",
                           manager, webui.install(version), "texts"], cwd=graphql_js.HERE,
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
