"""What one scene says and shows, per genre. Facts that are spoken and facts that are drawn are kept apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from vision_bench.media.broadcast import words
from vision_bench.media.broadcast.words import Name, joined, sino_korean

Language = Literal["ko", "en"]
Role = Literal["headline", "ticker", "logo", "caption", "corner", "effect", "scoreboard", "count"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One checkable statement. ``accept`` holds every wording that counts as having said it."""

    name: str
    value: str | int
    accept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence to be spoken, by one espeak voice."""

    text: str
    language: Language
    voice: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Title:
    """One text to be drawn. English titles are Latin letters and digits only."""

    text: str
    language: Language
    role: Role


@dataclass(frozen=True, slots=True)
class SceneScript:
    """A scene's sentences and titles, and the score as the scene shows it (None where there is no game)."""

    lines: tuple[Line, ...]
    titles: tuple[Title, ...]
    score: dict[str, int | str] | None = None


@dataclass(slots=True)
class Game:
    """A score that runs through the programme."""

    home: Name
    away: Name
    home_points: int = 0
    away_points: int = 0
    inning: int = 1
    clock_seconds: int = 0
    extra: dict[str, int] = field(default_factory=dict)

    def as_score(self) -> dict[str, int | str]:
        """The standing as labels give it."""
        return {
            "home": self.home.english,
            "away": self.away.english,
            "home_points": self.home_points,
            "away_points": self.away_points,
            **self.extra,
        }


def new_game(genre: str, rng: Random) -> Game | None:
    """The game that a genre follows, or None."""
    teams = {"baseball": words.BALL_TEAMS, "esports": words.ESPORTS_TEAMS}.get(genre)
    if teams is None:
        return None
    home, away = rng.sample(teams, 2)
    return Game(home, away)


def write_scene(genre: str, rng: Random, game: Game | None) -> SceneScript:
    """The next scene of a genre; moves the game on."""
    if game is not None:
        return {"baseball": _baseball, "esports": _esports}[genre](rng, game)
    return STORIES[genre](rng)


def _named(fact: str, name: Name) -> Fact:
    return Fact(fact, name.korean, name.forms)


def _number(fact: str, value: int, unit: str, english: str) -> Fact:
    """A number with its unit. Without it, it counts from ten on only: 3 and 이 stand in many a sentence by chance."""
    accept = [f"{value}{unit}", f"{sino_korean(value)}{unit}", f"{value} {english}"]
    if value < 0:
        accept.append(f"영하 {-value}{unit}")
    if abs(value) >= 10:
        accept.append(str(value))
    return Fact(fact, value, tuple(accept))


def _round_number(fact: str, count: int, power: Literal["천", "만"]) -> Fact:
    """So many thousands or ten thousands."""
    value = count * {"천": 1000, "만": 10000}[power]
    return Fact(fact, value, (f"{count}{power}", f"{sino_korean(count)}{power}", str(value), f"{value:,}"))


def _news(rng: Random) -> SceneScript:
    city, elsewhere = rng.sample(words.CITIES, 2)
    reporter = rng.choice(words.PEOPLE)
    degrees, line, percent = rng.randint(-9, 34), rng.randint(2, 9), rng.randint(2, 40)
    headline = rng.choice(
        (
            f"{elsewhere.korean} 도시철도 {line}호선 착공",
            f"{elsewhere.korean} 관광객 {percent}% 늘어",
            f"{elsewhere.korean} 하늘길 열린다",
        )
    )
    return SceneScript(
        lines=(
            Line(
                f"지금 {city.korean}의 기온은 {sino_korean(degrees)} 도입니다.",
                "ko",
                "ko+f3",
                (_named("city", city), _number("temperature_c", degrees, "도", "degrees")),
            ),
            Line(f"취재에 {reporter.korean} 기자입니다.", "ko", "ko", (_named("reporter", reporter),)),
            Line(f"Good evening from {city.english}.", "en", "en-us+m3", (_named("city", city),)),
        ),
        titles=(
            Title(headline, "ko", "headline"),
            Title("LIVE NEWS 9", "en", "logo"),
            Title(f"[속보] {elsewhere.korean} 해역 규모 {rng.randint(2, 5)}.{rng.randint(0, 9)} 지진", "ko", "ticker"),
        ),
    )


def _docu(rng: Random) -> SceneScript:
    animal, group = rng.choice(words.ANIMALS), rng.randint(12, 190)
    return SceneScript(
        lines=(
            Line(
                f"{joined(animal.korean, '이', '가')} 먹이를 찾아 길을 나섭니다.",
                "ko",
                "ko+m4",
                (_named("animal", animal),),
            ),
            Line(
                f"무리는 {sino_korean(group)} 마리에 이릅니다.",
                "ko",
                "ko+m4",
                (_number("group_size", group, "마리", "animals"),),
            ),
        ),
        titles=(
            Title(f"{rng.randint(1, 6)}부 · 바람이 머무는 곳", "ko", "caption"),
            Title(rng.choice(words.COASTS), "en", "corner"),
        ),
    )


def _drama(rng: Random) -> SceneScript:
    listener, stranger = rng.sample(words.PEOPLE, 2)
    city, years = rng.choice(words.CITIES), rng.randint(2, 9)
    return SceneScript(
        lines=(
            Line(f"{listener.korean} 씨, 왜 이제야 왔어요?", "ko", "ko+f2", (_named("listener", listener),)),
            Line(
                f"{city.korean}에서 {sino_korean(years)} 년을 기다렸어요.",
                "ko",
                "ko+m3",
                (_named("city", city), _number("years", years, "년", "years")),
            ),
        ),
        titles=(
            Title(f"{stranger.korean}의 집, 늦은 밤", "ko", "caption"),
            Title(f"EPISODE {rng.randint(1, 16)}", "en", "corner"),
        ),
    )


def _hist_drama(rng: Random) -> SceneScript:
    general, fort = rng.choice(words.GENERALS), rng.choice(words.FORTS)
    troops = rng.randint(2, 9)
    return SceneScript(
        lines=(
            Line(f"전하, {general.korean} 장군이 성문을 열었나이다.", "ko", "ko+m5", (_named("general", general),)),
            Line(
                f"{sino_korean(troops)} 천 군사를 내어 주마.",
                "ko",
                "ko+m7",
                (_round_number("troops", troops, "천"),),
            ),
        ),
        titles=(
            Title(f"{fort.korean}, 서기 {rng.randint(901, 936)}년", "ko", "caption"),
            Title(f"PART {rng.randint(1, 50)}", "en", "corner"),
        ),
    )


def _entertain(rng: Random) -> SceneScript:
    game, winner, prize = rng.choice(words.GAMES), rng.choice(words.PEOPLE), rng.randint(2, 9)
    return SceneScript(
        lines=(
            Line(f"다음 게임, {game.korean}!", "ko", "ko+f4", (_named("game", game),)),
            Line(
                f"{winner.korean} 승리! 상금 {sino_korean(prize)} 만 원!",
                "ko",
                "ko+m2",
                (
                    _named("winner", winner),
                    _round_number("prize_won", prize, "만"),
                ),
            ),
        ),
        titles=(
            Title(rng.choice(words.REACTIONS), "ko", "effect"),
            Title(f"MISSION {rng.randint(1, 9)}", "en", "corner"),
        ),
    )


def _baseball(rng: Random, game: Game) -> SceneScript:
    game.inning = min(9, game.inning + (rng.random() < 0.35))
    balls, strikes, outs = rng.randint(0, 3), rng.randint(0, 2), rng.randint(0, 2)
    runs, batting = rng.choice((0, 0, 1, 2)), rng.choice((game.home, game.away))
    if batting is game.home:
        game.home_points += runs
    else:
        game.away_points += runs
    game.extra = {"inning": game.inning, "balls": balls, "strikes": strikes, "outs": outs}
    speed = rng.randint(121, 158)
    lines = [
        Line(f"구속 {sino_korean(speed)} 킬로미터!", "ko", "ko+m1", (_number("pitch_kmh", speed, "킬로미터", "km/h"),))
    ]
    if runs:
        lines.append(
            Line(
                f"{joined(batting.korean, '이', '가')} {sino_korean(runs)} 점을 더합니다.",
                "ko",
                "ko+m2",
                (Fact("scoring_team", batting.korean, batting.forms), _number("runs", runs, "점", "runs")),
            )
        )
    lines.append(Line("타자, 타석에서 물러납니다. 관중석이 술렁입니다.", "ko", "ko+m1", ()))
    return SceneScript(
        lines=tuple(lines),
        titles=(
            Title(
                f"{game.away.english} {game.away_points} : {game.home_points} {game.home.english}", "en", "scoreboard"
            ),
            Title(f"INNING {game.inning}  BALL {balls}  STRIKE {strikes}  OUT {outs}", "en", "count"),
            Title(f"{batting.korean} 공격", "ko", "corner"),
        ),
        score=game.as_score(),
    )


def _esports(rng: Random, game: Game) -> SceneScript:
    kills, scorer, lead = rng.randint(1, 3), rng.choice((game.home, game.away)), rng.randint(2, 9)
    if scorer is game.home:
        game.home_points += kills
    else:
        game.away_points += kills
    game.clock_seconds += rng.randint(40, 160)
    game.extra = {"clock_seconds": game.clock_seconds}
    minutes, seconds = divmod(game.clock_seconds, 60)
    return SceneScript(
        lines=(
            Line(
                f"골드 차이가 {sino_korean(lead)} 천으로 벌어집니다!",
                "ko",
                "ko+m6",
                (_round_number("gold_lead", lead, "천"),),
            ),
            Line(
                "What a fight! They take everything.",
                "en",
                "en-us+f2",
                (Fact("shout", "what a fight", ("what a fight",)),),
            ),
            Line(f"{scorer.korean}, 한타를 크게 이깁니다.", "ko", "ko+m6", (_named("fight_winner", scorer),)),
        ),
        titles=(
            Title(
                f"{game.away.english} {game.away_points} : {game.home_points} {game.home.english}", "en", "scoreboard"
            ),
            Title(f"TIME {minutes:02d}:{seconds:02d}", "en", "count"),
            Title(rng.choice(words.PLAYS), "en", "effect"),
        ),
        score=game.as_score(),
    )


STORIES: dict[str, Callable[[Random], SceneScript]] = {
    "news": _news,
    "docu": _docu,
    "drama": _drama,
    "hist_drama": _hist_drama,
    "entertain": _entertain,
}
