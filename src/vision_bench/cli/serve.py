"""``vision-bench serve``: run the gateway."""

from __future__ import annotations

from functools import partial

import click


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 opens it to all.")
@click.option("--port", default=8001, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--upstream", metavar="URL", help="vLLM's /v1 endpoint, or several with commas; wins over VLLM_BASE_URL.")
@click.option("--concurrency", type=int, help="Calls at once to each vLLM; wins over VLLM_CONCURRENCY.")
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="Form of the log on stderr; wins over GATEWAY_LOG_FORMAT."
)
@click.option("--otlp", metavar="URL", help="A collector for spans (OTLP/HTTP); wins over GATEWAY_OTLP_ENDPOINT.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Processes, each with permits.")
def command(
    *,
    host: str,
    port: int,
    upstream: str | None,
    concurrency: int | None,
    log_format: str | None,
    otlp: str | None,
    workers: int,
) -> None:
    """Run the gateway in front of vLLM.

    Settings come from the environment and from .env; docs/gateway.md lists them.
    """
    from vision_bench.gateway.application import create_app
    from vision_bench.gateway.serving import serve
    from vision_bench.gateway.settings import load_settings

    settings = load_settings(
        vllm_base_url=upstream,
        vllm_concurrency=concurrency,
        gateway_log_format=log_format,
        gateway_otlp_endpoint=otlp,
    )
    if workers == 1:
        serve(
            create_app(settings),
            host=host,
            port=port,
            log_format=settings.gateway_log_format,
            grace_seconds=settings.gateway_shutdown_grace_seconds,
        )
        return
    from vision_bench.gateway.workers import serve_workers

    serve_workers(partial(create_app, settings), settings, workers=workers, host=host, port=port)
