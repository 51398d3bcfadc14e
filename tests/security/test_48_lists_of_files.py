# SPDX-License-Identifier: Apache-2.0
"""A user asks for many lists of files at a time, each of which may be megabytes in the manager."""

import threading
import time

from client import USER
from cluster import Cluster, wait_for
from link_storage import LinkStorage


class Slow(LinkStorage):
    """Keeps lists until it may answer."""

    holds, held = True, []

    def answer(self, number, op, args):
        if op == "list" and self.holds:
            self.held.append((number, op, args))
        else:
            super().answer(number, op, args)

    def read(self, seconds):
        while self.held and not self.holds:
            super().answer(*self.held.pop(0))
        return super().read(seconds)


def test_one_list_of_a_user_at_a_time():
    with Cluster() as cluster:
        cluster.start_manager()
        with Slow(cluster) as storage:
            clients = [cluster.client(USER), cluster.client()]
            paths = []
            for i, client in enumerate(clients):
                made = client.post("/folders", {"name": f"files{i}", "host": "local:volume1"})
                assert made.status == 201, made
                paths.append(f"/folders/files{i}/files")
            replies = []

            def ask(who):
                replies.append(clients[who].get(paths[who]).status)
            asking = [threading.Thread(target=ask, args=(who,)) for who in (0, 0, 0, 0, 1)]
            for thread in asking:
                thread.start()
            wait_for(lambda: len({args["user"] for _, _, args in storage.held}) == 2)
            time.sleep(0.5)
            assert len(storage.held) == 2, storage.held
            storage.holds = False
            for thread in asking:
                thread.join()
            assert replies == [200] * 5, replies
            storage.holds = True  # and a manager ends while some wait
            for _ in range(3):
                asking.append(threading.Thread(target=leave, args=(clients[0], paths[0])))
                asking[-1].start()
            wait_for(lambda: storage.held)
        cluster.stop()
        for thread in asking:
            thread.join()


def leave(client, path):
    try:
        client.get(path)
    except OSError:
        pass
