"""Does the chain client > gateway > model work? Five rows, PASS or FAIL with the reason.

    python experiments/01_pipeline/api_check.py [--gateway URL] [--scene category/base]

Exit status: 0 when all five pass, 5 when one fails, 4 when there is no clip to send.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from common import (
    PROMPT,
    SELF_INTRODUCTION,
    Call,
    Caller,
    CallLog,
    arguments,
    clip_body,
    data_dir,
    encode,
    run_folder,
    scene_clips,
    text_body,
    write_json,
)
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from vision_bench.errors import InvalidMedia
from vision_bench.media.variants import muted

SAYS_BLACK = re.compile(r"\bblack\b|검은|검정|까만|암전", re.IGNORECASE)
BATCH = 6


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the seed's summary table; ``reason`` says why a FAIL is one."""

    item: str
    route: str
    verification: str
    key_result: str
    verdict: str
    reason: str


def verdict(item: str, route: str, verification: str, key_result: str, problem: str) -> Row:
    """PASS when there is no problem."""
    return Row(item, route, verification, key_result, "FAIL" if problem else "PASS", problem)


def describe(result: Call) -> str:
    """Request id, token counts and the start of the answer."""
    return f"X-Request-Id {result.request_id} · {result.usage} · {shorten(result.text)}"


def shorten(text: str, length: int = 140) -> str:
    """One line of at most ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def check_status(caller: Caller) -> Row:
    """The gateway is up and stamps an id, whether or not the model is."""
    result = caller.call("healthz", "GET", "/healthz")
    problem = result.problem
    if not problem and result.response != {"ok": True}:
        problem = f'expected {{"ok": true}}, got {json.dumps(result.response)[:200]}'
    if not problem and not result.request_id:
        problem = "the response has no X-Request-Id"
    key = f"X-Request-Id {result.request_id}"
    return verdict("Status check", "GET /healthz", "gateway up, id assigned", key, problem)


def check_answer(caller: Caller, item: str, what: str, body: bytes) -> tuple[Row, Call]:
    """A call that must be 200 with some text in it."""
    result = caller.call(item, "POST", "/chat", body)
    problem = result.problem or ("" if result.text.strip() else "the answer has no text")
    return verdict(item, "POST /chat", what, describe(result), problem), result


def check_blackout(caller: Caller, args: Any, clip: Path, video_answer: Call) -> Row:
    """Sound reaches the model: black picture with sound must be answered otherwise than black picture without.

    The first call repeats the video's prompt and sampling. The proof is the pair after it, at temperature 0:
    the two clips have the same picture packets and as many sound samples; only what is heard differs.
    """
    prompt, blackout = PROMPT[args.lang], clip.read_bytes()
    same = encode(clip_body(args.model, blackout, prompt))
    row, result = check_answer(caller, "Single · blackout", "sound is heard without a picture", same)
    if row.verdict == "FAIL":
        return row
    try:
        silent = muted(blackout)
    except InvalidMedia as cause:
        return verdict(row.item, row.route, row.verification, row.key_result, str(cause))
    heard = caller.call("blackout t=0", "POST", "/chat", encode(clip_body(args.model, blackout, prompt, temperature=0)))
    unheard = caller.call(
        "blackout muted t=0", "POST", "/chat", encode(clip_body(args.model, silent, prompt, temperature=0))
    )
    problem = heard.problem or unheard.problem
    if not problem and heard.text == unheard.text:
        problem = "the answer is the same with and without sound: the sound did not reach the model"
    if not problem and args.require_black and not SAYS_BLACK.search(result.text):
        problem = f"the answer does not say that the picture is black: {shorten(result.text)}"
    if not problem and result.text == video_answer.text:
        problem = "the answer to the black picture is the one to the real picture: the picture is not looked at"
    only_heard = new_words(heard.text, unheard.text)
    key = f"{describe(result)} · only with sound: {only_heard}"
    return verdict(row.item, row.route, row.verification, key, problem)


def new_words(text: str, other: str, length: int = 100) -> str:
    """Words of ``text`` that ``other`` lacks: what the sound added."""
    known = set(other.split())
    return shorten(" ".join(word for word in text.split() if word not in known), length)


def check_batch(caller: Caller, args: Any, clips: list[Path]) -> Row:
    """Every item comes back once, with its own status, in one streamed response."""
    prompt = PROMPT[args.lang]
    items = [{"id": clip.name, "body": clip_body(args.model, clip.read_bytes(), prompt)} for clip in clips]
    body = encode({"items": items})
    lines: list[dict[str, Any]] = []
    with Progress(transient=True, console=Console(stderr=True)) as progress:
        bar = progress.add_task("batch", total=len(items))
        try:
            with caller.client.stream(
                "POST", "/chat/batch", content=body, headers={"Content-Type": "application/json"}
            ) as reply:
                status, headers = reply.status_code, reply.headers
                if status != 200:
                    reply.read()
                else:
                    for line in reply.iter_lines():
                        if line:
                            lines.append(json.loads(line))
                            progress.advance(bar)
        except (httpx.HTTPError, ValueError) as cause:
            return verdict("Batch", "POST /chat/batch", "all items, one stream", "", f"{type(cause).__name__}: {cause}")
    caller.log.write(Call("batch", status, 0.0, headers.get("x-request-id"), lines, None), body)
    sent, arrived = [clip.name for clip in clips], [str(line.get("id")) for line in lines]
    good = sum(line.get("status") == 200 for line in lines)
    total = headers.get("x-batch-total")
    problem = ""
    if status != 200:
        problem = f"HTTP {status}"
    elif sorted(arrived) != sorted(sent):
        problem = f"sent {len(sent)} ids, got {len(arrived)} lines: {sorted(set(sent) ^ set(arrived))[:5]}"
    elif good != len(sent):
        problem = f"{good} of {len(sent)} items are 200; first error: {first_error(lines)}"
    elif total != str(len(sent)):
        problem = f"X-Batch-Total is {total!r}, sent {len(sent)} items"
    order = "other than input order" if arrived != sent else "equal to input order"
    key = f"X-Request-Id {headers.get('x-request-id')} · X-Batch-Total {total} · {good}/{len(sent)} · arrival {order}"
    return verdict("Batch", "POST /chat/batch", "all items, one stream, own statuses", key, problem)


def first_error(lines: list[dict[str, Any]]) -> str:
    """The first error string among batch lines."""
    return next((shorten(str(line.get("error"))) for line in lines if line.get("status") != 200), "none")


def run(args: Any, folder: Path) -> list[Row]:
    """All five rows, in the order of the seed's table."""
    clips = scene_clips(args.scene, args.clips)
    blackout = data_dir() / "blackout" / args.scene / clips[0].name
    if not blackout.is_file():
        print(f"No blackout copy {blackout}; `vision-bench prepare` makes it with the clips.", file=sys.stderr)
        raise SystemExit(4)
    with (
        httpx.Client(base_url=args.gateway, timeout=args.timeout) as client,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        caller = Caller(client, CallLog(folder))
        bar = progress.add_task("api check", total=5)
        rows = [check_status(caller)]
        progress.advance(bar)
        text = encode(text_body(args.model, SELF_INTRODUCTION[args.lang]))
        rows.append(check_answer(caller, "Single · text", "text in, text out", text)[0])
        progress.advance(bar)
        video = encode(clip_body(args.model, clips[0].read_bytes(), PROMPT[args.lang]))
        row, video_answer = check_answer(caller, "Single · video", "picture and sound analysed", video)
        rows.append(row)
        progress.advance(bar)
        rows.append(check_blackout(caller, args, blackout, video_answer))
        progress.advance(bar)
        progress.stop()
        rows.append(check_batch(caller, args, clips[:BATCH]))
    return rows


def show(rows: list[Row]) -> None:
    """The table on stdout."""
    table = Table(title="API check", show_lines=True)
    for title in ("Item", "Route", "Verification", "Key result", "Verdict"):
        table.add_column(title, overflow="fold")
    for row in rows:
        colour = "green" if row.verdict == "PASS" else "red"
        result = row.key_result + (f"\n[red]{row.reason}[/red]" if row.reason else "")
        table.add_row(row.item, row.route, row.verification, result, f"[{colour}]{row.verdict}[/{colour}]")
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def main() -> int:
    """Run the check; see the module's docstring."""
    parser = arguments("Check every route of the gateway with real clips.")
    parser.add_argument("--require-black", action="store_true", help="the blackout answer must say that it is black")
    args = parser.parse_args()
    folder = run_folder(args.out)
    rows = run(args, folder)
    show(rows)
    write_json(folder / "api_check.json", {"gateway": args.gateway, "rows": [asdict(row) for row in rows]})
    print(f"Calls and responses: {folder}")
    return 0 if all(row.verdict == "PASS" for row in rows) else 5


if __name__ == "__main__":
    sys.exit(main())
