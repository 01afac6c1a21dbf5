"""The gateway in its plainest form, as the yardstick: FastAPI, ``request.json()``, httpx ``json=``, a semaphore.

It is what the original experiment describes, written down without a thought for speed. UPSTREAM_URL says where to.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client, one semaphore."""
    async with httpx.AsyncClient(timeout=600, trust_env=False) as client:
        app.state.client = client
        app.state.semaphore = asyncio.Semaphore(int(os.environ.get("VLLM_CONCURRENCY", "4")))
        yield


app = FastAPI(lifespan=lifespan)
URL = os.environ.get("UPSTREAM_URL", "")


@app.post("/chat")
async def chat(request: Request) -> JSONResponse:
    """Parse, post, parse, answer."""
    body = await request.json()
    async with app.state.semaphore:
        answer = await app.state.client.post(URL, json=body)
    return JSONResponse(answer.json(), status_code=answer.status_code)


@app.post("/chat/batch")
async def chat_batch(request: Request) -> StreamingResponse:
    """Parse everything, post everything, a line each."""
    items = (await request.json())["items"]

    async def one(item: dict[str, Any]) -> str:
        async with app.state.semaphore:
            answer = await app.state.client.post(URL, json=item["body"])
        return json.dumps({"id": item["id"], "status": answer.status_code, "body": answer.json()}) + "\n"

    async def lines() -> AsyncIterator[str]:
        for done in asyncio.as_completed([one(item) for item in items]):
            yield await done

    return StreamingResponse(lines(), media_type="application/x-ndjson")
