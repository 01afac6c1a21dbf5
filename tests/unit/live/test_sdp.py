"""What of a stranger's description is let through."""

from __future__ import annotations

import pytest

from vision_bench.live.sdp import MAX_CANDIDATES, SDP_LIMIT_BYTES, BadSdp, checked_offer, read_fragment

OFFER = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\n"
PLAIN = "a=candidate:1 1 udp 2130706431 192.0.2.7 50000 typ host"


def test_an_offer_of_video_passes() -> None:
    """Line ends become CR LF, sound may be there too; everything else stays as it is."""
    assert checked_offer(OFFER) == OFFER
    assert checked_offer(OFFER.replace("\r\n", "\n")) == OFFER
    assert "m=audio" in checked_offer(OFFER + "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n")


@pytest.mark.parametrize(
    "candidate",
    [
        "a=candidate:1 1 udp 1 4e1f.local 50000 typ host",
        "a=candidate:1 1 udp 1 metadata.internal 80 typ host",
        "a=candidate:1 1 tcp 1 192.0.2.7 80 typ host tcptype active",
        "a=candidate:1 1 udp 1 224.0.0.1 80 typ host",
        "a=candidate:1 1 udp 1 0.0.0.0 80 typ host",
        "a=candidate:nonsense",
    ],
)
def test_candidates_that_are_no_plain_addresses_are_left_out(candidate: str) -> None:
    """No name is looked up for a stranger; what else stands in the offer is answered."""
    offer = checked_offer(OFFER + PLAIN + "\r\n" + candidate + "\r\n")
    assert offer == OFFER + PLAIN + "\r\n"
    assert read_fragment(candidate).candidates == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with v=0"),
        ("v=0\r\n", "no video"),
        (OFFER + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", "data channels"),
        (OFFER + "m=audio 9 x 0\r\n" * 8, "eight media"),
        (OFFER + (PLAIN + "\r\n") * (MAX_CANDIDATES + 1), "more than 32"),
        (OFFER + "a=x" * SDP_LIMIT_BYTES, "longer than"),
        (OFFER + "a=é\r\n", "not ASCII"),
        (OFFER + "a=\x00\r\n", "not ASCII"),
    ],
)
def test_what_is_refused_says_why(text: str, reason: str) -> None:
    """One reason each, for the sender."""
    with pytest.raises(BadSdp, match=reason):
        checked_offer(text)


def test_a_fragment_gives_each_candidate_its_media() -> None:
    """mid lines hold for what follows them; the user fragment and the end are told."""
    told = read_fragment(f"a=ice-ufrag:ab\r\na=mid:0\r\n{PLAIN}\r\na=mid:1\r\n{PLAIN}\r\na=end-of-candidates\r\n")
    assert [mid for mid, _ in told.candidates] == ["0", "1"]
    assert told.candidates[0][1] == PLAIN.removeprefix("a=candidate:")
    assert (told.ufrag, told.is_last) == ("ab", True)
