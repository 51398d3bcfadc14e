# SPDX-License-Identifier: Apache-2.0
"""A server of events and WebSockets by FastAPI and uvicorn.

    python3 fastapi_server.py PORT
"""

import asyncio
import sys

import fastapi
import uvicorn
from fastapi.responses import StreamingResponse

app = fastapi.FastAPI()


@app.get("/health")
async def health():
    return {}


@app.post("/echo")
async def echo(request: fastapi.Request):
    return {"body": (await request.body()).decode()}


@app.get("/events")
async def events(count: int, pause: float = 0):
    async def generate():
        for number in range(count):
            yield f"id: {number}\ndata: {{\"number\": {number}}}\n\n"
            await asyncio.sleep(pause)
    return StreamingResponse(generate(), media_type="text/event-stream")


@app.websocket("/talk")
async def talk(socket: fastapi.WebSocket):
    """Each message comes back; "count N" has N more of them."""
    await socket.accept(subprotocol=(socket.scope["subprotocols"] or [None])[0])
    while True:
        try:
            message = await socket.receive()
        except RuntimeError:
            return
        if message["type"] == "websocket.disconnect":
            return
        if message.get("bytes") is not None:
            await socket.send_bytes(message["bytes"])
        elif message["text"] == "end":
            await socket.close(4001, "as you said")
        elif message["text"].startswith("count "):
            for number in range(int(message["text"].split()[1])):
                await socket.send_text(str(number))
        else:
            await socket.send_text(message["text"])


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", ws_max_size=1 << 24)
