# SPDX-License-Identifier: Apache-2.0
"""Images of very many layers: one whose layers' paths on the node are longer than the page of
options that mount(2) takes, and one that is refused."""

import tempfile

from cluster import Cluster
from images import Layout, archive, file, programs
from runtimes import Session, settings_of

MOST = 128


def test_images_of_very_many_layers():
    # in memory, where a flush for each layer takes no time
    with tempfile.TemporaryDirectory(prefix="aliquot-test-", dir="/dev/shm") as folder, \
            Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="oci:/",
                    ALIQUOT_IMAGE_KEEP_FREE="1", ALIQUOT_IMAGE_FOLDER=folder) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        layers = [archive(programs("sh", "ls")),
                  *(archive([file(f"layer-{n}", b"x")]) for n in range(MOST))]
        layout.image("high", layers[:MOST])
        layout.image("higher", layers)

        session = Session(cluster, "ls /", image=layout.reference("high"))
        shown = session.wait(seconds=300)
        assert session.log.count("layer-") == MOST - 1, shown

        session = Session(cluster, "true", image=layout.reference("higher"))
        assert session.wait()["status"] == "ERROR"
        why = session.client.get(f"/aliquot/v1/sessions/{session.id}/why").body.decode()
        assert f"the image has {MOST + 1} layers and may have {MOST}" in why, why
        cluster.check_nothing_left()
        cluster.stop()
