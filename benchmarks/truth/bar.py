"""What is asked of the tool, and whether this run met it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]


class Quantity(NamedTuple):
    """One row: what must be, what is aimed at, the best of the others, and what came out."""

    name: str
    best_peer: str
    must: float
    aim: float
    measured: float | None

    def as_row(self) -> Json:
        """With the answer."""
        is_met = None if self.measured is None else self.measured <= self.must
        return self._asdict() | {"is_met": is_met}


_TTFT = {
    20.0: ("AIPerf +1.1", "AIPerf +2.1", 0.8, 1.5, 0.4, 0.6),
    50.0: ("AIPerf +0.9", "AIPerf +1.6", 0.8, 1.5, 0.5, 0.8),
    100.0: ("vllm bench +1.7", "vllm bench +4.9", 1.2, 2.5, 0.6, 1.5),
}


def judge(cells: Sequence[Json], traps: Sequence[Json], server: str = "lean", peers: Sequence[Json] = ()) -> list[Json]:
    """The rows, from the cells at constant rates against one of the servers.

    ``peers``: the cells of other tools in the same run; without them the best of others is what was found by hand.
    """
    at = {cell["rate"]: cell for cell in cells if cell["server"] == server and cell["arrivals"] == "constant"}
    rows: list[Quantity] = []
    for rate, (peer50, peer99, must50, must99, aim50, aim99) in _TTFT.items():
        if rate in at:
            ttft = at[rate]["ttft_ms"]
            at_rate = [cell for cell in peers if cell["rate"] == rate]
            peer50 = _best(at_rate, lambda cell: cell["ttft_ms"]["error_p50"], peer50)
            peer99 = _best(at_rate, lambda cell: cell["ttft_ms"]["error_p99"], peer99)
            rows.append(Quantity(f"TTFT error p50 at {rate:g}/s, ms", peer50, must50, aim50, _size(ttft["error_p50"])))
            rows.append(Quantity(f"TTFT error p99 at {rate:g}/s, ms", peer99, must99, aim99, _size(ttft["error_p99"])))
    if 100.0 in at:
        rows += _at_hundred(at[100.0], [cell for cell in peers if cell["rate"] == 100.0])
    big = next((trap for trap in traps if "1.64 MB" in trap["trap"]), None)
    if big is not None:
        told = big["reported"]
        rows.append(
            Quantity("1.64 MB bodies: TTFT error p50, ms", "AIPerf +1.5", 1.0, 0.7, _size(told["ttft_error_p50_ms"]))
        )
        rows.append(Quantity("1.64 MB bodies: CPU a request, ms", "AIPerf 16.8", 8.0, 6.0, told["cpu_ms_per_request"]))
    return [row.as_row() for row in rows]


def _at_hundred(cell: Mapping[str, Any], peers: Sequence[Json]) -> list[Quantity]:
    unaccounted = float(abs(cell["due"] - cell["seen_by_server"]))
    peer_tpot = _best(peers, lambda one: one["tpot_ms"]["error_p50"], "0.01", 4)
    peer_gaps = _best(peers, lambda one: one["gap_cv"], "vllm bench 0.12")
    peer_rate = _best(peers, lambda one: abs(1 - one["achieved_over_offered"]), "vllm bench", 4)
    peer_lost = _best(peers, lambda one: one["due"] - one["accounted_for"], "vllm bench 0", 0)
    peer_cpu = _best(peers, lambda one: one["cpu_ms_per_request"], "vllm bench 4.6")
    peer_pss = _best(peers, lambda one: one["peak_pss_mb"], "AIPerf 410", 0)
    return [
        Quantity("TPOT error p50 at 100/s, ms", peer_tpot, 0.02, 0.01, _size(cell["tpot_ms"]["error_p50"])),
        Quantity("variation of constant gaps at 100/s", peer_gaps, 0.08, 0.05, cell["gap_cv"]),
        Quantity(
            "achieved / offered at 100/s, distance from 1",
            peer_rate,
            0.002,
            0.002,
            abs(1 - cell["achieved_over_offered"]),
        ),
        Quantity("arrivals not accounted for at 100/s", peer_lost, 0.0, 0.0, unaccounted),
        Quantity("client CPU a request at 100/s, ms", peer_cpu, 4.0, 2.5, cell["cpu_ms_per_request"]),
        Quantity("peak memory (PSS), MB", peer_pss, 120.0, 60.0, cell["peak_pss_mb"]),
    ]


def _best(cells: Sequence[Json], of: Callable[[Json], float | None], otherwise: str, digits: int = 2) -> str:
    """The tool that comes nearest to nothing, and its number; ``otherwise`` where none was measured."""
    known = [(abs(value), cell["tool"], value) for cell in cells if (value := of(cell)) is not None]
    return f"{min(known)[1]} {min(known)[2]:.{digits}f}" if known else otherwise


def _size(error: float | None) -> float | None:
    return None if error is None else abs(error)
