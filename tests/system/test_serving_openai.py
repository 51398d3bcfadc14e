# SPDX-License-Identifier: Apache-2.0
"""The openai package, unmodified, asks llama.cpp in containers through aliquot-proxy: it gets what
llama.cpp says when it is asked directly, as it is said, and understands what the proxy itself says."""

import asyncio
import json
import socket
import urllib.parse

import pytest

import model_server
from cluster import wait_for
from model_service import SETTINGS, Serving, openai
from runtimes import settings_of
from test_proxy import Proxied

SLOTS, CONTEXT = 8, 8 * 4096
COMMAND = model_server.llama_command(slots=SLOTS, context=CONTEXT)
ASKED = {"model": "tiny", "temperature": 0, "max_tokens": 40}
SAID = [{"role": "user", "content": "tell me of the word that was with them"}]


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


def llama(cluster, name, *args, **more):
    return cluster.service(name, *args, image=cluster.image, command=COMMAND,
                           health={"path": "/health", "interval": 1}, **more)


@pytest.fixture(name="chat", scope="module")
def chat_fixture(cluster):
    with llama(cluster, "chat") as service:
        yield service


@pytest.fixture(name="direct", scope="module")
def direct_fixture():
    """A client that asks llama.cpp without a proxy."""
    with model_server.llama_started(SLOTS) as port:
        yield openai().OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)


def client_of(service, token=None, kind="OpenAI", end="v1", **more):
    return getattr(openai(), kind)(base_url=service["url"] + end, api_key=token or service["token"],
                                   **{"max_retries": 0, "timeout": 120, **more})


def pieces(stream):
    return [part.choices[0].delta.content for part in stream
            if part.choices and part.choices[0].delta.content]


def test_answers_are_those_of_the_replica(chat, direct):
    client = client_of(chat)
    assert [one.id for one in client.models.list()] == ["/models/tiny.gguf"]
    for ours, theirs in (
            [each.completions.create(prompt="the word", **ASKED) for each in (client, direct)],
            [each.chat.completions.create(messages=SAID, **ASKED) for each in (client, direct)]):
        assert [c.to_dict() for c in ours.choices] == [c.to_dict() for c in theirs.choices]
        assert ours.usage.completion_tokens == theirs.usage.completion_tokens == 40
    ours, theirs = (pieces(each.chat.completions.create(messages=SAID, stream=True, **ASKED))
                    for each in (client, direct))
    assert len(ours) > 10 and ours == theirs


def test_base_urls(chat, direct):
    said = direct.completions.create(prompt="hot", **ASKED).choices[0].text
    for end in "v1", "v1/":
        assert client_of(chat, end=end).completions.create(prompt="hot", **ASKED).choices[0].text == said
    upper = dict(chat, url=chat["url"].replace("/chat/", "/Chat/"))
    assert client_of(upper).completions.create(prompt="hot", **ASKED).choices[0].text == said


def frames(host, port, path, token, body):
    """The chunks of a chunked answer, as they are on the wire."""
    text = json.dumps(body).encode()
    with socket.create_connection((host, port), 60) as peer, peer.makefile("rb") as answer:
        peer.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: "
                     f"application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        assert b" 200 " in answer.readline()
        headers = b""
        while (line := answer.readline()) != b"\r\n":
            headers += line.lower()
        assert b"transfer-encoding: chunked" in headers and b"content-length" not in headers
        found = []
        while size := int(answer.readline(), 16):
            found.append(answer.read(size + 2)[:-2])
        return found


def test_tokens_come_in_chunks_of_their_own(cluster, chat, direct):
    body = {**ASKED, "messages": SAID, "stream": True}

    def events(found):
        lines = b"".join(found).decode().split("\n\n")
        assert lines[-2:] == ["data: [DONE]", ""]
        return [json.loads(line[6:])["choices"] for line in lines[:-2]]
    ours = frames("127.0.0.1", cluster.port, "/serve/chat/v1/chat/completions", chat["token"], body)
    port = urllib.parse.urlsplit(str(direct.base_url)).port
    theirs = frames("127.0.0.1", port, "/v1/chat/completions", "none", body)
    assert events(ours) == events(theirs)
    assert len(ours) > len(events(ours)) / 2  # llama.cpp joins a few


def test_a_client_that_leaves_ends_the_work(cluster, chat):
    client = client_of(chat)
    before = cluster.llama_figure(chat, "tokens_predicted_total")
    streams = [client.chat.completions.create(messages=SAID, stream=True, extra_body={"ignore_eos": True},
                                              **{**ASKED, "max_tokens": 4000}) for _ in range(SLOTS)]
    for stream in streams:
        next(iter(stream))
        stream.close()
    wait_for(lambda: cluster.llama_figure(chat, "requests_processing") == 0, 60, "the work to end")
    assert cluster.llama_figure(chat, "requests_deferred") == 0
    assert cluster.llama_figure(chat, "tokens_predicted_total") - before < SLOTS * 4000 * 0.9
    wait_for(lambda: cluster.shown("chat")["figures"]["in_flight"] == 0, 30, "the figures to say so")


def test_errors_are_those_of_the_package(cluster, chat):
    package = openai()

    def ask(client):
        return client.chat.completions.create(messages=SAID, **ASKED)
    with pytest.raises(package.AuthenticationError, match="token"):
        ask(client_of(chat, token="aqs-" + "x" * 43))
    with pytest.raises(package.NotFoundError, match="nosuch"):
        ask(client_of(dict(chat, url=chat["url"].replace("/chat/", "/nosuch/"))))
    narrow = cluster.token_of("chat", paths=["/v1/models"])
    assert list(client_of(chat, token=narrow).models.list())
    with pytest.raises(package.PermissionDeniedError):
        ask(client_of(chat, token=narrow))
    with pytest.raises(package.BadRequestError) as theirs:  # llama.cpp's own words
        client_of(chat).post("/chat/completions", body={"messages": "none"}, cast_to=object)
    assert "messages" in theirs.value.message and theirs.value.status_code == 400


def test_a_rate_limit_is_waited_for(cluster, chat):
    package = openai()
    token = cluster.token_of("chat", rate=1)
    hasty = client_of(chat, token=token)

    def ask(client):
        return client.completions.create(prompt="hot", **{**ASKED, "max_tokens": 1})
    with pytest.raises(package.RateLimitError) as limit:
        for _ in range(1000):
            ask(hasty)
    assert limit.value.code == "rate_limit_exceeded" and limit.value.type == "rate_limit_error"
    assert int(limit.value.response.headers["Retry-After"]) >= 1
    assert ask(client_of(chat, token=token, max_retries=10)).choices[0].text is not None


def test_a_budget_ends(cluster, chat):
    token = cluster.token_of("chat", budget=60)
    client = client_of(chat, token=token)
    with pytest.raises(openai().RateLimitError) as limit:
        for _ in range(100):
            client.completions.create(prompt="hot", **ASKED)
    assert limit.value.code == "insufficient_quota"


def test_a_service_without_a_replica_is_an_error_of_the_server(cluster):
    with llama(cluster, "asleep", 0, limits={"queue_timeout": 1}) as service:
        with pytest.raises(openai().InternalServerError) as error:
            client_of(service).models.list()
        assert error.value.status_code == 503 and error.value.code == "service_unavailable"
        assert "no ready replica" in error.value.message


def test_a_hundred_streams_at_once(chat, direct):
    said = pieces(direct.chat.completions.create(messages=SAID, stream=True, **ASKED))

    async def ask(client):
        stream = await client.chat.completions.create(messages=SAID, stream=True, **ASKED)
        return [part.choices[0].delta.content async for part in stream
                if part.choices and part.choices[0].delta.content]

    async def ask_all():
        async with client_of(chat, kind="AsyncOpenAI", timeout=300) as client:
            return await asyncio.gather(*(ask(client) for _ in range(100)))
    assert asyncio.run(ask_all()) == [said] * 100


# ---- affinity ----

def converse(service, header):
    """(cached, all) tokens of the prompts of six conversations of six turns, one turn each by turns."""
    cached = total = 0
    histories = [[{"role": "system", "content": f"you are {name} " * 12}] for name in "abcdef"]
    client = client_of(service)
    for turn in range(6):
        for number in sorted(range(6), key=lambda n: (7 * n + 5 * turn) % 11):
            history = histories[number]
            history.append({"role": "user", "content": f"turn {turn} of what we can say " * 2})
            answer = client.chat.completions.create(
                messages=history, **ASKED, extra_headers={header: f"user-{number}"})
            details = answer.usage.prompt_tokens_details
            cached += details.cached_tokens
            total += answer.usage.prompt_tokens
            history.append({"role": "assistant", "content": answer.choices[0].message.content})
    return cached, total


def test_affinity_raises_what_llama_cpp_has_cached(cluster):
    shares = {}
    for affinity in "none", "prompt", "header:X-Conversation":
        with llama(cluster, "alike", 2, limits={"affinity": affinity}) as service:
            cached, total = converse(service, "X-Conversation")
            shares[affinity] = cached / total
    assert shares["prompt"] > shares["none"] and shares["header:X-Conversation"] > shares["none"], shares
