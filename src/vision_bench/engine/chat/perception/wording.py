"""An observation in words, Korean or English: the four fields of the default question, and plain text.

Nothing is said that was not measured; what was not tried (naming things, transcribing speech) is said to be so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from vision_bench.engine.chat.perception.observation import Observation, measured_line
from vision_bench.engine.chat.perception.picture import PictureFacts
from vision_bench.engine.chat.perception.shapes import ShapeCount
from vision_bench.engine.chat.perception.sound import SoundFacts
from vision_bench.engine.chat.perception.text_on_screen import TextFacts

Language = Literal["ko", "en"]

DARK_LUMA, BRIGHT_LUMA = 60, 150
LITTLE_MOTION, MUCH_MOTION = 0.02, 0.25

TOLD_SECONDS = 0.05
"""Shorter stretches would be told as 0.0 s."""

MOST_TIMES = 8
"""Most points in time that one sentence names."""

LISTED_CHARACTERS = 560
"""Of the lines that are quoted: the field holds 800, and what is said after them must fit."""

FIELDS = ("scene", "speech", "on_screen_text", "summary")

COLOURS_KO = {
    "red": "빨간색",
    "orange": "주황색",
    "yellow": "노란색",
    "green": "초록색",
    "cyan": "하늘색",
    "blue": "파란색",
    "purple": "보라색",
    "magenta": "자홍색",
    "white": "흰색",
}
OUTLINES_KO = {"circle": "원", "square": "사각형", "triangle": "삼각형"}

INTRODUCTION = {
    "en": (
        "I am a measuring engine, not a language model: I measure the picture and the sound of clips that are sent to "
        "me, and cannot answer questions or hold a conversation. Send a video, an image or a sound and I will tell "
        "what I measured in it."
    ),
    "ko": (
        "저는 언어 모델이 아니라 측정 엔진입니다. 보내 주신 영상의 화면과 소리를 잴 수 있을 뿐, 질문에 답하거나 "
        "대화를 나누지는 못합니다. 영상, 이미지 또는 소리를 보내 주시면 잰 결과를 알려 드립니다."
    ),
}


def language_of(text: str) -> Language:
    """Korean where there is any Hangul, else English."""
    return "ko" if any("\uac00" <= char <= "\ud7a3" for char in text) else "en"


def describe(seen: Observation, language: Language) -> dict[str, str]:
    """The four fields."""
    korean = language == "ko"
    return {
        "scene": _scene_ko(seen.picture) if korean else _scene_en(seen.picture),
        "speech": _sound_ko(seen) if korean else _sound_en(seen),
        "on_screen_text": _text_ko(seen.text) if korean else _text_en(seen.text),
        "summary": f"{_summary_ko(seen) if korean else _summary_en(seen)} {measured_line(seen)}",
    }


def plain_text(fields: dict[str, str], language: Language) -> str:
    """The fields as a text of their own, one a line."""
    names = ("화면", "소리", "글자", "요약") if language == "ko" else ("Picture", "Sound", "Text", "Summary")
    return "\n".join(f"{name}: {fields[field]}" for name, field in zip(names, FIELDS, strict=True))


def _scene_en(picture: PictureFacts | None) -> str:
    if picture is None:
        return "No picture was sent."
    if picture.is_black:
        return f"The picture is black{_throughout_en(picture)}; nothing can be seen in it ({_frames_en(picture)})."
    sentences = [f"A {_light(picture, 'dark', 'medium-bright', 'bright')} picture ({_frames_en(picture)})."]
    if picture.motion is not None:
        moves = _moves(picture, "hardly moves", "moves a little", "moves much")
        sentences.append(f"It {moves}: {_percent(picture)} % of it changes from one frame to the next.")
    if picture.black_seconds >= TOLD_SECONDS:
        sentences.append(f"It is black for {picture.black_seconds:.1f} s.")
    if picture.frozen_seconds >= TOLD_SECONDS:
        sentences.append(f"It is frozen for {picture.frozen_seconds:.1f} s.")
    if picture.cut_seconds:
        times = _times(picture.cut_seconds)
        sentences.append(f"{_plural(len(picture.cut_seconds), 'scene change')}, seen at {times} s.")
    elif picture.duration_seconds:
        sentences.append("No scene change.")
    if picture.flash_seconds:
        times = _times(picture.flash_seconds)
        sentences.append(f"{_plural(len(picture.flash_seconds), 'flash', 'flashes')}, seen at {times} s.")
    if picture.shapes:
        sentences.append(f"Plain shapes: {', '.join(map(_shape_en, picture.shapes))}.")
    sentences.append("Things and people are not recognised.")
    return " ".join(sentences)


def _scene_ko(picture: PictureFacts | None) -> str:
    if picture is None:
        return "화면을 받지 못했습니다."
    if picture.is_black:
        return f"화면이 {_throughout_ko(picture)}검어서 아무것도 보이지 않습니다 ({_frames_ko(picture)})."
    sentences = [f"{_light(picture, '어두운', '중간 밝기의', '밝은')} 화면입니다 ({_frames_ko(picture)})."]
    if picture.motion is not None:
        moves = _moves(picture, "움직임이 거의 없습니다", "조금 움직입니다", "많이 움직입니다")
        sentences.append(f"{moves}: 프레임 사이에 화면의 {_percent(picture)} %가 바뀝니다.")
    if picture.black_seconds >= TOLD_SECONDS:
        sentences.append(f"{picture.black_seconds:.1f}초 동안 검습니다.")
    if picture.frozen_seconds >= TOLD_SECONDS:
        sentences.append(f"{picture.frozen_seconds:.1f}초 동안 멈춰 있습니다.")
    if picture.cut_seconds:
        sentences.append(f"장면 전환 {len(picture.cut_seconds)}번 ({_times(picture.cut_seconds)}초).")
    elif picture.duration_seconds:
        sentences.append("장면 전환은 없습니다.")
    if picture.flash_seconds:
        sentences.append(f"번쩍임 {len(picture.flash_seconds)}번 ({_times(picture.flash_seconds)}초).")
    if picture.shapes:
        sentences.append(f"단순한 도형: {', '.join(map(_shape_ko, picture.shapes))}.")
    sentences.append("사물과 인물은 알아보지 못합니다.")
    return " ".join(sentences)


def _sound_en(seen: Observation) -> str:
    sound = seen.sound
    if sound is None:
        if seen.sound_state == "withheld":
            return "The sound of the video was not given (use_audio_in_video is off), so nothing was heard."
        return "No sound was sent."
    if sound.is_silent:
        return f"The sound is silent for all {sound.duration_seconds:.1f} s; no speech is heard."
    sentences = [
        f"Speech is heard for {sound.speech_seconds:.1f} of {sound.duration_seconds:.1f} s ({_spans(sound)} s); "
        "its words are not transcribed."
        if sound.speech
        else f"No speech is heard in {sound.duration_seconds:.1f} s, only other sound."
    ]
    if sound.loudness_dbfs is not None and sound.peak_dbfs is not None:
        sentences.append(f"Loudness {sound.loudness_dbfs:.1f} dBFS, peak {sound.peak_dbfs:.1f} dBFS.")
    if sound.silent_seconds >= TOLD_SECONDS:
        sentences.append(f"Silent for {sound.silent_seconds:.1f} s.")
    if sound.beep_seconds:
        beeps = _plural(len(sound.beep_seconds), "beep")
        sentences.append(f"{beeps} of 1 kHz, at {_times(sound.beep_seconds)} s.")
    return " ".join(sentences)


def _sound_ko(seen: Observation) -> str:
    sound = seen.sound
    if sound is None:
        if seen.sound_state == "withheld":
            return "영상의 소리를 받지 못해(use_audio_in_video 꺼짐) 아무것도 듣지 못했습니다."
        return "소리를 받지 못했습니다."
    if sound.is_silent:
        return f"{sound.duration_seconds:.1f}초 내내 소리가 없습니다. 말소리도 없습니다."
    sentences = [
        f"{sound.duration_seconds:.1f}초 가운데 {sound.speech_seconds:.1f}초 동안 말소리가 들립니다 "
        f"({_spans(sound)}초). 말의 내용은 받아 적지 못합니다."
        if sound.speech
        else f"{sound.duration_seconds:.1f}초 동안 말소리는 없고 다른 소리만 들립니다."
    ]
    if sound.loudness_dbfs is not None and sound.peak_dbfs is not None:
        sentences.append(f"소리 크기 {sound.loudness_dbfs:.1f} dBFS, 최대 {sound.peak_dbfs:.1f} dBFS.")
    if sound.silent_seconds >= TOLD_SECONDS:
        sentences.append(f"{sound.silent_seconds:.1f}초 동안 소리가 없습니다.")
    if sound.beep_seconds:
        sentences.append(f"1 kHz 신호음 {len(sound.beep_seconds)}번 ({_times(sound.beep_seconds)}초).")
    return " ".join(sentences)


def _text_en(text: TextFacts | None) -> str:
    if text is None:
        return "No picture was sent."
    shown, more = _listed(text.lines)
    notes = [f"And {_plural(more, 'more line')}."] if more else []
    if text.unread_places:
        notes.append(f"Text in {_plural(text.unread_places, 'place')} could not be read (other script or too faint).")
    if text.skipped_places:
        notes.append(f"{_plural(text.skipped_places, 'smaller place')} with text left unread.")
    if not text.lines:
        return " ".join(["No Latin text is read.", *notes]) if notes else "No text is seen."
    return ". ".join([shown, " ".join(notes)]) if notes else shown


def _text_ko(text: TextFacts | None) -> str:
    if text is None:
        return "화면을 받지 못했습니다."
    shown, more = _listed(text.lines)
    notes = [f"그 밖에 {more}줄이 더 있습니다."] if more else []
    if text.unread_places:
        notes.append(f"읽지 못한 글자가 {text.unread_places}곳 있습니다(다른 문자이거나 흐림).")
    if text.skipped_places:
        notes.append(f"더 작은 글자 {text.skipped_places}곳은 읽지 않았습니다.")
    if not text.lines:
        return " ".join(["읽은 로마자는 없습니다.", *notes]) if notes else "글자가 보이지 않습니다."
    return ". ".join([shown, " ".join(notes)]) if notes else shown


def _summary_en(seen: Observation) -> str:
    picture, sound = seen.picture, seen.sound
    if picture is None:
        looks = "No picture"
    elif picture.is_black:
        looks = "Black picture"
    elif picture.motion is None:
        looks = "A picture"
    else:
        looks = _moves(picture, "Still picture", "Picture with little motion", "Picture with much motion")
    if sound is None:
        hears = "no sound given"
    elif sound.is_silent:
        hears = "silence"
    elif sound.speech:
        hears = f"{sound.speech_seconds:.1f} s of speech"
    else:
        hears = "sound without speech"
    return f"{looks}; {hears}."


def _summary_ko(seen: Observation) -> str:
    picture, sound = seen.picture, seen.sound
    if picture is None:
        looks = "화면 없음"
    elif picture.is_black:
        looks = "검은 화면"
    elif picture.motion is None:
        looks = "화면 있음"
    else:
        looks = _moves(picture, "멈춘 화면", "움직임이 적은 화면", "움직임이 많은 화면")
    if sound is None:
        hears = "소리를 받지 못함"
    elif sound.is_silent:
        hears = "소리 없음"
    elif sound.speech:
        hears = f"말소리 {sound.speech_seconds:.1f}초"
    else:
        hears = "말 없는 소리"
    return f"{looks}, {hears}."


def _light(picture: PictureFacts, dark: str, medium: str, bright: str) -> str:
    luma = picture.brightness or 0.0
    return dark if luma < DARK_LUMA else bright if luma > BRIGHT_LUMA else medium


def _moves(picture: PictureFacts, hardly: str, little: str, much: str) -> str:
    motion = picture.motion or 0.0
    return hardly if motion < LITTLE_MOTION else much if motion > MUCH_MOTION else little


def _percent(picture: PictureFacts) -> int:
    return round(100 * (picture.motion or 0.0))


def _frames_en(picture: PictureFacts) -> str:
    span = f" over {picture.duration_seconds:.1f} s" if picture.duration_seconds else ""
    return f"{_plural(picture.frame_count, 'frame')} of {picture.width}x{picture.height}{span}"


def _frames_ko(picture: PictureFacts) -> str:
    span = f"{picture.duration_seconds:.1f}초 동안 " if picture.duration_seconds else ""
    return f"{span}{picture.width}x{picture.height} 프레임 {picture.frame_count}장"


def _throughout_en(picture: PictureFacts) -> str:
    return f" for all {picture.duration_seconds:.1f} s" if picture.duration_seconds else ""


def _throughout_ko(picture: PictureFacts) -> str:
    return f"{picture.duration_seconds:.1f}초 내내 " if picture.duration_seconds else ""


def _shape_en(shape: ShapeCount) -> str:
    return f"{shape.count} {shape.colour} {shape.outline}{'s' if shape.count > 1 else ''}"


def _shape_ko(shape: ShapeCount) -> str:
    return f"{COLOURS_KO[shape.colour]} {OUTLINES_KO[shape.outline]} {shape.count}개"


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _times(seconds: Sequence[float]) -> str:
    shown = ", ".join(f"{at:.1f}" for at in seconds[:MOST_TIMES])
    return shown + (", …" if len(seconds) > MOST_TIMES else "")


def _spans(sound: SoundFacts) -> str:
    shown = ", ".join(f"{span.start:.1f}–{span.end:.1f}" for span in sound.speech[:MOST_TIMES])
    return shown + (", …" if len(sound.speech) > MOST_TIMES else "")


def _listed(lines: Sequence[str]) -> tuple[str, int]:
    """Lines in straight double quotes, so that a reader can tell what was read from what is said about it, and how
    many more there were than fit."""
    quoted = ['"' + line.replace('"', "'") + '"' for line in lines]
    total, shown = 0, 0
    for line in quoted:
        total += len(line) + 2
        if shown and total > LISTED_CHARACTERS:
            break
        shown += 1
    return "; ".join(quoted[:shown]), len(quoted) - shown
