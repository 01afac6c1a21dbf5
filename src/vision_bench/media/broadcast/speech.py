"""Sentences to samples through the espeak-ng shared library, with no program started and no file written."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from contextlib import contextmanager
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

RANDOM_SEED = 1  # of the breath in some voices

SILENCE_BELOW = 0.004
PEAK = 0.55


class Speaker(Protocol):
    """What the broadcast asks of a voice."""

    name: str
    rate: int
    """Samples a second of what ``say`` returns."""

    def say(self, text: str, voice: str) -> NDArray[np.float32]:
        """The sentence as (N,) mono samples in [-1, 1], trimmed to where sound is."""


class Espeak:
    """The espeak-ng library, loaded anew for every sentence and let go after it.

    Its globals carry a voice's flutter from one sentence into the next; loaded anew, a sentence sounds the same
    whatever was said before it. That costs about 15 ms. Use it from one thread: the globals are the process's.

    Args:
        library: the shared library.
        data: its voice data folder; None for the library's own default.

    Raises:
        MissingTool: the library does not load or finds no voice data.
    """

    def __init__(self, library: str, data: str | None, *, words_per_minute: int = 165) -> None:
        self._path, self._data, self._words_per_minute = library, data, words_per_minute
        with self._loaded() as (espeak, rate):
            self.rate = rate
            self.name = f"espeak-ng {espeak.espeak_Info(None).decode()}"

    def say(self, text: str, voice: str) -> NDArray[np.float32]:
        """See `Speaker.say`.

        Raises:
            MissingTool: the voice is not among the library's, or the sentence gave no sound.
        """
        chunks: list[bytes] = []

        def collect(samples: int | None, count: int, _events: int | None) -> int:
            if samples and count > 0:
                chunks.append(ctypes.string_at(samples, 2 * count))
            return 0  # 0 asks for more

        with self._loaded() as (espeak, _):
            callback = _CALLBACK(collect)
            espeak.espeak_SetSynthCallback(callback)
            if espeak.espeak_SetVoiceByName(voice.encode()) != 0:
                raise MissingTool(f"espeak-ng has no voice {voice!r}")
            if hasattr(espeak, "espeak_ng_SetRandSeed"):  # since 1.52; before it, breath differs from run to run
                espeak.espeak_ng_SetRandSeed(RANDOM_SEED)
            espeak.espeak_SetParameter(PARAMETER_RATE, self._words_per_minute, 0)
            data = text.encode() + b"\0"
            failed = espeak.espeak_Synth(data, len(data), 0, POSITION_CHARACTER, 0, CHARACTERS_UTF8, None, None)
        raw = np.frombuffer(b"".join(chunks), np.int16).astype(np.float32) / 32768
        loud = np.flatnonzero(np.abs(raw) > SILENCE_BELOW)
        if failed or loud.size == 0:
            raise MissingTool(f"espeak-ng made no sound of {text!r} with voice {voice!r}")
        spoken = raw[loud[0] : loud[-1] + 1]
        return np.asarray(spoken * (PEAK / np.abs(spoken).max()), np.float32)

    @contextmanager
    def _loaded(self) -> Iterator[tuple[ctypes.CDLL, int]]:
        """The library, ready to speak, and its samples a second."""
        try:
            espeak = _declare(ctypes.CDLL(self._path))
        except (OSError, AttributeError) as problem:
            raise MissingTool(f"espeak-ng does not load from {self._path}: {problem}") from problem
        try:
            data = self._data.encode() if self._data else None
            rate = espeak.espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, data, INITIALIZE_DONT_EXIT)
            if rate <= 0:
                raise MissingTool(f"espeak-ng finds no voice data in {self._data or 'its default folder'}")
            yield espeak, rate
            espeak.espeak_Terminate()
        finally:
            _let_go(espeak)


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def _let_go(library: ctypes.CDLL) -> None:
    """Unload a library, which ctypes itself never does."""
    dlclose = ctypes.CDLL(None).dlclose
    dlclose.argtypes = [ctypes.c_void_p]
    dlclose(library._handle)


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
