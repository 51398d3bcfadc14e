# SPDX-License-Identifier: Apache-2.0
"""aiohttp: POST bodies to a path that is not there; the same session is served afterwards."""

import asyncio
import sys

import aiohttp


async def pieces(size):
    """A body that comes after its head."""
    await asyncio.sleep(0.01)
    for at in range(0, size, 16384):
        yield bytes(min(16384, size - at))


async def main(base, sizes):
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        for size in sizes:
            for body, headers in ((bytes(size), {}), (pieces(size), {}),
                                  (pieces(size), {"Content-Length": str(size)})):
                async with session.post(base + "/no/such/path", data=body,
                                        headers=headers) as answer:
                    assert (await answer.json(content_type=None))["title"], answer
                    print(size, answer.status)
                async with session.get(base + "/") as answer:
                    print(size, answer.status)


asyncio.run(main(sys.argv[1], [int(size) for size in sys.argv[2:]]))
