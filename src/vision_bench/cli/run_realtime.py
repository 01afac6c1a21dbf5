"""Options of ``vision-bench run`` for generated video alone; None was not given."""

from __future__ import annotations

import click

REALTIME = (
    click.Option(["--num-chunks"], type=int, help="realtime: chunks of a session."),
    click.Option(["--camera-pattern"], metavar="NAME", help="realtime: forward, orbit or hold."),
    click.Option(["--width"], type=int, help="realtime: pixels."),
    click.Option(["--height"], type=int, help="realtime: pixels."),
    click.Option(["--fps"], type=float, help="realtime: rate that the server writes into the file."),
    click.Option(["--flow-shift"], type=float, help="realtime: of the sampler."),
    click.Option(["--prompt"], help="realtime: what is shown."),
    click.Option(["--image"], metavar="FILE|URL", help="realtime: first picture."),
    click.Option(["--model"], help="realtime: the served model's name."),
    click.Option(["--target-fps"], type=float, help="realtime: rate at which somebody watches.  [default: --fps]"),
    click.Option(["--buffer-chunks"], type=int, help="realtime: chunks there before playback starts."),
    click.Option(["--warmup-chunks"], type=int, help="realtime: chunks left out of the steady numbers."),
    click.Option(["--save-video"], is_flag=True, default=None, help="realtime: keep each session's video."),
    click.Option(["--no-decode"], is_flag=True, default=None, help="realtime: do not decode the videos afterwards."),
)
