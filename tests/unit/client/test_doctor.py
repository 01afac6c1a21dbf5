"""client.doctor over a function in place of a server."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx

from vision_bench.client.doctor import Check, check_machine, check_target
from vision_bench.errors import MissingExtra

GOOD = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}
Handler = Callable[[httpx.Request], httpx.Response]


def vllm(request: httpx.Request, *, trusts_kwargs: bool = True) -> httpx.Response:
    """vLLM's answers to what doctor asks."""
    path = request.url.path
    if path == "/health":
        return httpx.Response(200)
    if path == "/version":
        return httpx.Response(200, json={"version": "0.32.0"})
    if path == "/v1/models":
        return httpx.Response(200, json={"data": [{"id": "qwen", "max_model_len": 16384}]})
    if path != "/v1/chat/completions":
        return httpx.Response(404, json={"detail": "Not Found"})
    kwargs = {"media_io_kwargs", "mm_processor_kwargs"} & json.loads(request.content).keys()
    if kwargs and not trusts_kwargs:
        message = f"Per-request {kwargs.pop()} are disabled by default because they can change usage."
        return httpx.Response(400, json={"error": {"message": message}})
    return httpx.Response(200, json=GOOD)


async def look(handler: Handler, url: str = "http://server:8000", **settings: str) -> dict[str, Check]:
    checks = await check_target(url, transport=httpx.MockTransport(handler), **settings)  # type: ignore[arg-type]
    return {check.name: check for check in checks}


async def test_a_healthy_vllm_is_all_ok() -> None:
    """Version, model, text, schema and both kinds of keys; the cache trap is told as a note."""
    found = await look(vllm)
    assert found["version"].detail == "vLLM 0.32.0" and "16384" in found["models"].detail
    assert {name for name, check in found.items() if check.state != "ok"} == {"audio cache trap"}
    assert "--mm-processor-cache-gb 0" in (found["audio cache trap"].remedy or "")


async def test_a_server_without_the_flag_is_told_which_one() -> None:
    """400 'disabled by default' leads to the start flag."""
    found = await look(lambda request: vllm(request, trusts_kwargs=False))
    for name in ("takes media_io_kwargs", "takes mm_processor_kwargs"):
        assert found[name].state == "fail" and "--trust-request-mm-kwargs" in (found[name].remedy or "")
    assert found["answers text"].state == "ok"


async def test_another_served_name_is_named() -> None:
    """What there is, and both ways out."""
    check = (await look(vllm, model="qwen3-omni"))["models"]
    assert check.state == "fail" and "qwen (16384 tokens)" in check.detail and "--model" in (check.remedy or "")


async def test_a_gateway_is_asked_on_its_own_route() -> None:
    """/healthz tells it apart; a model server that is down behind it is a failure of the text prompt."""
    asked: list[str] = []

    def gateway(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/healthz":
            return httpx.Response(200, json={"ok": True})
        return httpx.Response(502, json={"error": {"message": "nobody answers"}})

    found = await look(gateway)
    assert found["reachable"].detail.startswith("gateway") and asked == ["/healthz", "/v1/models", "/chat"]
    assert "models" not in found, "told once is enough"
    assert found["answers text"].state == "fail" and "VLLM_BASE_URL" in (found["answers text"].remedy or "")


async def test_a_gateway_passes_the_models_on() -> None:
    """A wrong --model is found out through the gateway too."""

    def gateway(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/healthz":
            return httpx.Response(200, json={"ok": True})
        if request.url.path == "/chat":
            return httpx.Response(200, json=GOOD)
        return vllm(request)

    assert (await look(gateway))["models"].state == "ok"
    other = (await look(gateway, model="other"))["models"]
    assert other.state == "fail" and "qwen" in other.detail
    assert "version" not in await look(gateway)


async def test_v1_addresses_mean_their_root() -> None:
    """/v1 and the whole chat route are taken too."""
    for url in ("http://server/v1", "http://server/v1/", "http://server/v1/chat/completions", "server"):
        assert (await look(vllm, url))["answers text"].state == "ok"


async def test_nobody_there_is_one_failure() -> None:
    """Nothing else is asked."""

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    found = await look(refuse)
    assert list(found) == ["reachable"] and found["reachable"].state == "fail"
    assert list(await look(lambda request: httpx.Response(404))) == ["reachable"]


async def test_a_200_without_an_answer_is_a_failure() -> None:
    """A proxy's page is no model."""

    def proxy(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b"<html>") if request.method == "POST" else vllm(request)

    assert (await look(proxy))["answers text"].state == "fail"


def test_this_machine_can_cut_clips() -> None:
    """The base install brings libx264; every gap has a remedy."""
    checks = {check.name: check for check in check_machine()}
    assert checks["python"].state == checks["encoder libx264"].state == "ok"
    assert all(check.remedy for check in checks.values() if check.state in ("missing", "fail"))


def test_a_missing_extra_names_its_install_line() -> None:
    """The remedy can be pasted."""
    from vision_bench.client import doctor

    check = doctor._extra("baseline", ("no-such-distribution",))
    assert check.state == "missing" and check.remedy == "pip install 'vision-bench[baseline]'"

    def absent() -> str:
        raise MissingExtra("broadcast", "spoken sentences")

    assert "vision-bench[broadcast]" in (doctor._found("voices", absent).remedy or "")
