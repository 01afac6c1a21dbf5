"""A method is replaced and put back; what a class or an input changes goes to the stock method."""

from __future__ import annotations

from typing import Any

from vision_bench.preprocess import stock
from vision_bench.preprocess.plugins import methods


class Base:
    """A class whose method others inherit."""

    def prepare(self) -> str:
        """Stock."""
        return "stock prepare"


class Processor(Base):
    """A class with a method of its own."""

    def run(self) -> str:
        """Stock."""
        return "stock run"


def ours(original: methods.Method) -> methods.Method:
    """Says that it was here, and calls what it replaced."""

    def method(self: Any) -> str:
        return f"ours, {original(self)}"

    return method


def test_a_method_is_replaced_in_objects_made_before_and_put_back() -> None:
    """Its own method and an inherited one; the class above is not touched."""
    made, of_base = Processor(), Base()
    own = Processor.run
    methods.replace(Processor, "run", ours)
    methods.replace(Processor, "prepare", ours)
    assert (made.run(), made.prepare()) == ("ours, stock run", "ours, stock prepare")
    assert of_base.prepare() == "stock prepare"
    assert Processor.run.__doc__ == "Stock."
    methods.restore(Processor)
    assert (made.run(), made.prepare()) == ("stock run", "stock prepare")
    assert Processor.run is own
    assert "prepare" not in vars(Processor)
    methods.restore(Processor)
    assert made.run() == "stock run"


def test_what_is_compared_with_is_the_class_as_shipped() -> None:
    """A comparison made while ours is switched on still calls stock."""
    methods.replace(Processor, "run", ours)
    try:
        shipped = stock.as_shipped(Processor)
        assert shipped().run() == "stock run"
        assert Processor().run() == "ours, stock run"
        assert shipped.__name__ == "Processor"
    finally:
        methods.restore(Processor)
    assert stock.as_shipped(Processor) is Processor


class Edges:
    """How transformers hands over a size."""

    def __init__(self, shortest: int | None, longest: int | None) -> None:
        self.shortest_edge, self.longest_edge = shortest, longest


def test_settings_of_a_call_are_read_as_a_checkpoints_file() -> None:
    """The filter by Pillow's number or torchvision's word; the size by its edges; what is not there is None."""

    class Word:
        value = "bicubic"

    settings = {"size": Edges(784, 9999), "resample": Word(), "patch_size": 14, "do_resize": True}
    found = methods._config(settings)
    assert found["resample"] == 3
    assert found["size"] == {"shortest_edge": 784, "longest_edge": 9999}
    assert found["patch_size"] == 14
    assert found["image_mean"] is None
    assert methods._config({"resample": 3})["resample"] == 3
    assert methods._config({"resample": 2})["resample"] == "2"
    assert methods._config({})["size"] == {"shortest_edge": None, "longest_edge": None}
