"""Sentences to samples through the espeak-ng shared library, with no program started and no file written."""

from __future__ import annotations

import ctypes
import ctypes.util
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import MissingTool

# The values of speak_lib.h that we use.
AUDIO_OUTPUT_SYNCHRONOUS = 2
INITIALIZE_DONT_EXIT = 0x8000
PARAMETER_RATE = 1
POSITION_CHARACTER = 1
CHARACTERS_UTF8 = 1

SILENCE_BELOW = 0.004
PEAK = 0.55


class Speaker(Protocol):
    """What the broadcast asks of a voice."""

    name: str

    def say(self, text: str, voice: str) -> NDArray[np.float32]:
        """The sentence as (N,) mono samples in [-1, 1] at the speaker's ``rate``, trimmed to where sound is."""

    @property
    def rate(self) -> int:
        """Samples a second of what ``say`` returns."""


class Espeak:
    """The espeak-ng library. Its state is the process's: use one at a time, from one thread.

    Args:
        library: the shared library.
        data: its voice data folder; None for the library's own default.

    Raises:
        MissingTool: the library does not load or finds no voice data.
    """

    def __init__(self, library: str, data: str | None, *, words_per_minute: int = 165) -> None:
        self._words_per_minute = words_per_minute
        self._chunks: list[bytes] = []
        try:
            self._library = _declare(ctypes.CDLL(library))
        except (OSError, AttributeError) as problem:
            raise MissingTool(f"espeak-ng does not load from {library}: {problem}") from problem
        self._rate = self._library.espeak_Initialize(
            AUDIO_OUTPUT_SYNCHRONOUS, 0, data.encode() if data else None, INITIALIZE_DONT_EXIT
        )
        if self._rate <= 0:
            raise MissingTool(f"espeak-ng finds no voice data in {data or 'its default folder'}")
        # The library calls this long after the call that set it: it must live as long as we do.
        self._callback = _CALLBACK(self._collect)
        self._library.espeak_SetSynthCallback(self._callback)
        self.name = f"espeak-ng {self._library.espeak_Info(None).decode()}"

    @property
    def rate(self) -> int:
        return int(self._rate)

    def _collect(self, samples: int | None, count: int, _events: int | None) -> int:
        if samples and count > 0:
            self._chunks.append(ctypes.string_at(samples, 2 * count))
        return 0  # 0 asks for more

    def say(self, text: str, voice: str) -> NDArray[np.float32]:
        """See `Speaker.say`.

        Raises:
            MissingTool: the voice is not among the library's, or the sentence gave no sound.
        """
        self._chunks.clear()
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise MissingTool(f"espeak-ng has no voice {voice!r}")
        self._library.espeak_SetParameter(PARAMETER_RATE, self._words_per_minute, 0)
        data = text.encode() + b"\0"
        failed = self._library.espeak_Synth(data, len(data), 0, POSITION_CHARACTER, 0, CHARACTERS_UTF8, None, None)
        raw = np.frombuffer(b"".join(self._chunks), np.int16).astype(np.float32) / 32768
        loud = np.flatnonzero(np.abs(raw) > SILENCE_BELOW)
        if failed or loud.size == 0:
            raise MissingTool(f"espeak-ng made no sound of {text!r} with voice {voice!r}")
        spoken = raw[loud[0] : loud[-1] + 1]
        return np.asarray(spoken * (PEAK / np.abs(spoken).max()), np.float32)

    def close(self) -> None:
        """Let the library forget its voices."""
        self._library.espeak_Terminate()


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Tell ctypes the argument types: a size_t passed as int is cut in half on 64 bits."""
    library.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    library.espeak_SetSynthCallback.argtypes = [_CALLBACK]
    library.espeak_SetSynthCallback.restype = None
    library.espeak_SetVoiceByName.argtypes = [ctypes.c_char_p]
    library.espeak_SetParameter.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int]
    library.espeak_Info.argtypes = [ctypes.c_void_p]
    library.espeak_Info.restype = ctypes.c_char_p
    library.espeak_Synth.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_uint,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    return library


def find_espeak() -> Espeak | None:
    """espeak-ng from the extra ``broadcast``, else from the system, else None."""
    packaged = find_spec("espeakng_loader")
    if packaged is not None and packaged.origin is not None:
        import espeakng_loader  # noqa: PLC0415  (optional: only where it was found)

        if Path(espeakng_loader.get_library_path()).exists():
            return Espeak(espeakng_loader.get_library_path(), espeakng_loader.get_data_path())
    system = ctypes.util.find_library("espeak-ng")
    return Espeak(system, None) if system else None
