//! Notation as it is pasted from C++ and Python, and as the calculator prints it.

use crate::check::{check, check_static};

#[test]
fn cpp_types_are_read() {
    check(&[
        ("Layout<Shape<_2,_3>, Stride<_3,_1>>{}", "(_2,_3):(_3,_1)"),
        (
            "Layout<Shape<_4,Shape<_3,_6>>>{}",
            "(_4,(_3,_6)):(_1,(_4,_12))",
        ),
        ("Layout<Shape<_2,_3>, LayoutRight>{}", "(_2,_3):(_3,_1)"),
        ("cute::Layout<cute::_8>{}", "_8:_1"),
        ("Int<8>{}", "_8"),
        ("cute::C<4>{}", "_4"),
        ("_16{}", "_16"),
        (
            "make_layout(make_shape(Int<2>{},3), make_stride(_3{},Int<1>{}))",
            "(_2,3):(_3,_1)",
        ),
        (
            "make_layout(make_shape(2,3), LayoutRight{})",
            "(2,3):(3,_1)",
        ),
        (
            "make_layout(make_shape(2,3), GenRowMajor{})",
            "(2,3):(3,_1)",
        ),
        ("S<3,4,3>", "Sw<3,4,3>"),
        ("Swizzle<3,4,3>{}", "Sw<3,4,3>"),
        (
            "ComposedLayout<Swizzle<3,4,3>, _0, Layout<Shape<_8,_8>>>{}",
            "Sw<3,4,3> o _0 o (_8,_8):(_1,_8)",
        ),
        (
            "composition(Swizzle<3,3,3>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{})",
            "Sw<3,3,3> o _0 o (_8,_64):(_64,_1)",
        ),
        (
            "Layout<Shape<_8,_4>, Stride<ScaledBasis<_1,0>, ScaledBasis<_2,1>>>{}",
            "(_8,_4):(_1@0,_2@1)",
        ),
        (
            "Layout<Shape<_8,_4>, Stride<E<0>, E<1>>>{}",
            "(_8,_4):(_1@0,_1@1)",
        ),
        ("Layout<_2, E<0,1>>{}", "_2:_1@1@0"),
        ("Tile<Layout<_3,_4>, _8>{}", "<_3:_4,_8:_1>"),
        (
            "zipped_divide(make_layout(make_shape(8,6)), Tile<_4,_2>{})",
            "((_4,_2),(2,3)):((_1,8),(_4,16))",
        ),
        (
            "Layout<Shape<_4,Shape<_3,_6>>>{}(make_coord(_2{}, _))",
            "((_3,_6)):((_4,_12))",
        ),
        (
            "select<1,3>(Layout<Shape<_2,_3,_5,_7>>{})",
            "(_3,_7):(_2,_30)",
        ),
        ("take<1,3>(Layout<Shape<_2,_3,_5,_7>>{})", "(_3,_5):(_2,_6)"),
    ]);
}

/// CuTe prints a swizzle of shared memory in bytes. It swizzles elements here.
#[test]
fn layouts_of_shared_memory_are_read() {
    check(&[
        (
            "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
            "Sw<3,3,3> o _0 o (_8,_64):(_64,_1)",
        ),
        (
            "Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_128):(_128,_1)",
            "Sw<3,4,3> o _0 o (_8,_128):(_128,_1)",
        ),
        (
            "4:1 o smem_ptr[16b](unset) o 4:1",
            "error: column 7: only a swizzle stands before `smem_ptr`",
        ),
        (
            "Sw<3,4,3> o smem_ptr[16b](unset)",
            "error: column 33: expected `o` and a layout, but the expression ends",
        ),
    ]);
}

#[test]
fn declarations_are_read() {
    check(&[
        (
            "Layout a = Layout<Shape<_2,_3,_5,_7>>{};",
            "(_2,_3,_5,_7):(_1,_2,_6,_30)",
        ),
        ("auto const& tile = make_shape(_2{},4); size(tile)", "8"),
        (
            "Layout a   = Layout<Shape<_4,Shape<_3,_6>>>{}; // (4,(3,6)):(1,(4,12)) \n layout<1,0>(a) /* the first */",
            "_3:_4",
        ),
        (
            "using Atom = Layout<Shape<_8,_8>>; Atom{}",
            "(_8,_8):(_1,_8)",
        ),
        ("int M = 8; make_layout(M)", "8:_1"),
        (
            "int M = 8, N = 4;\nconstexpr int K = 2;\nunsigned int L = 3; make_shape(M, N, K, L)",
            "(8,4,2,3)",
        ),
        ("size_t n = 4; n", "4"),
        ("int{2}", "2"),
        (
            "int M = 8, (4,2)",
            "error: column 12: expected a variable and `=`, found `(`",
        ),
        ("make_step(_1{}, X{}, _1{})", "(_1,_,_1)"),
        ("a = (4,2):(1,4)\n(a, a)", "((4,2),(4,2)):((1,4),(1,4))"),
    ]);
}

#[test]
fn python_is_read() {
    check(&[
        ("(16,)", "(16)"),
        ("cute.make_layout((8,4), stride=(4,1))", "(8,4):(4,1)"),
        ("cute.make_layout(shape=(8,4),)", "(8,4):(_1,8)"),
        ("cute.size((2,(3,4)), mode=[1])", "12"),
        ("cute.make_layout((2,(3,4))).layout<1>()", "(3,4):(2,6)"),
        (
            "cute.make_composed_layout(cute.make_swizzle(3,4,3), 0, cute.make_layout((8,8)))",
            "Sw<3,4,3> o 0 o (8,8):(_1,8)",
        ),
        (
            "a = cute.make_layout((8,4)) # a comment\na(None, 1)",
            "(8):(_1)",
        ),
        ("Layout((4,2),(1,4)).shape", "(4,2)"),
        ("l = (4,2):(1,4); l[0]", "4:1"),
        ("l = ((2,3),4):((1,2),6); l[0][1]", "3:2"),
        ("l = ((2,3),4):((1,2),6); l[0, 1]", "3:2"),
        ("shape = (4,(2,3)); shape[1]", "(2,3)"),
        ("(Sw<3,0,3> o 0 o (8,4):(4,1))[0]", "Sw<3,0,3> o 0 o 8:4"),
        (
            "(4,2):(1,4)[2]",
            "error: column 13: (4,2):(1,4) has no mode 2: its rank is 2",
        ),
        ("cute.slice_((4,2):(1,4), (None, 1))", "(4):(1)"),
        ("cute.slice_((128,64,32), (None, 0, None))", "(128,32)"),
        ("dice((1,None,1), (128,64,32))", "(128,32)"),
        ("cute.dice((128,64,32), (1,None,1))", "(128,32)"),
        ("cute.append((4,4), 2, 4)", "(4,4,2,2)"),
    ]);
    check_static(&[("cute.make_layout((8,4), stride=(4,1))", "(_8,_4):(_4,_1)")]);
}

/// A number in angle brackets is a rank, and a value in parentheses is a mode.
#[test]
fn modes_are_appended_up_to_a_rank() {
    check(&[
        ("append<3>((8,4):(4,1))", "(8,4,_1):(4,1,_0)"),
        ("prepend<3>((8,4):(4,1))", "(_1,8,4):(_0,4,1)"),
        ("append<4>((8,4):(4,1), 2:32)", "(8,4,2,2):(4,1,32,32)"),
        ("append<2>((8,4):(4,1))", "(8,4):(4,1)"),
        ("append<3>(8:1)", "(8,_1,_1):(1,_0,_0)"),
        ("prepend<4>((8,4), 1)", "(1,1,8,4)"),
        (
            "append<3>(Sw<3,0,3> o 0 o (8,8):(8,1))",
            "Sw<3,0,3> o 0 o (8,8,_1):(8,1,_0)",
        ),
        ("((8,4):(4,1)).append<3>()", "(8,4,_1):(4,1,_0)"),
        ("append((8,4):(4,1), 3)", "(8,4,3):(4,1,_1)"),
        ("prepend((8,4):(4,1), 2:32)", "(2,8,4):(32,4,1)"),
        (
            "append<1>((8,4):(4,1))",
            "error: column 11: append<N>: `(8,4):(4,1)` has rank 2 already: give a rank of at least that",
        ),
    ]);
}

/// Python has no other integers than these, and C++ takes an order by its types.
#[test]
fn orders_are_taken_by_value() {
    check(&[
        ("make_ordered_layout((8,64),(1,0))", "(8,64):(64,_1)"),
        (
            "cute.make_ordered_layout((8,64),order=(1,0))",
            "(8,64):(64,_1)",
        ),
        (
            "cute.make_ordered_layout((32,16,8), order=(2,0,1))",
            "(32,16,8):(128,_1,16)",
        ),
        ("compact_order((8,64),(1,0))", "(64,_1)"),
        ("compact_order((2,3,4,5), (_2,67,42,_50))", "(_1,10,30,2)"),
        (
            "tile_to_shape((2,4):(4,1),(6,12),(1,0)) == tile_to_shape((2,4):(4,1),(6,12),(_1,_0))",
            "the same layout",
        ),
    ]);
}

#[test]
fn both_circles_compose() {
    check(&[
        (
            "(_10,_2):(_16,_4) ∘ (_5,_4):(_1,_5)",
            "(_5,(_2,_2)):(_16,(_80,_4))",
        ),
        ("Sw<1,0,1> ∘ 0 ∘ (2,2):(2,1)", "Sw<1,0,1> o 0 o (2,2):(2,1)"),
        ("_20:_2 o _10:_2 o _5:_2", "_5:_8"),
    ]);
}

#[test]
fn variables_hold_values() {
    check(&[
        (
            "a = (10,2):(16,4); b = (5,4):(1,5); a o b",
            "((5,1),(2,2)):((16,4),(80,4))",
        ),
        (
            "t = <_3:_3,_8:_1>; composition((_9,_8):(_8,_1), t)",
            "(_3,_8):(_24,_1)",
        ),
        ("size = 4; size", "4"),
        ("size = 4; cute::size((size, size))", "16"),
        ("size = 4; cute.size((size, size))", "16"),
        // A variable hides the function of its name, as in C++ and in Python.
        ("layout=(4,2):(1,8); layout(3)", "3"),
        ("size=(4,2):(1,8); size(3)", "3"),
        ("size=(4,2):(1,8); size(0,1)", "8"),
        ("layout=(4,2):(1,8); layout<1>(layout)", "2:8"),
        ("layout=(4,2):(1,8); layout.shape()", "(4,2)"),
        (
            "o = 4",
            "error: column 1: `o` is the sign of composition, so it cannot be a variable",
        ),
        (
            "a = 4 b = 5",
            "error: column 7: expected `o`, `(`, `:` or the end, found `b`",
        ),
        (
            "b",
            "error: column 1: there is no variable or function `b`; --functions lists the functions",
        ),
    ]);
}

#[test]
fn equality_is_of_layouts_and_of_functions() {
    check(&[
        ("(2,3):(1,2) == (_2,_3):(_1,_2)", "the same layout"),
        (
            "(2,3):(1,2) == 6:1",
            "the same function, but another layout",
        ),
        ("(2,3):(1,2) == (2,3):(3,1)", "different: 1 and 3 at 1"),
        (
            "6:1 == 8:1",
            "different: the same values, but the sizes 6 and 8",
        ),
        (
            "Sw<1,0,1> o 0 o 2:2 == 2:3",
            "the same function, but another layout",
        ),
        ("Sw<1,0,1> o 0 o 4:1 == 4:1", "different: 3 and 2 at 2"),
        ("(4,2) == (_4,2)", "true"),
        ("(4,2) == 8", "false"),
        ("Sw<1,0,1> == Sw<2,0,2>", "false"),
        ("<3:1,_> == <3:2,_>", "false"),
        (
            "2000000:1 == (2000000,1):(1,7)",
            "the same function, but another layout",
        ),
        (
            "2000000:1 == 2000000:2",
            "error: column 14: `==` compares values at all coordinates: 2000000 are more than 1048576",
        ),
    ]);
}

/// (3,6,2,8):(w,x,y,z) / 72 => (1,1,1,4):(72*w,24*x,4*y,2*z)
#[test]
fn strides_may_be_symbols() {
    check(&[
        ("(3,6,2,8):(w,x,y,z) / 72", "(1,1,1,4):(72*w,24*x,4*y,2*z)"),
        ("(4,2):(1,ldm)", "(4,2):(1,ldm)"),
        ("(4,2):(_4*w,-w)", "(4,2):(_4*w,-w)"),
        ("(4,2):(4*w,-2*x)", "(4,2):(4*w,-2*x)"),
        ("((4,2):(1,ldm))(2,1)", "2 + ldm"),
        ("((4,2):(w,x))(0)", "0"),
        ("((4,2):(w,x))(_,1)", "(4):(w)"),
        (
            "zipped_divide((_8,_6):(_1,ldm), <_4,_2>)",
            "((_4,_2),(_2,_3)):((_1,ldm),(_4,_2*ldm))",
        ),
        ("make_layout((4,2), make_stride(ldm,_1))", "(4,2):(ldm,_1)"),
        ("cosize((4,2):(w,x))", "3*w + x + 1"),
        (
            "w",
            "error: column 1: there is no variable or function `w`; --functions lists the functions",
        ),
        (
            "(4,2):(f(1),1)",
            "error: column 8: there is no function `f`; --functions lists the functions",
        ),
    ]);
}

/// Extents may be symbols where the result is one expression of them for all large values.
#[test]
fn extents_may_be_symbols() {
    check(&[
        ("(M,N):(N,_1)", "(M,N):(N,_1)"),
        ("(M,N):(1,M)", "(M,N):(1,M)"),
        ("M:1", "M:1"),
        (
            "tile_to_shape(Sw<3,4,3> o 0 o (8,64):(64,1), (8,N))",
            "error: column 46: tile_to_shape: (8,64) to (8,N): the block's extents must divide the shape's",
        ),
        (
            "tile_to_shape((_8,_8):(_8,_1), (_8,N))",
            "error: column 32: tile_to_shape: (8,8) to (8,N): the block's extents must divide the shape's",
        ),
        ("idx2crd(17, (M,4))", "(17,0)"),
        ("crd2idx((1,2), (M,4))", "2*M + 1"),
        ("compatible((M,6), (M,(2,3)))", "true"),
        ("4*M:_1", "4*M:_1"),
        ("2*4:1", "8:1"),
        (
            "(4,2):(1,4) * 2",
            "error: column 7: an integer is needed, but `(1,4)` is a tuple of integers",
        ),
        ("make_layout((M,K), (K,1))", "(M,K):(K,1)"),
        ("make_layout((M,_8), LayoutRight)", "(M,_8):(_8,_1)"),
        (
            "make_layout(make_shape(M, _4), make_stride(_1, lda))",
            "(M,_4):(_1,lda)",
        ),
        ("cute.make_layout((M,N), stride=(N,1))", "(M,N):(N,1)"),
        ("size((M,(2,N)))", "2*M*N"),
        ("cosize((M,N):(N,1))", "M*N"),
        ("size<1>((M,N):(N,1))", "N"),
        ("coalesce((M,N):(1,M))", "(M,N):(1,M)"),
        ("((M,N):(N,1))(2,3)", "2*N + 3"),
        ("((M,N):(N,1))(_,3)", "(M):(N)"),
        ("layout<0>((M,N):(N,1))", "M:N"),
        ("get_flat_coord((M,N):(N,1), 3)", "(0,3)"),
        ("max_common_vector((M,4):(1,M), (M,4):(1,M))", "4*M"),
        ("append((M,N):(N,1), L:w)", "(M,N,L):(N,1,w)"),
        (
            "zipped_divide((M,K):(K,_1), <_128,_64>)",
            "((_128,_64),(ceil_div(M,128),ceil_div(K,64))):((K,_1),(128*K,_64))",
        ),
        (
            "(128,ceil_div(M,128)):(1,128)",
            "(128,ceil_div(M,128)):(1,128)",
        ),
        (
            "logical_product((M,N):(N,1), 4:1)",
            "((M,N),(1,1,4)):((N,1),(1,N,M*N))",
        ),
        (
            "blocked_product((2,2):(1,2), (M,N):(1,M))",
            "((2,1,1,M),(2,1,1,N)):((1,1,2,4),(2,M,2*M,4*M))",
        ),
        ("(8,M):(M,1) o (4,M):(1,8)", "((4,1),(1,M)):((M,1),(8*M,1))"),
        ("a = (M,N):(N,1); layout<1>(a)", "N:1"),
        ("(M,N):(N,1) == (M,N):(N,1)", "the same layout"),
        ("(4,2):(N,1) o 2:1", "(2,1):(N,1)"),
        ("composition((M,N):(N,1), 4:3)", "(4,1):(3*N,1)"),
        ("size(logical_divide((M,4):(1,M), 8:1))", "8*ceil_div(M,2)"),
        (
            "gcd(size((M,4)), 8)",
            "error: the result is no expression of the symbols: with M = 285463 it is 4, and with M = 201600 it is 8",
        ),
        (
            "upcast((M,4):(1,M), 2)",
            "error: column 21: upcast: (M,4):(1,M) by 2: a mode is not a whole number of the new elements: choose a factor that divides it",
        ),
        ("complement((M,4):(1,M), 100)", "(1,1,1):(_1,M,4*M)"),
        ("complement((4,M):(1,4), (M,8))", "(1,1,2):(_1,4,4*M)"),
        ("right_inverse((M,N):(N,1))", "(N,M):(M,_1)"),
        (
            "(4,M):(M,1) o (2,M):(4,8)",
            "((1,2),(1,M)):((4*M,1),(8*M,2))",
        ),
        (
            "raked_product((2,2):(1,2), (M,N):(1,M))",
            "((1,1,M,2),(1,1,N,2)):((1,2,4,1),(M,2*M,4*M,2))",
        ),
        (
            "flat_divide((M,K):(K,_1), <_128,_64>)",
            "(_128,_64,ceil_div(M,128),ceil_div(K,64)):(K,_1,128*K,_64)",
        ),
        (
            "zipped_divide(make_identity_layout((M,N)), <_4,_8>)",
            "((_4,_8),(ceil_div(M,4),ceil_div(N,8))):((_1@0,_1@1),(_4@0,_8@1))",
        ),
        (
            "tile_to_shape((_8,_8):(_8,_1), (M:1))",
            "error: column 32: tile_to_shape: (8,8) to M: the block must have at most as many modes as the shape, and the order exactly as many",
        ),
        (
            "(M,N):(N,1) / 4",
            "error: column 15: layout_div: (M,N):(N,1) / 4: an extent and the divisor left for it do not divide each other: choose a divisor that does",
        ),
        (
            "Sw<3,4,3> o 0 o (M,64):(64,1)",
            "Sw<3,4,3> o 0 o (M,64):(64,1)",
        ),
        ("(A,B,C):(1,A,w)", "(A,B,C):(1,A,w)"),
        (
            "size((A,B,C,D))",
            "error: column 6: product: (A,B,C,D) has no product that fits 64 bits",
        ),
        (
            "size(zipped_divide((M,K):(K,_1), <_128,_64>))",
            "error: the result is no expression of the symbols: with M = 285463, K = 269473 it is 76961718272, and with M = 201600, K = 282240 it is 56899584000",
        ),
        (
            "(M,N) o 4:1",
            "error: column 2: there is no variable or function `M`; --functions lists the functions",
        ),
    ]);
}

/// Operations that do more with a stride than to multiply it are right for all numbers, or refused.
#[test]
fn symbolic_strides_are_numbers_where_operations_need_them() {
    check(&[
        ("downcast((4,2):(_1,ldm), 2)", "(8,2):(_1,2*ldm)"),
        (
            "upcast((4,2):(_1,ldm), 2)",
            "error: column 24: upcast: (4,2):(1,ldm) by 2: a stride and the factor do not divide each other: choose a factor that does",
        ),
        ("recast_layout((4,2):(_1,ldm), 16, 8)", "(8,2):(_1,2*ldm)"),
        ("a = (4,8):(ldm,1); cosize(a)", "3*ldm + 8"),
        ("cosize((M,N):(lda,1))", "lda*M - lda + N"),
        ("((M,N,L):(N,1,w))(1,2,3)", "N + 2 + 3*w"),
        ("crd2idx((1,2,3), (M,N,L):(1,M,9))", "2*M + 28"),
        (
            "complement(4:w, 24)",
            "error: column 12: complement: 4:w in 24: symbolic strides have no order: give plain ones",
        ),
    ]);
}

#[test]
fn static_reading_makes_integers_static() {
    check_static(&[
        ("(10,2):(16,4) o (5,4):(1,5)", "(_5,(_2,_2)):(_16,(_80,_4))"),
        ("is_static((4,2))", "true"),
    ]);
}

/// What is printed reads back as it was.
#[test]
fn composed_layouts_read_back() {
    let printed = [
        "(8,4):(1,8) o (1,0) o (2,2):(1@0,1@1)",
        "Sw<3,0,3> o 0 o (8,8):(8,1) o 9 o (2,2):(1,8)",
        "gather([7,250,0,13]) o 0 o (2,2):(1,2)",
        "(4):(2) o _0 o (_2,2):(_1,_2)",
        "(8,8):(1,8) o 5 o 4:2",
    ];
    check(&printed.map(|text| (text, text)));
    check(&[
        (
            "(8,4):(1,8) o (1,0) o (2,2):(1@0,1@1) == (2,2):(1,8)",
            "different: 1 and 0 at 0",
        ),
        ("((8,4):(1,8) o (1,0) o (2,2):(1@0,1@1))(1,1)", "10"),
        ("(gather([7,250,0,13]) o 0 o (2,2):(1,2))(1,1)", "13"),
        (
            "(gather([7,250]) o 0 o 4:1)(2)",
            "error: column 29: gather: the table has 2 entries, and none at 2: use a smaller layout or a longer table",
        ),
        (
            "gather([7,x])",
            "error: column 11: expected an index, found `x`",
        ),
    ]);
}

#[test]
fn composed_layouts_take_what_layouts_take() {
    check(&[
        (
            "layout<0>(Sw<3,0,3> o 0 o (8,4):(4,1))",
            "Sw<3,0,3> o 0 o 8:4",
        ),
        (
            "mode(Sw<3,0,3> o 0 o (8,4):(4,1), 1)",
            "Sw<3,0,3> o 0 o 4:1",
        ),
        ("mode((8,4):(4,1), 1)", "4:1"),
        (
            "select<1,0>(Sw<3,0,3> o 0 o (8,4):(4,1))",
            "Sw<3,0,3> o 0 o (4,8):(1,4)",
        ),
        (
            "take<0,1>(Sw<3,0,3> o 0 o (8,4):(4,1))",
            "Sw<3,0,3> o 0 o (8):(4)",
        ),
        ("cosize(Sw<3,0,3> o 0 o (8,4):(4,1))", "32"),
        ("size<0>(Sw<3,0,3> o 0 o (8,4):(4,1))", "8"),
        ("rank(Sw<3,0,3> o 0 o (8,4):(4,1))", "_2"),
        (
            "flatten(Sw<3,0,3> o 0 o ((2,4),4):((4,8),1))",
            "Sw<3,0,3> o 0 o (2,4,4):(4,8,1)",
        ),
        (
            "group(Sw<3,0,3> o 0 o (2,4,4):(4,8,1), 0, 2)",
            "Sw<3,0,3> o 0 o ((2,4),4):((4,8),1)",
        ),
        (
            "coalesce(Sw<3,0,3> o 0 o (_2,_4):(_1,_2))",
            "Sw<3,0,3> o 0 o _8:_1",
        ),
        (
            "append(Sw<3,0,3> o 0 o 8:1, 2:64)",
            "Sw<3,0,3> o 0 o (8,2):(1,64)",
        ),
        (
            "upcast(Sw<3,3,3> o 0 o (_8,_64):(_64,_1), 2)",
            "Sw<3,2,3> o 0 o (_8,_32):(_32,_1)",
        ),
        (
            "downcast(Sw<3,3,3> o 0 o (_8,_64):(_64,_1), 2)",
            "Sw<3,4,3> o 0 o (_8,_128):(_128,_1)",
        ),
        (
            "right_inverse(Sw<3,0,3> o 0 o (_8,_8):(_8,_1))",
            "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)",
        ),
        ("Sw<1,0,3> o Sw<2,1,3>", "Sw<3,0,3>"),
        ("Sw<1,0,3> o (Sw<2,1,3> o 0 o 64:1)", "Sw<3,0,3> o 0 o 64:1"),
        (
            "(Sw<3,0,3> o (8,8):(8,1)) o ((_64:_1) o 9 o (2,2):(1,8))",
            "Sw<3,0,3> o _0 o (8,8):(8,1) o 9 o (2,2):(1,8)",
        ),
        (
            "upcast(4:1 o 0 o 2:1, 2)",
            "error: column 8: upcast: the inner of `4:1 o 0 o 2:1` is a layout, but only a swizzle can be changed with its layout",
        ),
        ("coordinates_of(Sw<1,0,1> o 0 o (2,2):(1,2), 3)", "2 (0,1)"),
        (
            "logical_product(Sw<2,0,2> o 0 o (_2,_2):(_1,_2), _4:_1)",
            "Sw<2,0,2> o 0 o ((_2,_2),_4):((_1,_2),_4)",
        ),
    ]);
}

#[test]
fn tilers_take_get_and_size() {
    check(&[
        ("get<1>(<3:4,8:2>)", "8:2"),
        ("layout<0>(<3:4,8:2>)", "3:4"),
        ("rank(<3:4,8:2,_>)", "_3"),
        ("size(<3:4,8:2>)", "24"),
        ("get<1>(<3:4,_>)", "_"),
    ]);
}

#[test]
fn traits_of_integers() {
    check(&[
        ("is_integral(_4)", "true"),
        ("is_integral((4,2))", "false"),
        ("is_std_integral(_4)", "false"),
        ("is_std_integral(4)", "true"),
        ("is_constant<4>(_4)", "true"),
        ("is_constant<4>(4)", "false"),
        ("is_static((_4,_2))", "true"),
        ("is_static((_4,2))", "false"),
    ]);
}
