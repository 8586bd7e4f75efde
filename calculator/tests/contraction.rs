//! Contractions: the layouts that a notation becomes, in expressions, steps and JSON.

use crate::check::{check, check_static};
use cutlet_calculator::json::{Question, answer};
use cutlet_calculator::{Calculator, Options};

const SCORES: &str = "\
M = s 2048, N = t 2048, K = d 128, L = (h 16, b 16)
A (M,K,L) = (2048,128,(16,16)):(6144,1,(128,12582912))
B (N,K,L) = (2048,128,(16,16)):(6144,1,(128,12582912))
C (M,N,L) = (2048,2048,(16,16)):(2048,_1,(4194304,67108864))";

#[test]
fn a_notation_and_layouts_become_matrices() {
    check(&[
        // Queries and keys beside values. C is packed, its last mode innermost.
        (
            "q = (16,2048,16,128):(12582912,6144,128,1); contract(\"bshd,bthd->bhst\", q, q)",
            SCORES,
        ),
        (
            "q = (16,2048,16,128):(12582912,6144,128,1); c = (16,16,2048,2048):(67108864,4194304,2048,_1);
             contract('b s h d, b t h d -> b h s t', q, q, c)",
            SCORES,
        ),
        (
            "qkv = (16,2048,3,16,128):(12582912,6144,2048,128,1); q = slice((_,_,0,_,_), qkv);
             contract(\"bshd,bthd->bhst\", q, q)",
            SCORES,
        ),
        // Where a tensor begins does not matter.
        (
            "contract(\"mk,nk->mn\", cute.slice_and_offset((_,1,_), (4,2,8):(16,8,1)), n=2)[0]",
            "(4,8,_1):(16,1,_0)",
        ),
        // As everywhere, a shape stands for its column-major layout.
        ("contract(\"mk,nk->mn\", (4,8), (6,8))[0]", "(4,8,_1):(_1,4,_0)"),
    ]);
}

#[test]
fn extents_are_those_of_packed_tensors() {
    let packed = "M = m 8, N = n 4, K = k 2, L = 1\nA (M,K,L) = (8,2,_1):(2,_1,_0)\n\
                  B (N,K,L) = (4,2,_1):(2,_1,_0)\nC (M,N,L) = (8,4,_1):(4,_1,_0)";
    check(&[
        ("contract(\"mk,nk->mn\", m=8, n=4, k=2)", packed),
        ("n = 4; contract(\"mk,nk->mn\", (8,2):(2,_1), n=n)", packed),
        (
            "a, b, c = contract(\"mk,nk->mn\", m=8, n=4, k=2); c",
            "(8,4,_1):(4,_1,_0)",
        ),
        (
            "contract(\"mk,nk->mn\", m=8, n=4, k=2)[1]",
            "(4,2,_1):(2,_1,_0)",
        ),
        (
            "contract(\"ij,ij->\", i=4, j=_8)",
            "M = 1, N = 1, K = ji 32, L = 1\nA (M,K,L) = (_1,32,_1):(_0,_1,_0)\n\
             B (N,K,L) = (_1,32,_1):(_0,_1,_0)\nC (M,N,L) = (_1,_1,_1):(_0,_0,_0)",
        ),
    ]);
    check_static(&[(
        "contract(\"mk,nk->mn\", m=8, n=4, k=2)[2]",
        "(_8,_4,_1):(_4,_1,_0)",
    )]);
}

#[test]
fn extents_and_strides_may_be_symbols() {
    check(&[
        (
            "contract(\"mk,nk->mn\", m=M, n=N, k=K)",
            "M = m M, N = n N, K = k K, L = 1\nA (M,K,L) = (M,K,_1):(K,_1,_0)\n\
             B (N,K,L) = (N,K,_1):(K,_1,_0)\nC (M,N,L) = (M,N,_1):(N,_1,_0)",
        ),
        (
            "contract(\"mk,nk->mn\", (4,8):(lda,1), (6,8):(1,ldb), (4,6):(ldc,1))",
            "M = m 4, N = n 6, K = k 8, L = 1\nA (M,K,L) = (4,8,_1):(lda,1,_0)\n\
             B (N,K,L) = (6,8,_1):(1,ldb,_0)\nC (M,N,L) = (4,6,_1):(ldc,1,_0)",
        ),
        // Rows of j continue those of k for any extent.
        (
            "contract(\"ijk,njk->in\", i=I, j=J, k=K, n=N)[0]",
            "(I,J*K,_1):(J*K,_1,_0)",
        ),
    ]);
}

#[test]
fn what_is_no_contraction_is_refused_at_its_place() {
    check(&[
        (
            "contract(\"mk,nk\", 8:1)",
            "error: column 10: `mk,nk` has no `->` and no output; write `ab,bc->ac`: a letter for each mode of A, B and C",
        ),
        (
            "contract(mk, 8:1)",
            "error: column 10: expected a notation in quotes, as \"mk,nk->mn\", found `mk`",
        ),
        (
            "contract(\"mk,nk->mn, 8:1)",
            "error: column 11: expected `\"` behind the notation, found `mk`",
        ),
        (
            "contract",
            "error: column 9: expected `(` and arguments, but the expression ends",
        ),
        (
            "contract(\"mk,nk->mn\", m=8, n=4)",
            "error: column 10: the mode k has no extent; give one, as `k=64`",
        ),
        (
            "contract(\"mk,nk->mn\", m=8, n=4, k=2, x=3)",
            "error: column 10: `mk,nk->mn` has no mode x, and there is an extent of it; leave it out",
        ),
        (
            "contract(\"mk,nk->mn\", (8,4):(4,1), n=2, k=5)",
            "error: column 10: the mode k has 5 elements by its extent and 4 by the layout of A; make them agree",
        ),
        (
            "contract(\"mk,nk->mn\", m=8, m=9)",
            "error: column 10: the mode m has 8 elements by its extent and 9 by its extent; make them agree",
        ),
        (
            "contract(\"mk,nk->mn\", (8,4):(4,1), (2,5):(5,1))",
            "error: column 10: the mode k has 4 elements in A and 5 in B; make them agree, or repeat one by a stride of 0",
        ),
        (
            "contract(\"mk,nk->mn\", (8,4,2):(8,2,1), n=2)",
            "error: column 10: A has 3 modes, (8,4,2):(8,2,1), and 2 names; name each mode",
        ),
        (
            "contract(\"mk,nk->mn\", rows=8)",
            "error: column 23: an extent is given by its letter, as `m=64`, but here is `rows`",
        ),
        (
            "contract(\"mk,nk->mn\", m=0)",
            "error: column 25: an extent is at least 1, but here is 0",
        ),
        (
            "contract(\"mk,nk->mn\", m=8:1)",
            "error: column 25: an integer is needed, but `8:1` is a layout",
        ),
        (
            "contract(\"mk,nk->mn\", 8:1, 8:1, 8:1, 8:1)",
            "error: column 38: a contraction has the layouts of A, B and C: here is one more",
        ),
        (
            "contract(\"mk,nk->mn\", Sw<1,0,1> o 0 o (2,2):(2,1), n=2)",
            "error: column 23: a layout is needed, but `Sw<1,0,1> o 0 o (2,2):(2,1)` is a composed layout",
        ),
        (
            "contract(\"mk,nk->mn\", m=8, n=4, k=2) o 4:1",
            "error: column 1: a layout is needed, but `M = m 8, N = n 4, K = k 2, L = 1…` is a contraction: \
             its layouts are [0], [1] and [2]",
        ),
        (
            "contract(\"mk,nk->mn\", m=8, n=4, k=2",
            "error: column 36: expected `,` or `)`, but the expression ends",
        ),
    ]);
}

fn explained(text: &str) -> String {
    let mut calculator = Calculator::new(text, Options::default()).explaining();
    calculator.evaluate().unwrap();
    let explanations = calculator.explanations().iter();
    explanations.map(ToString::to_string).collect()
}

#[test]
fn each_mode_has_its_role_and_what_it_continues() {
    assert_eq!(
        explained("contract(\"gdab,efgc->abcdef\", g=24, d=2, a=3, b=4, e=5, f=6, c=7)"),
        "\
contract: gdab,efgc->abcdef, A = (24,2,3,4):(24,12,4,_1), B = (5,6,24,7):(1008,168,7,_1), \
C = (3,4,7,2,5,6):(1680,420,60,30,6,_1)
  einsum as products of matrices: the layouts of A as (M,K,L), B as (N,K,L) and C as (M,N,L)
  g 24 is in A and B, and summed: K
  d 2 is in A and C: M
  a 3 is in A and C: M
  b 4 is in A and C: M
  e 5 is in B and C: N
  f 6 is in B and C: N
  c 7 is in B and C: N
  b and a continue each other in A and C: ba 12
  f and e continue each other in B and C: fe 30
  d 2 does not continue ba 12: in C, ba 12 ends at 5040, and d 2 has the stride 30
  fe 30 does not continue c 7: in B, c 7 ends at 7, and fe 30 has the stride 168
= M = (ba 12, d 2), N = (c 7, fe 30), K = g 24, L = 1
A (M,K,L) = ((12,2),24,_1):((_1,12),24,_0)
B (N,K,L) = ((7,30),24,_1):((_1,168),7,_0)
C (M,N,L) = ((12,2),(7,30),_1):((420,30),(60,_1),_0)
"
    );
    let words = explained(
        "contract(\"mkl,nkl->mnl\", (4,5,3):(5,1,0), (6,5,3):(5,1,30), (4,6,3):(18,1,6))",
    );
    for line in [
        "  l 3 is in A, B and C, and A repeats it: N",
        "  n and l continue each other in B and C: nl 18",
    ] {
        assert!(words.contains(&format!("\n{line}\n")), "{words}");
    }
    let words = explained("contract(\"ij,k->i\", i=2, j=3, k=4)");
    assert!(
        words.contains("\n  j 3 is in A alone, and summed: K\n"),
        "{words}"
    );
    let words = explained("contract(\"mkl,nkl->mnl\", (4,5,3):(5,1,20), (6,5,3):(5,1,0))");
    assert!(
        words.contains("\n  l 3 is in A, B and C, and B repeats it: M\n"),
        "{words}"
    );
    // A value of several lines is one operand.
    let words = explained("contract(\"mk,nk->mn\", m=8, n=4, k=2)[0]");
    assert!(
        words.contains("\nget: A = M = m 8, N = n 4, K = k 2, L = 1; A (M,K,L) = "),
        "{words}"
    );
}

#[test]
fn json_has_the_modes_and_the_layouts() {
    let answer = answer(
        "contract(\"bij,bkj->ik\", (3,4,5):(5,15,1), (3,6,5):(5,15,1))",
        &Question::default(),
    );
    let contraction = &answer["value"]["contraction"];
    assert_eq!(
        contraction["modes"][2].to_string(),
        r#"{"extent":15,"names":"jb","role":"K","strides":[1,1,0]}"#
    );
    assert_eq!(contraction["a"]["text"], "(4,15,_1):(15,1,_0)");
    assert_eq!(contraction["c"]["shape"].to_string(), "[4,6,1]");
}
