"""The algebra of CuTe's layouts, by the names that PyCuTe gives it.

Arguments are layouts, integers and tuples of them, as PyCuTe takes them: ``None`` in a coordinate keeps a mode, a tuple
with layouts in it is a tiler, and a shape stands for its column-major layout. A text in CuTe's notation is taken as it
is: ``composition("Sw<3,4,3>", Layout((8, 64), (64, 1)))``. An operation that has no result raises
:class:`cutlet.LayoutError`, which says why.

>>> from cutlet.layouts import *
>>> print(logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)))
((2,2),(2,3)):((4,1),(2,8))

"""

from __future__ import annotations

TYPE_CHECKING = False  # As in `typing`, whose import takes longer than all else here.
if TYPE_CHECKING:
    from typing import Any, Tuple, Union

from ._cutlet import Layout, LayoutError, call, evaluate, explain, signatures

__all__ = [
    "Layout",
    "LayoutError",
    "blocked_product",
    "call",
    "coalesce",
    "complement",
    "composition",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "downcast",
    "evaluate",
    "explain",
    "filter",
    "flat_divide",
    "flat_product",
    "flatten",
    "group",
    "idx2crd",
    "inner_product",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_layout",
    "max_common_layout",
    "prefix_product",
    "print_layout",
    "product",
    "raked_product",
    "rank",
    "recast_layout",
    "right_inverse",
    "select",
    "shape_div",
    "signatures",
    "size",
    "slice_and_offset",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "upcast",
    "zipped_divide",
    "zipped_product",
]


def make_layout(*layouts: Any) -> Layout:
    """The layout whose modes are these layouts. One list or tuple of layouts is taken for its parts."""
    if len(layouts) == 1 and isinstance(layouts[0], (list, tuple)):
        layouts = tuple(layouts[0])
    return call("make_layout", *layouts)


def size(a: Any) -> int:
    """The number of coordinates of a layout or a shape."""
    return call("size", a)


def cosize(layout: Layout) -> int:
    """One more than the largest index."""
    return call("cosize", layout)


def rank(a: Any) -> int:
    """The number of modes."""
    return call("rank", a)


def depth(a: Any) -> int:
    """How deep modes are nested."""
    return call("depth", a)


def flatten(a: Any) -> Any:
    """The modes of modes side by side."""
    return call("flatten", a)


def select(layout: Layout, *modes: int) -> Layout:
    """The modes of these numbers, in this order."""
    return call("select", layout, *modes)


def group(layout: Layout, begin: int, end: int) -> Layout:
    """The modes from ``begin`` up to ``end`` as one."""
    return call("group", layout, begin, end)


def coalesce(layout: Layout, profile: Any = None) -> Layout:
    """The same function with as few modes as possible; with a profile, in each of its modes."""
    return call("coalesce", layout) if profile is None else call("coalesce", layout, profile)


def filter(layout: Layout, profile: Any = None) -> Layout:
    """The layout without modes of stride 0 and of size 1, coalesced; with a profile, in each of its modes."""
    return call("filter", layout) if profile is None else call("filter", layout, profile)


def composition(a: Any, b: Any) -> Layout:
    """``c -> a(b(c))``, also written ``a @ b``. A tuple ``b`` is composed mode by mode."""
    return call("composition", a, b)


def complement(layout: Any, max_idx: Any = 1) -> Layout:
    """The layout that reaches what ``layout`` does not, up to ``max_idx``."""
    return call("complement", _layout(layout), max_idx)


def right_inverse(layout: Any) -> Layout:
    """The largest layout ``r`` with ``layout(r(i)) == i``."""
    return call("right_inverse", _layout(layout))


def left_inverse(layout: Any) -> Layout:
    """A layout ``l`` with ``l(layout(i)) == i``."""
    return call("left_inverse", _layout(layout))


def max_common_layout(a: Layout, b: Layout) -> Layout:
    """The largest layout by which ``a`` and ``b`` reach the same indices in the same order."""
    return call("max_common_layout", a, b)


def logical_divide(layout: Any, tiler: Any) -> Layout:
    """``((tile, rest), …)`` of each mode that the tiler divides."""
    return call("logical_divide", _layout(layout), tiler)


def zipped_divide(layout: Any, tiler: Any) -> Layout:
    """``((tiles), (rests))``."""
    return call("zipped_divide", _layout(layout), tiler)


def tiled_divide(layout: Any, tiler: Any) -> Layout:
    """``((tiles), rest, …)``."""
    return call("tiled_divide", _layout(layout), tiler)


def flat_divide(layout: Any, tiler: Any) -> Layout:
    """``(tile, …, rest, …)``."""
    return call("flat_divide", _layout(layout), tiler)


def logical_product(block: Any, tiler: Any) -> Layout:
    """``(block, repetitions)``: the block, repeated as the tiler says."""
    return call("logical_product", _layout(block), tiler)


def zipped_product(block: Any, tiler: Any) -> Layout:
    """``((blocks), (repetitions))``."""
    return call("zipped_product", _layout(block), tiler)


def tiled_product(block: Any, tiler: Any) -> Layout:
    """``((blocks), repetition, …)``."""
    return call("tiled_product", _layout(block), tiler)


def flat_product(block: Any, tiler: Any) -> Layout:
    """``(block, …, repetition, …)``."""
    return call("flat_product", _layout(block), tiler)


def blocked_product(block: Any, tiler: Any) -> Layout:
    """The block, repeated mode by mode: blocks lie side by side."""
    return call("blocked_product", _layout(block), _layout(tiler))


def raked_product(block: Any, tiler: Any) -> Layout:
    """The block, repeated mode by mode: elements of blocks alternate."""
    return call("raked_product", _layout(block), _layout(tiler))


def tile_to_shape(layout: Layout, shape: Any, order: Any = None) -> Layout:
    """The layout, repeated until it has this shape."""
    return call("tile_to_shape", layout, shape) if order is None else call("tile_to_shape", layout, shape, order)


def upcast(layout: Layout, n: int) -> Layout:
    """The layout of elements that are ``n`` times as wide."""
    return call("upcast", layout, n)


def downcast(layout: Layout, n: int) -> Layout:
    """The layout of elements of which ``n`` are as wide."""
    return call("downcast", layout, n)


def recast_layout(layout: Layout, old_bits: int, new_bits: int) -> Layout:
    """The layout of elements of another width."""
    return call("recast_layout", layout, old_bits, new_bits)


def slice_and_offset(coordinate: Any, layout: Layout) -> Tuple[Layout, int]:
    """The part of a layout whose modes are ``None`` in a coordinate, and the index at which it begins."""
    return call("slice_and_offset", coordinate, layout)


def product(a: Any) -> int:
    """The product of all integers of a tuple."""
    return call("product", a)


def inner_product(a: Any, b: Any) -> int:
    """The sum of the products of the integers of two tuples."""
    return call("inner_product", a, b)


def prefix_product(shape: Any, init: int = 1) -> Any:
    """The products of all extents to the left of each, times ``init``: the strides of a column-major layout."""
    if not isinstance(shape, tuple):
        return init
    products = []
    for mode in shape:
        products.append(prefix_product(mode, init))
        init *= product(mode)
    return tuple(products)


def shape_div(a: Any, b: Any) -> Any:
    """What is left of a shape when ``b`` elements are taken from its left."""
    return call("shape_div", a, b)


def crd2idx(coordinate: Any, shape: Any, stride: Any = None) -> int:
    """The index of a coordinate."""
    return call("crd2idx", coordinate, shape) if stride is None else call("crd2idx", coordinate, shape, stride)


def idx2crd(index: int, shape: Any, stride: Any = None) -> Any:
    """The coordinate of an index."""
    return call("idx2crd", index, shape) if stride is None else call("idx2crd", index, shape, stride)


def crd2crd(coordinate: Any, dst_shape: Any, src_shape: Any = None) -> Any:
    """The coordinate in ``dst_shape`` of a coordinate, mode by mode. One of several modes needs its ``src_shape`` to
    become an index.
    """
    if isinstance(coordinate, tuple) and isinstance(dst_shape, tuple):
        return tuple(crd2crd(mode, shape) for mode, shape in zip(coordinate, dst_shape))
    if isinstance(coordinate, tuple):
        return crd2idx(coordinate, src_shape)
    return idx2crd(coordinate, dst_shape)


def print_layout(layout: Layout) -> None:
    """Prints the table that CuTe's ``print_layout`` prints."""
    print(layout.table(), end="")


def _layout(a: Any) -> Union[Layout, str]:
    """PyCuTe takes an integer for the layout of so many neighbours."""
    return a if isinstance(a, (Layout, str)) else Layout(a)
