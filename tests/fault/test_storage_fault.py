# SPDX-License-Identifier: Apache-2.0
"""A storage host that is killed at each fault point of an upload: what was acknowledged stays, and
nothing half is seen. Those of what the manager asks are in the unit test storage/folder."""

import http.client
import os
import subprocess

import pytest

from cluster import wait_for
from storage import Stored
from world import ROOT

POINTS = [point for point in subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True,
                                            text=True, check=True).stdout.split()
          if point.startswith("storage.upload.")]
DATA = os.urandom(3 << 20)


@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_or_half_seen_after_a_kill(point):
    with Stored() as cluster:
        cluster.start_manager()
        cluster.start_storage(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(cluster.folder / "died"))
        folder, size = cluster.make_folder(), len(DATA)
        cluster.supervise()
        url = cluster.upload(folder, "file", size)
        if point.endswith("joined"):
            def end():
                halves = []
                for data in (DATA[:size // 2], DATA[size // 2:]):
                    status, headers, _ = cluster.ask("POST", url, Upload_Length=len(data),
                                                     Upload_Concat="partial")
                    halves.append(headers["Location"].split(str(cluster.port))[1])
                    assert cluster.patch(halves[-1], data, 0)[0] == 204
                return cluster.ask("POST", url, Upload_Concat="final;" + " ".join(halves))[0] == 201
        else:
            acknowledged = []

            def end():
                offset = cluster.offset(url)
                assert offset >= max(acknowledged, default=0)
                while offset < size:
                    assert cluster.patch(url, DATA[offset:offset + (1 << 20)], offset)[0] == 204
                    acknowledged.append(offset := offset + (1 << 20))
                return True

        def attempt():
            try:
                return end()
            except (OSError, http.client.HTTPException):
                whole = cluster.place(folder) / "file"
                assert not whole.exists() or whole.read_bytes() == DATA
                return False
        wait_for(attempt, 60, "the upload")
        assert (cluster.folder / "died").exists()
        assert (cluster.place(folder) / "file").read_bytes() == DATA
        cluster.stop()
