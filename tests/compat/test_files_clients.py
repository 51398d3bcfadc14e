# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI: files into a running session and out of it."""

import pytest

from client import ADMIN
from cluster import Cluster, interactive, wait_status
from images import Layout, archive, programs
from runtimes import settings_of

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="1") as made:
        made.start_manager()
        made.start_agent()
        layout = Layout(made.folder / "layout")
        layout.image("small", [archive(programs("sh", "sleep", "cat"))])
        made.image = layout.reference("small")
        yield made
        made.check_nothing_left()
        made.stop()


@pytest.fixture
def name(cluster, folder):
    """A session that runs."""
    client, name = cluster.client(ADMIN), f"files-{folder.name[:2]}"
    made = client.post("/session", interactive(name, image=cluster.image))
    assert made.status == 201, made
    wait_status(client, name, "RUNNING")
    yield name
    client.send("DELETE", f"/session/{name}?forced=true")
    wait_status(client, made.json["sessionId"], "TERMINATED", "CANCELLED")


@pytest.mark.backendai("session upload", "session download", "session ls")
def test_files_there_and_back(bai, name):
    two = bytes(range(256)) * 4000
    (bai.home / "sub").mkdir()
    (bai.home / "one.txt").write_text("1")
    (bai.home / "sub" / "two.txt").write_bytes(two)
    bai.does("session", "upload", name, "one.txt", "sub/two.txt")
    assert "one.txt" in bai.does("session", "ls", name)
    assert "two.txt" in bai.does("session", "ls", name, "/home/work/sub")
    assert "not below /home/work" in bai.fails("session", "ls", name, "/etc")
    target = bai.home / "target"
    target.mkdir()
    bai.does("session", "download", name, "one.txt", "sub", "--dest", "target")
    assert (target / "one.txt").read_text() == "1"
    assert (target / "sub" / "two.txt").read_bytes() == two
    assert "nowhere" in bai.fails("session", "download", name, "nowhere")
