"""The vocabulary of the broadcast and its Korean: numbers as they are read, particles as they are joined."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_HANGUL, LAST_HANGUL, FINALS = 0xAC00, 0xD7A3, 28

DIGITS = "영일이삼사오육칠팔구"
UNITS = ("", "십", "백", "천")


@dataclass(frozen=True, slots=True)
class Name:
    """One thing under its Korean and its English name."""

    korean: str
    english: str

    @property
    def forms(self) -> tuple[str, ...]:
        """Every spelling that counts as having named it."""
        return (self.korean, self.english)


CITIES = (
    Name("서울", "Seoul"),
    Name("부산", "Busan"),
    Name("인천", "Incheon"),
    Name("대전", "Daejeon"),
    Name("제주", "Jeju"),
    Name("춘천", "Chuncheon"),
)
PEOPLE = (
    Name("강하늘", "Kang Haneul"),
    Name("윤서진", "Yoon Seojin"),
    Name("오지훈", "Oh Jihoon"),
    Name("한소리", "Han Sori"),
    Name("문가영", "Moon Gayoung"),
)
ANIMALS = (
    Name("반달곰", "moon bear"),
    Name("황새", "stork"),
    Name("돌고래", "dolphin"),
    Name("산양", "goral"),
)
COASTS = ("NORTH COAST", "EAST COAST", "WEST COAST", "SOUTH COAST")
GENERALS = (Name("유금필", "Yu Geumpil"), Name("신숭겸", "Sin Sunggyeom"), Name("복지겸", "Bok Jigyeom"))
FORTS = (Name("개경", "Gaegyeong"), Name("평양", "Pyongyang"), Name("공주", "Gongju"))
GAMES = (Name("물풍선 던지기", "water balloons"), Name("이름 맞히기", "name quiz"), Name("림보", "limbo"))
REACTIONS = ("대폭소!", "이럴 수가!", "반전 주의", "두근두근")
BALL_TEAMS = (Name("호랑이", "TIGERS"), Name("독수리", "EAGLES"), Name("사자", "LIONS"), Name("곰", "BEARS"))
ESPORTS_TEAMS = (Name("드래곤즈", "DRAGONS"), Name("팔콘즈", "FALCONS"), Name("울브즈", "WOLVES"))
PLAYS = ("DOUBLE KILL", "TRIPLE KILL", "BARON SLAIN", "TOWER DOWN")


def sino_korean(number: int) -> str:
    """An integer under ten thousand as it is read aloud: 125 is 백이십오, -3 is 영하 삼."""
    if number < 0:
        return "영하 " + sino_korean(-number)
    if number == 0:
        return DIGITS[0]
    read = ""
    for power in (3, 2, 1, 0):
        digit = number // 10**power % 10
        if digit:
            # A leading one is silent before 십, 백 and 천.
            read += ("" if digit == 1 and power else DIGITS[digit]) + UNITS[power]
    return read


def joined(word: str, after_consonant: str, after_vowel: str) -> str:
    """``word`` with the particle that its last sound asks for: 곰이, 사자가."""
    last = ord(word[-1])
    has_final = FIRST_HANGUL <= last <= LAST_HANGUL and (last - FIRST_HANGUL) % FINALS != 0
    return word + (after_consonant if has_final else after_vowel)
