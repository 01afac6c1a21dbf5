"""What is done to a source's picture and sound so that every clip has one form: libavfilter steps as text."""

from __future__ import annotations

from vision_bench.media.tracks import AudioTrack, VideoTrack

Step = tuple[str, str]
"""A filter's name and its arguments."""

# The rates that AAC knows; anything else is brought to the usual one.
_AAC_RATES = frozenset({8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000})
_USUAL_RATE = 48_000
_LAYOUTS = {1: "mono", 2: "stereo", 3: "3.0", 4: "4.0", 5: "5.0", 6: "5.1"}
"""By number of channels; more are mixed down to two."""
# Holes and overlaps of sound above this are filled with silence or cut, so that it never drifts from the picture.
_DRIFT_SECONDS = 0.01


def turn_steps(track: VideoTrack) -> list[Step]:
    """Bring a decoded frame upright."""
    turns: dict[int, list[Step]] = {
        0: [],
        90: [("transpose", "clock")],
        180: [("hflip", ""), ("vflip", "")],
        270: [("transpose", "cclock")],
    }
    return ([("vflip", "")] if track.is_mirrored else []) + turns[track.rotation]


def form_steps(track: VideoTrack) -> list[Step]:
    """Make it progressive, of even size (a last odd column or row is dropped), 8-bit 4:2:0, video range."""
    steps: list[Step] = []
    if track.is_interlaced:
        # One frame for one frame: twice as many would no longer be the source's.
        steps.append(("bwdif", "mode=send_frame:parity=auto:deint=interlaced"))
    if track.width % 2 or track.height % 2:
        steps.append(("crop", "w=trunc(iw/2)*2:h=trunc(ih/2)*2:x=0:y=0"))
    if track.pix_fmt != "yuv420p" or track.is_full_range:
        steps += [("scale", "out_range=tv"), ("format", "yuv420p")]
    return steps


def sound_steps(track: AudioTrack, start_seconds: float, end_seconds: float) -> list[Step]:
    """Take [start, end) of the container's clock, call its start 0, fill holes, give a form that AAC takes."""
    rate = track.sample_rate if track.sample_rate in _AAC_RATES else _USUAL_RATE
    # Named, since some containers store a count alone, and an encoder wants to know which channel is which.
    form = f"sample_fmts=fltp:sample_rates={rate}:channel_layouts={_LAYOUTS.get(track.channels, 'stereo')}"
    return [
        ("atrim", f"start={start_seconds:.6f}:end={end_seconds:.6f}"),
        ("asetpts", f"PTS-{start_seconds:.6f}/TB"),
        ("aresample", f"{rate}:async=1:min_hard_comp={_DRIFT_SECONDS}:first_pts=0"),
        ("aformat", form),
    ]


def as_text(steps: list[Step]) -> str:
    """For an ffmpeg command line: ``name=arguments`` joined by commas."""
    return ",".join(f"{name}={arguments}" if arguments else name for name, arguments in steps)
