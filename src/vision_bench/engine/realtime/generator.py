"""One rollout's pictures, chunk by chunk: conditions in, bytes of the file out. Slow: to be called in a thread."""

from __future__ import annotations

from vision_bench.engine.realtime.conditioning import Conditions
from vision_bench.engine.realtime.muxer import FragmentMuxer
from vision_bench.engine.realtime.picture import open_picture
from vision_bench.engine.realtime.pose import ORIGIN, picture_poses
from vision_bench.engine.realtime.tint import PromptTint
from vision_bench.engine.realtime.world import World
from vision_bench.media.marks import draw_marks, strip_rows
from vision_bench.wire.realtime.marks import marks_of
from vision_bench.wire.realtime.start import Start

GREY = 128


class Generator:
    """Draws, marks and encodes. Chunks are asked for in order."""

    def __init__(self, start: Start) -> None:
        """``start`` has passed `late_error`.

        Raises:
            EngineFailure: the picture does not open, or the rate is none that a file can hold.
        """
        width, height = start.size or (0, 0)
        picture = open_picture(start.config["image_reference"]["image_url"], width=width, height=height)
        self._world = World(picture)
        self._tint = PromptTint(start.prompt)
        self._muxer = FragmentMuxer(width=width, height=height, fps=start.fps)
        self._strip_rows = strip_rows(width)
        self._before = ORIGIN
        self._frame = 0

    def chunk(self, conditions: Conditions, *, is_held: bool = False) -> bytes:
        """The file's next bytes: the chunk's pictures but for the last one, and the last one of the chunk before.

        None at all when the chunk ``is_held`` back: they come with the next one's.
        """
        poses = picture_poses(self._before, conditions.poses, is_first_chunk=conditions.index == 0)
        self._tint.follow(conditions.prompt, conditions.prompt_share)
        for pose in poses:
            self._world.move(pose)
            picture = self._tint.applied(self._world.picture())
            draw_marks(picture.luma, marks_of(self._frame, conditions.index, conditions.active_event_ids))
            for colour in (picture.blue, picture.red):
                colour[: self._strip_rows // 2] = GREY
            self._muxer.add(picture)
            self._frame += 1
        self._before = conditions.poses[-1]
        return b"" if is_held else self._muxer.take()

    def finish(self) -> bytes:
        """The trailer: the last picture, and the end of the file."""
        return self._muxer.take() + self._muxer.finish()
