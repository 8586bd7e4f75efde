//! Macros that read CuTe's notation: `layout!((4,(2,3)):(8,(1,4)))`.

/// An int tuple in CuTe's notation, computed by the compiler.
///
/// Numbers are static: `4` and `_4` mean the same. A constant is written in braces. A run-time
/// value is written after `dyn`, in parentheses if it is more than a name; the tuple is then
/// computed at run time. `_` is the underscore of coordinates, and `1@0` is a stride in a basis
/// direction.
///
/// ```
/// use cutlet_layout_core::shape;
///
/// const N: i64 = 16;
/// let m = 3;
/// assert_eq!(shape!((4, (2, {N}))).to_string(), "(_4,(_2,_16))");
/// assert_eq!(shape!((dyn m, dyn (m + 1), 8)).to_string(), "(3,4,_8)");
/// assert_eq!(shape!((_, 1)).to_string(), "(_,_1)");
/// ```
#[macro_export]
macro_rules! shape {
    ($($t:tt)+) => {
        $crate::__where_known!([$crate::__int_tuple!(@one $($t)+)] $($t)+)
    };
}

/// A layout in CuTe's notation, `shape:stride`, computed by the compiler. Without a stride it is
/// column-major. Integers are written as in [`shape!`].
///
/// ```
/// use cutlet_layout_core::{Layout, layout};
///
/// const A: Layout = layout!((4, (2, 3)):(8, (1, 4)));
/// assert_eq!(A.to_string(), "(_4,(_2,_3)):(_8,(_1,_4))");
/// let ldm = 100;
/// assert_eq!(layout!((128, 64):(dyn ldm, 1)).to_string(), "(_128,_64):(100,_1)");
/// assert_eq!(layout!((2, 4)).to_string(), "(_2,_4):(_1,_2)");
/// ```
///
/// # Panics
/// If shape and stride are not congruent, or an extent is below 1. Without `dyn` this is a compile
/// error.
#[macro_export]
macro_rules! layout {
    ($($t:tt)+) => {
        $crate::__where_known!([$crate::__layout!([] $($t)+)] $($t)+)
    };
}

/// A tiler in CuTe's notation, computed by the compiler: a layout `4:2`, a tuple
/// `<3:4, (2,4):(1,8), _>`, or a shape `(4, 8)`, which stands for `<4:1, 8:1>`. Integers are static.
///
/// ```
/// use cutlet_layout_core::tile;
///
/// assert_eq!(tile!(<3:4, 8:2>).to_string(), "<_3:_4,_8:_2>");
/// assert_eq!(tile!((4, 8)).to_string(), "<_4:_1,_8:_1>");
/// assert_eq!(tile!(4).to_string(), "_4:_1");
/// ```
#[macro_export]
macro_rules! tile {
    ($($t:tt)+) => { const { $crate::Tiler::of_notation(stringify!($($t)+)) } };
}

/// Wraps an expression in `const` unless its tokens hold a `dyn`.
#[doc(hidden)]
#[macro_export]
macro_rules! __where_known {
    ([$e:expr] dyn $($rest:tt)*) => { $e };
    ([$e:expr] ($($inner:tt)*) $($rest:tt)*) => { $crate::__where_known!([$e] $($inner)* $($rest)*) };
    ([$e:expr] $a:tt , $($rest:tt)*) => { $crate::__where_known!([$e] $($rest)*) };
    ([$e:expr] $a:tt $($rest:tt)*) => { $crate::__where_known!([$e] $($rest)*) };
    ([$e:expr]) => { const { $e } };
}

/// Splits `shape:stride` at the colon.
#[doc(hidden)]
#[macro_export]
macro_rules! __layout {
    ([$($s:tt)+] : $($d:tt)+) => {
        $crate::Layout::from_shape_stride(
            &$crate::__int_tuple!(@one $($s)+),
            &$crate::__int_tuple!(@one $($d)+),
        )
    };
    ([$($s:tt)*] $t:tt $($rest:tt)*) => { $crate::__layout!([$($s)* $t] $($rest)*) };
    ([$($s:tt)+]) => { $crate::Layout::col_major(&$crate::__int_tuple!(@one $($s)+)) };
}

/// Builds the int tuple of some tokens.
#[doc(hidden)]
#[macro_export]
macro_rules! __int_tuple {
    (@one ($($inner:tt)*)) => { $crate::__int_tuple!(@list [] $($inner)*) };
    (@one _) => { $crate::IntTuple::UNDERSCORE };
    (@one $($leaf:tt)+) => { $crate::IntTuple::int($crate::__int!($($leaf)+)) };

    (@list [$($mode:expr,)*]) => { $crate::IntTuple::tuple(&[$($mode,)*]) };
    (@list [$($mode:expr,)*] $a:tt $(, $($rest:tt)*)?) => {
        $crate::__int_tuple!(@list [$($mode,)* $crate::__int_tuple!(@one $a),] $($($rest)*)?)
    };
    (@list [$($mode:expr,)*] $a:tt $b:tt $(, $($rest:tt)*)?) => {
        $crate::__int_tuple!(@list [$($mode,)* $crate::__int_tuple!(@one $a $b),] $($($rest)*)?)
    };
    (@list [$($mode:expr,)*] $a:tt $b:tt $c:tt $(, $($rest:tt)*)?) => {
        $crate::__int_tuple!(@list [$($mode,)* $crate::__int_tuple!(@one $a $b $c),] $($($rest)*)?)
    };
    (@list [$($mode:expr,)*] $a:tt $b:tt $c:tt $d:tt $(, $($rest:tt)*)?) => {
        $crate::__int_tuple!(@list [$($mode,)* $crate::__int_tuple!(@one $a $b $c $d),] $($($rest)*)?)
    };
    (@list [$($mode:expr,)*] $a:tt $b:tt $c:tt $d:tt $e:tt $(, $($rest:tt)*)?) => {
        $crate::__int_tuple!(@list [$($mode,)* $crate::__int_tuple!(@one $a $b $c $d $e),] $($($rest)*)?)
    };
}

/// Builds the integer of some tokens. `a@b@c` names the innermost direction first.
#[doc(hidden)]
#[macro_export]
macro_rules! __int {
    (dyn $e:tt) => { $crate::Int::dynamic($e as i64) };
    (- $e:tt) => { $crate::Int::fixed(-$e) };
    ({$($e:tt)*}) => { $crate::Int::fixed(const { ({ $($e)* }) as i64 }) };
    ($e:literal) => { $crate::Int::fixed($e) };
    ($e:ident) => { $crate::Int::named(stringify!($e)) };
    ($e:tt @ $b:literal) => { $crate::__int!($e).along($crate::Basis::new($b)) };
    (- $e:tt @ $b:literal) => { $crate::__int!(- $e).along($crate::Basis::new($b)) };
    (dyn $e:tt @ $b:literal) => { $crate::__int!(dyn $e).along($crate::Basis::new($b)) };
    ($e:tt @ $b:literal @ $a:literal) => {
        $crate::__int!($e).along($crate::Basis::new($a).then($b))
    };
}
