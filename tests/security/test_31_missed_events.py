# SPDX-License-Identifier: Apache-2.0
"""Who asks for what happened before hears of their own sessions, and costs the manager a page."""

import contextlib
import pathlib

import pytest

from cluster import WAITS, Cluster, batch
from event_stream import add_events, here, missed, stream
from two_domains import OTHER, TwoDomains

STREAMS, MANY = 40, 10000  # of 1.4 KB
ROOM_KB = 160 << 10  # a fifth of that


@pytest.fixture(scope="module")
def there():
    with Cluster(ASAN_OPTIONS="quarantine_size_mb=1:allocator_release_to_os_interval_ms=500") \
            as cluster:
        cluster.start_manager()
        yield cluster, TwoDomains(cluster)
        cluster.stop()


@pytest.mark.gate
def test_an_id_is_no_right(there):
    """An id that another one was given leads to nothing of theirs."""
    _, there = there
    start = here(there.stranger)
    made = there.stranger.post("/session", batch("hidden", "true", domain=OTHER, **WAITS)).json
    there.stranger.delete("/session/" + made["sessionId"])
    theirs = missed(there.stranger, "scope=*", start)
    assert {data["sessionId"] for _, data, _ in theirs[:-1]} == {made["sessionId"]}
    for last in (start, "0-0", *(number for _, _, number in theirs)):
        for client, query in ((there.user, "scope=*"), (there.user, "scope=*&sessionName=hidden"),
                              (there.boss, "scope=*&ownerAccessKey=*")):
            told = str(missed(client, query, last))
            assert made["sessionId"] not in told and "hidden" not in told, told
        reply = there.user.get(f"/events/session?sessionId={made['sessionId']}&lastEventId={last}")
        assert reply.status == 404


def resident_kb(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


def test_who_asks_for_all_and_reads_nothing(there):
    cluster, there = there
    client = there.stranger
    made = client.post("/session", batch("much", "true", domain=OTHER, **WAITS)).json["sessionId"]
    start = here(client)
    add_events(cluster, MANY)
    before = resident_kb(cluster.programs["manager"].pid)
    with contextlib.ExitStack() as open_streams:
        for _ in range(STREAMS):
            open_streams.enter_context(stream(client, "scope=*", start))
        assert len(missed(client, "scope=*", start)) > MANY
        assert there.user.get("/aliquot/v1/sessions", timeout=10).status == 200
        grown = resident_kb(cluster.programs["manager"].pid) - before
    assert grown < ROOM_KB, grown
    client.delete("/session/" + made)
