"""CuTe's layouts by PyCuTe's names. Algebraic results are checked by what they mean, coordinate by coordinate."""

import pickle

import numpy
import pytest

from cutlet.layouts import *

LAYOUTS = [
    Layout(1, 0),
    Layout(4, 1),
    Layout(4, 2),
    Layout((2, 4), (0, 1)),
    Layout((4, 6), (6, 1)),
    Layout((2, 3), (12, 2)),
    Layout(((2, 2), 3), ((1, 6), 2)),
    Layout((2, (4, 2)), (4, (1, 8))),
    Layout((4, 8), (9, 1)),
]


def indices(layout):
    return [layout(i) for i in range(size(layout))]


def test_a_layout_is_written_as_in_cute_and_as_in_pycute():
    layout = Layout("(4,6):(6,1)")
    assert layout == Layout((4, 6), (6, 1)) and str(layout) == "(4,6):(6,1)"
    assert repr(layout) == 'Layout("(4,6):(6,1)")'
    assert Layout((4, 6)) == Layout((4, 6), (1, 4))
    assert Layout(8) == Layout(8, 1)
    assert Layout("(_4,_6):(_6,_1)") == layout
    assert layout != Layout((4, 6)) and layout != "(4,6):(6,1)"
    assert len({layout, Layout((4, 6), (6, 1))}) == 1
    assert pickle.loads(pickle.dumps(layout)) == layout


def test_parts():
    layout = Layout((2, (4, 3)), (1, (2, 8)))
    assert (layout.shape, layout.stride) == ((2, (4, 3)), (1, (2, 8)))
    assert (layout.size(), layout.cosize(), layout.depth(), layout.rank(), len(layout)) == (24, 24, 2, 2, 2)
    assert layout[1] == layout[-1] == Layout((4, 3), (2, 8))
    assert layout[0:1] == Layout((2,), (1,))
    assert list(layout[1]) == [Layout(4, 2), Layout(3, 8)]
    with pytest.raises(IndexError, match="has 2 modes, and mode 2 was asked for"):
        layout[2]


def test_coordinates_and_slices():
    layout = Layout((4, 6), (6, 1))
    assert layout(2, 3) == layout((2, 3)) == layout(14) == 15
    assert layout(2, None) == Layout((6,), (1,)) == Layout("(6):(1)")
    assert slice_and_offset((2, None), layout) == (Layout((6,), (1,)), 12)
    assert idx2crd(14, (4, 6)) == (2, 3) and crd2idx((2, 3), (4, 6)) == 14
    assert crd2crd((2, 3), ((2, 2), 6)) == ((0, 1), 3)
    assert crd2crd((2, 3), 24, (4, 6)) == crd2crd(14, 24) == 14 and crd2crd(14, (4, 6)) == (2, 3)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_operations_mean(layout):
    assert indices(coalesce(layout)) == indices(layout)
    inverse = right_inverse(layout)
    assert [layout(inverse(i)) for i in range(size(inverse))] == list(range(size(inverse)))
    rest = complement(layout, 48)
    reached = set(indices(layout))
    for i in range(1, size(rest)):
        assert rest(i) not in reached and rest(i - 1) < rest(i)


INJECTIVE = [it for it in LAYOUTS if len(set(indices(it))) == size(it)]


@pytest.mark.parametrize("layout", INJECTIVE, ids=str)
def test_left_inverses(layout):
    inverse = left_inverse(layout)
    assert [inverse(layout(i)) for i in range(size(layout))] == list(range(size(layout)))


@pytest.mark.parametrize("a", LAYOUTS, ids=str)
@pytest.mark.parametrize("b", [Layout(1, 0), Layout(2, 1), Layout((2, 2), (2, 1))], ids=str)
def test_compositions(a, b):
    try:
        composed = a @ b
    except LayoutError:
        return
    assert composed == composition(a, b)
    assert indices(composed) == [a(b(i)) for i in range(size(b))]


def test_divisions_and_products():
    layout, tiler = Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)
    assert str(logical_divide(layout, tiler)) == "((2,2),(2,3)):((4,1),(2,8))"
    assert str(logical_divide(Layout((9, (4, 8)), (59, (13, 1))), (Layout(3, 3), Layout((2, 4), (1, 8))))) == (
        "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"
    )
    assert str(zipped_divide(Layout((8, 6), (1, 8)), (4, 2))) == "((4,2),(2,3)):((1,8),(4,16))"
    assert str(tiled_divide(Layout((8, 6), (1, 8)), (4, 2))) == "((4,2),2,3):((1,8),4,16)"
    assert str(logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))) == "((2,2),(2,3)):((4,1),(2,8))"
    assert str(blocked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))) == "(6,(5,4)):(5,(1,30))"
    parts = Layout(4, 2), Layout(8, 1)
    assert make_layout(*parts) == make_layout(list(parts)) == Layout((4, 8), (2, 1))
    assert prefix_product((3, (4, 5))) == (1, (3, 12))
    assert inner_product((1, 2), (3, 2)) == 7
    assert shape_div((6, 4), 12) == (1, 2)


def test_a_swizzle():
    layout = Layout("Sw<3,0,3> o 0 o (8,8):(8,1)")
    assert layout(1, 0) == 9
    assert composition("Sw<3,0,3>", Layout((8, 8), (8, 1))) == layout


def test_an_operation_without_a_result_says_why():
    with pytest.raises(LayoutError, match="takes 0, 6, 7, 8, 9, 15: no layout does"):
        Layout("(4,6,8):(2,3,5)") @ Layout("6:3")
    with pytest.raises(ValueError, match=r"column 4: layout: 6:\(6,1\): shape and stride need the same parentheses"):
        Layout("(4,6:(6,1)")
    with pytest.raises(TypeError, match="1.5 is a <class 'float'>"):
        Layout(1.5)


def test_a_mistake_is_marked_where_it_is():
    layout = Layout((4, 6), (6, 1))

    def marked(function):
        with pytest.raises(LayoutError) as found:
            function()
        _, text, mark = str(found.value).splitlines()
        return text[mark.index("^") :]

    assert marked(lambda: layout.svg(tiler="(2,other)")) == "other)"
    assert marked(lambda: layout.thread_values("(8,,8)")) == ",8)"
    assert marked(lambda: evaluate("(_4,_6,other)")) == "other)"
    assert marked(lambda: layout @ "other") == "other)"


def test_a_layout_has_its_stride():
    layout = Layout((4, 6), (6, 1))
    assert Layout(layout) == layout and Layout(layout.shape, (1, 4)) == Layout((4, 6))
    with pytest.raises(TypeError, match=r"the shape is the layout \(4,6\):\(6,1\), .* and the stride 8 was given"):
        Layout(layout, 8)


def test_messages_have_pythons_words():
    with pytest.raises(LayoutError, match=r"no function `foo`; `cutlet.layouts.signatures\(\)` lists the functions"):
        call("foo", (4, 6))
    with pytest.raises(LayoutError, match="`thread_values` draws them"):
        Layout((4, 6)).svg(color="thread")
    with pytest.raises(LayoutError, match="`bijective` looks at all coordinates"):
        Layout(1 << 40).bijective()


def test_pictures_and_explanations():
    layout = Layout((4, 6), (6, 1))
    assert layout._repr_svg_().startswith("<svg") and layout._repr_svg_() == layout.svg()
    assert layout.svg(color="row") != layout.svg() != layout.svg(tiler=(2, 3))
    assert "| 23 |" in layout.table() and "tikz" in layout.latex()
    assert Layout("((4,8),2):((2@1,1@0),1@1)").thread_values((8, 8)).startswith("<svg")
    assert "composition" in (layout @ Layout(4, 2)).explain()
    assert "24 coordinates" in layout.explain()
    with pytest.raises(TypeError, match="color and tiler"):
        layout.svg(color="row", tiler=(2, 2))


def test_signatures_name_every_function():
    names = {signature.split("(")[0] for signature, _ in signatures()}
    for name in ("composition", "complement", "zipped_divide", "blocked_product", "compact_col_major"):
        assert name in names


def test_a_tuple_has_few_levels():
    endless = []
    endless.append(endless)
    with pytest.raises(TypeError, match="more than 32 levels"):
        Layout(endless)


def test_integers_of_numpy():
    assert str(Layout((numpy.int64(4), 6), (numpy.int32(6), 1))) == "(4,6):(6,1)"
