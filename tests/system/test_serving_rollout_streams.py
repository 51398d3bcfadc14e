# SPDX-License-Identifier: Apache-2.0
"""Streams of llama.cpp go on while a rollout replaces their replicas, and new ones begin: each says,
token for token, what a replica says that is asked directly."""

import asyncio
import re
import threading
import time

import pytest

import model_server
from cluster import wait_for
from model_service import SETTINGS, Serving, openai
from runtimes import settings_of
from test_proxy import Proxied

SLOTS, STREAMS, AT_ONCE = 8, 500, 24
COMMAND = model_server.llama_command(slots=SLOTS)
ASKED = {"model": "tiny", "temperature": 0, "max_tokens": 60, "stream": True}
PROMPTS = [f"{word} of all that we can say at {number}" for number in range(4)
           for word in ("some", "other", "one", "hot")]
ROLLOUTS = {  # settings of the service
    "rolling": {},
    "blue-green": {"rollout": {"strategy": "blue-green", "auto_promote": True}},
    "canary": {"rollout": {"strategy": "canary", "steps": [50], "step_interval": 3}},
}


class ServingCluster(Serving, Proxied):
    pass


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    openai()
    with ServingCluster(**{**settings_of("crun"), **SETTINGS}) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.image = model_server.llama_image(cluster)
        cluster.start_proxy()
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(name="said", scope="module")
def said_fixture():
    """What llama.cpp says to each prompt when it is asked directly, as a list of pieces."""
    with model_server.llama_started(SLOTS) as port:
        client = openai().OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
        return {prompt: [part.choices[0].text for part in
                         client.completions.create(prompt=prompt, **ASKED) if part.choices]
                for prompt in PROMPTS}


class Crowd:
    """Clients that stream all the time, each its next prompt; what they got, and what failed."""

    def __init__(self, service):
        self.service, self.got, self.failed, self.replicas = service, [], [], set()
        self.begun, self.is_over = 0, False
        self.thread = threading.Thread(target=lambda: asyncio.run(self.run()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()

    async def run(self):
        async with openai().AsyncOpenAI(base_url=self.service["url"] + "v1", max_retries=0, timeout=120,
                                        api_key=self.service["token"]) as client:
            await asyncio.gather(*(self.ask(client) for _ in range(AT_ONCE)))

    async def ask(self, client):
        while not self.is_over:
            prompt = PROMPTS[self.begun % len(PROMPTS)]
            self.begun += 1
            try:
                raw = await client.completions.with_raw_response.create(prompt=prompt, **ASKED)
                pieces = [part.choices[0].text async for part in raw.parse() if part.choices]
            except Exception as error:  # whatever a client may meet
                self.failed.append((time.time(), prompt, repr(error)))
                continue
            self.got.append((prompt, pieces))
            self.replicas.update(re.findall('replica;desc="(.*?)"', raw.headers["Server-Timing"]))


@pytest.mark.parametrize("strategy", ROLLOUTS)
def test_streams_through_a_rollout(cluster, said, strategy):
    with cluster.service("chat", 2, image=cluster.image, command=COMMAND, limits={"cap": SLOTS},
                         health={"path": "/health", "interval": 1}, **ROLLOUTS[strategy]) as service:
        with Crowd(service) as crowd:
            wait_for(lambda: len(crowd.got) > AT_ONCE, 120, lambda: f"streams; {crowd.failed[:5]}")
            before = set(crowd.replicas)
            revision = cluster.deploy("chat", environ={"WORD": "next"})
            cluster.wait_ready("chat", 2, revision, 400)
            count = len(crowd.got)
            wait_for(lambda: len(crowd.got) > max(STREAMS, count + 2 * AT_ONCE), 300, "more streams")
        assert not crowd.failed, (len(crowd.failed), crowd.failed[:5], cluster.log_of("proxy")[-2000:])
        wrong = [(prompt, pieces) for prompt, pieces in crowd.got if pieces != said[prompt]]
        assert not wrong, (len(wrong), len(crowd.got), wrong[:2], said[wrong[0][0]])
        now = {one["session"][:8] for one in cluster.shown("chat")["replica_list"]}
        assert now <= crowd.replicas and before <= crowd.replicas and not now & before
