"""bench.kinds and bench.kind: a row for each kind, and options that stay with theirs."""

from __future__ import annotations

import pytest

from vision_bench.bench.kind import LoadOptions
from vision_bench.bench.kinds import KINDS, kind_named, own_options
from vision_bench.cli.run import OWN
from vision_bench.errors import InvalidRequest, UnknownName


def test_every_kind_that_is_listed_has_a_row_and_no_other() -> None:
    """The table and its list agree; an unknown name is told the known ones."""
    for name in KINDS:
        assert callable(kind_named(name).load)
    with pytest.raises(UnknownName, match=r"'tea'.*chat"):
        kind_named("tea")


def test_every_option_of_a_kind_is_on_the_command_line_and_the_other_way_round() -> None:
    """None is told of and never taken, or taken and never told of."""
    assert {option.name for option in OWN} == {name for kind in KINDS for name in kind_named(kind).options}


def test_an_option_of_another_kind_is_refused_by_its_flag() -> None:
    """What was not given (None) is no option."""
    chat = kind_named("chat")
    assert own_options("chat", chat, {"batch": 3, "num_chunks": None}) == {"batch": 3}
    with pytest.raises(InvalidRequest, match=r"--num-chunks means nothing to a workload of kind 'chat'"):
        own_options("chat", chat, {"num_chunks": 7})


def test_a_kind_that_needs_a_server_says_how_one_is_named() -> None:
    """None is no target; a given one is handed through."""
    with pytest.raises(InvalidRequest, match="--target, such as http://h/chat"):
        LoadOptions(None, seed="0").need_target("http://h/chat")
    assert LoadOptions("u", seed="0").need_target("http://h/chat") == "u"
