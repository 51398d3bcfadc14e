# SPDX-License-Identifier: Apache-2.0
"""A storage host that is killed at each fault point of an upload, of a file or of an archive: what was
acknowledged stays, and nothing half is seen. Those of what the manager asks are in the unit test storage/folder."""

import http.client
import io
import os
import subprocess
import tarfile

import pytest

from cluster import wait_for
from storage import Stored
from world import ROOT

ALL = [point for point in subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True,
                                         text=True, check=True).stdout.split()]
POINTS = [point for point in ALL if point.startswith("storage.upload.")]
UNPACKING = [point for point in ALL if point.startswith("storage.unpack.")]
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


@pytest.mark.parametrize("point", UNPACKING)
def test_an_archive_comes_again_after_a_kill(point):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for number in range(3):
            info = tarfile.TarInfo(f"in/{number}")
            info.size = len(DATA)
            made.addfile(info, io.BytesIO(DATA))
    with Stored() as cluster:
        cluster.start_manager()
        cluster.start_storage(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(cluster.folder / "died"))
        folder = cluster.make_folder()
        cluster.supervise()
        url = "/archive?token=" + cluster.token("upload", folder, "", size=0, tree=True)

        def attempt():
            try:
                return cluster.ask("PUT", url, out.getvalue())[0] == 204
            except (OSError, http.client.HTTPException):
                for whole in cluster.place(folder).rglob("in/*"):
                    assert whole.name.startswith(".aliquot-") or whole.read_bytes() == DATA
                return False
        wait_for(attempt, 60, "the archive")
        assert (cluster.folder / "died").exists()
        for number in range(3):
            assert (cluster.place(folder) / "in" / str(number)).read_bytes() == DATA
        cluster.stop()
