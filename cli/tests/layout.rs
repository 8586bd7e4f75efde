//! `cutlet layout`: answers, pictures and refusals.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn cutlet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .arg("layout")
        .args(arguments)
        .output()
        .expect("cutlet runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The command's output for these arguments.
fn printed(arguments: &[&str]) -> String {
    let output = cutlet(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// The command's answers to lines, and the time that it took.
fn answers(lines: &[u8]) -> (Vec<String>, Duration) {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(["layout", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cutlet runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let lines = lines.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&lines));
    let output = child.wait_with_output().expect("cutlet ends");
    writer
        .join()
        .expect("no panic")
        .expect("all lines are read");
    assert!(output.status.success());
    (
        text(&output.stdout).lines().map(str::to_owned).collect(),
        start.elapsed(),
    )
}

/// Checks the answers to expressions, all in one run.
fn check(cases: &[(&str, &str)]) {
    let lines: String = cases
        .iter()
        .map(|(expression, _)| format!("{expression}\n"))
        .collect();
    let (found, _) = answers(lines.as_bytes());
    assert_eq!(found.len(), cases.len());
    for ((expression, expected), found) in cases.iter().zip(&found) {
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn integers_are_static_or_dynamic_as_cute_prints_them() {
    check(&[
        ("(_2,4):(_12,_1)", "(_2,4):(_12,_1)"),
        ("make_layout(_8)", "_8:_1"),
        ("make_layout(8)", "8:_1"),
        ("make_layout((_2,4), LayoutRight)", "(_2,4):(4,_1)"),
        ("make_layout((2,(2,2)), LayoutLeft)", "(2,(2,2)):(_1,(2,4))"),
        (
            "(10,2):(16,4) o (5,4):(1,5)",
            "((5,1),(2,2)):((16,4),(80,4))",
        ),
        (
            "(_10,_2):(_16,_4) o (_5,_4):(_1,_5)",
            "(_5,(_2,_2)):(_16,(_80,_4))",
        ),
        (
            "composition((12,(4,8)):(59,(13,1)), <_3:_4, _8:_2>)",
            "(_3,(2,4)):(236,(26,1))",
        ),
        ("idx2crd((_1,5), (_3,(_2,_3)))", "(_1,(1,2))"),
        ("crd2idx((_1,(_1,_2)), (_3,(_2,_3)), (_3,(_12,_1)))", "_17"),
        ("complement(_4:_2, _24)", "(_2,_3):(_1,_8)"),
    ]);
}

#[test]
fn everything_has_a_notation() {
    check(&[
        ("((4,2):(1,4))(1,1)", "5"),
        ("(3,(2,3)):(3,(12,1))(1,(1,2))", "17"),
        ("((4,(2,3)):(1,(4,8)))(2,_)", "((2,3)):((4,8))"),
        ("(5:4, 4:1)", "(5,4):(4,1)"),
        ("<3:4, 8:2>", "<3:4,8:2>"),
        ("Sw<3,4,3> o 0 o (8,8):(8,1)", "Sw<3,4,3> o 0 o (8,8):(8,1)"),
        ("Sw<3,0,3> o (8,8):(8,1)", "Sw<3,0,3> o _0 o (8,8):(8,1)"),
        ("(Sw<3,0,3> o 0 o (8,8):(8,1))(1,0)", "9"),
        (
            "(Sw<3,0,3> o 0 o (8,8):(8,1))(1,_)",
            "Sw<3,0,3> o 8 o (8):(1)",
        ),
        ("Sw<3,0,3>(8)", "9"),
        ("(8,8):(1,8) o 5 o 4:2", "(8,8):(1,8) o 5 o 4:2"),
        (
            "zipped_divide(Sw<2,0,2> o 0 o (4,4):(4,1), <2,2>)",
            "Sw<2,0,2> o 0 o ((2,2),(2,2)):((4,1),(8,2))",
        ),
        ("(3,6,2,8):(5,7,11,13) / 72", "(1,1,1,4):(360,168,44,26)"),
        ("(3,6,2,8) / 9", "(1,2,2,8)"),
        ("(6,2) % 12", "(6,2)"),
        ("take<1,3>((_2,_3,_5,_7):(_1,_2,_6,_30))", "(_3,_5):(_2,_6)"),
        (
            "select((_2,_3,_5,_7):(_1,_2,_6,_30), 1, 3)",
            "(_3,_7):(_2,_30)",
        ),
        ("size<1>((2,3):(1,2))", "3"),
        ("layout<1,0>((_4,(_3,_6)))", "_3:_4"),
        (
            "coordinates_of((3,(2,3)):(3,(12,1)), 17)",
            "16 (1,5) (1,(1,2))",
        ),
        ("make_identity_layout((8,4))", "(8,4):(_1@0,_1@1)"),
        ("(8,4):(1@0,1@1)(11)", "(3,1)"),
        ("compatible((4,6), ((2,2),6))", "true"),
        ("((2,2),3)", "((2,2),3)"),
    ]);
}

#[test]
fn functions_are_called_by_name() {
    check(&[
        ("coalesce((_2,(_1,_6)):(_1,(_6,_2)))", "_12:_1"),
        (
            "coalesce((_2,(_1,_6)):(_1,(_6,_2)), (_1,_1))",
            "(_2,_6):(_1,_2)",
        ),
        ("right_inverse((_4,_8):(_8,_1))", "(_8,_4):(_4,_1)"),
        ("left_inverse((_6,_2):(_1,_7))", "(_7,_2):(_1,_6)"),
        (
            "logical_divide((_4,_2,_3):(_2,_1,_8), _4:_2)",
            "((_2,_2),(_2,_3)):((_4,_1),(_2,_8))",
        ),
        (
            "zipped_divide((8,6):(1,8), <4,2>)",
            "((4,2),(2,3)):((1,8),(4,16))",
        ),
        (
            "blocked_product((_2,_5):(_5,_1), (_3,_4):(_1,_3))",
            "(_6,(_5,_4)):(_5,(_1,_30))",
        ),
        (
            "raked_product((_2,_5):(_5,_1), (_3,_4):(_1,_3))",
            "((_3,_2),(_4,_5)):((_10,_5),(_30,_1))",
        ),
        ("group(flatten(((2,3),5)), 0, 2)", "((2,3),5)"),
        ("recast_layout((_8,_4):(_1,_8), 16, 32)", "(_4,_4):(_1,_4)"),
        (
            "recast_layout(Sw<3,3,3> o _0 o (_8,_64):(_64,_1), 16, 32)",
            "Sw<3,2,3> o _0 o (_8,_32):(_32,_1)",
        ),
        ("recast_layout(Sw<3,4,3>, 8, 16)", "Sw<3,3,3>"),
        (
            "tile_to_shape(Sw<3,3,3> o _0 o (_8,_64):(_64,_1), (_128,_64))",
            "Sw<3,3,3> o _0 o (_128,_64):(_64,_1)",
        ),
        (
            "slice_and_offset((7,_), (_8,_8):(_6,_59))",
            "((_8):(_59), 42)",
        ),
    ]);
}

#[test]
fn what_no_layout_does_is_refused_with_the_reason() {
    check(&[
        (
            "composition((4,2):(1,8), 3:3)",
            "error: column 26: composition: (4,2):(1,8) o 3:3 takes 0, 3, 10: no layout does",
        ),
        (
            "cosize((8,4):(1@0,1@1))",
            "error: column 8: cosize: strides in basis directions have no last index",
        ),
        (
            "size((4294967296,4294967296))",
            "error: column 6: product: (4294967296,4294967296) has no product that fits 64 bits",
        ),
    ]);
}

#[test]
fn syntax_errors_point_at_the_column() {
    check(&[
        (
            "(4,2):(1,4",
            "error: column 11: expected `,` or `)`, but the expression ends",
        ),
        (
            "size(x)",
            "error: column 6: there is no variable or function `x`; --functions lists the functions",
        ),
        (
            "composition((4,2):(1,8))",
            "error: column 1: the signature is composition(A, tiler); there is 1 argument",
        ),
        (
            "4:2 o",
            "error: column 6: expected an integer, `_`, a tuple, a tiler or a name, but the expression ends",
        ),
        (
            "  0:1",
            "error: column 3: layout: 0:1 has the extent 0: extents are plain integers of at least 1",
        ),
        (
            "(4,2) é",
            "error: column 7: expected `o`, `(`, `:` or the end, found `é`",
        ),
        (
            "",
            "error: column 1: expected an integer, `_`, a tuple, a tiler or a name, but the expression ends",
        ),
    ]);
    let output = cutlet(&["coalesce((4,2):(1,4)"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: column 21: expected `,` or `)`, but the expression ends\n  coalesce((4,2):(1,4)\n                      ^\n"
    );
}

#[test]
fn a_hint_says_that_static_integers_give_less() {
    let output = cutlet(&["(10,2):(16,4) o (5,4):(1,5)"]);
    assert_eq!(text(&output.stdout), "((5,1),(2,2)):((16,4),(80,4))\n");
    assert_eq!(
        text(&output.stderr),
        "hint: with static integers (--static) it is (_5,(_2,_2)):(_16,(_80,_4))\n"
    );
    let output = cutlet(&["(10,2):(16,4) o (5,4):(1,5)", "--static"]);
    assert_eq!(text(&output.stdout), "(_5,(_2,_2)):(_16,(_80,_4))\n");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(text(&cutlet(&["(4,2):(1,4)"]).stderr), "");
}

#[test]
fn analyses_are_lines_behind_the_value() {
    assert_eq!(
        printed(&[
            "(32,4):(4,1)",
            "--banks",
            "32",
            "--coalescing=32",
            "--bijective"
        ]),
        "(32,4):(4,1)\n\
         no bank conflicts: 1 access of 4 values a thread, 4 wavefronts\n\
         coalesced: 16 sectors in 1 request of 4 values a thread, where 16 hold the bytes\n\
         bijective: it reaches each index from 0 to 127 once\n"
    );
    let refused = cutlet(&["32:1@0", "--banks", "32"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("is not an index in memory"));
}

#[test]
fn layouts_are_compared() {
    assert_eq!(
        printed(&["--compare", "(4,2):(1,4)", "8:1"]),
        "the same function, but another layout\n"
    );
    assert_eq!(
        printed(&["--compare", "(4,2):(1,4)", "8:2", "--json"]),
        "{\"at\":1,\"same_function\":false,\"same_layout\":false,\"text\":\"different: 1 and 2 at 1\",\
         \"values\":[\"1\",\"2\"]}\n"
    );
    assert_eq!(cutlet(&["--compare", "(4,2):(1,4)"]).status.code(), Some(2));
}

#[test]
fn answers_are_json_too() {
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&cutlet(arguments).stdout).expect("JSON")
    };
    let answer = json(&["((2,2),4):((1,ldm),2@0)", "--json", "--explain"]);
    assert_eq!(answer["value"]["shape"].to_string(), "[[2,2],4]");
    assert_eq!(
        answer["value"]["stride"].to_string(),
        "[[1,\"ldm\"],\"2@0\"]"
    );
    let answer = json(&[
        "(10,2):(16,4) o (5,4):(1,5)",
        "--json",
        "--explain",
        "--bijective",
        "--banks=32",
    ]);
    assert_eq!(answer["value"]["size"], 20);
    assert_eq!(answer["bijective"]["bijective"], false);
    assert_eq!(answer["banks"]["worst"], 3);
    assert!(
        answer["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("--static"))
    );
    assert_eq!(
        answer["explanations"][0][1],
        "  R(c) = A(B(c)): B picks coordinates of A"
    );
    let refused = cutlet(&["(4,2", "--json"]);
    assert_eq!(refused.status.code(), Some(2));
    let refusal: serde_json::Value = serde_json::from_slice(&refused.stderr).expect("JSON");
    assert_eq!(refusal["error"]["column"], 5);
    let mut child = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(["layout", "--stdin", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cutlet runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"4:2\n(\n")
        .expect("it reads");
    let lines = text(&child.wait_with_output().expect("it ends").stdout);
    assert_eq!(lines.lines().count(), 2);
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    );
}

/// An answer to a line is a line.
#[test]
fn no_picture_is_asked_for_of_lines() {
    for picture in [
        "--table",
        "--annotated",
        "--tv",
        "--svg=lines.svg",
        "--latex",
        "--explain",
    ] {
        let output = cutlet(&["--stdin", picture]);
        assert_eq!(output.status.code(), Some(2), "{picture}");
        let complaint = text(&output.stderr);
        assert!(complaint.contains("cannot be used with"), "{complaint}");
    }
}

/// Every line has an answer.
#[test]
fn nothing_on_stdin_crashes() {
    let mut lines = Vec::new();
    lines.extend_from_slice(&[b'('; 100_000]);
    lines.push(b'\n');
    lines.extend("coalesce(".repeat(5000).as_bytes());
    lines.push(b'\n');
    lines.extend_from_slice(b"4:\xff2\n");
    let pieces = [
        "(",
        ")",
        "<",
        ">",
        ":",
        ",",
        "_",
        "o",
        "4",
        "-1",
        "1@0",
        "Sw<3,4,3>",
        "get",
        "/",
        "9223372036854775807",
    ];
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..5000 {
        for _ in 0..rng.usize(1..12) {
            lines.extend(pieces[rng.usize(..pieces.len())].as_bytes());
        }
        lines.push(b'\n');
    }
    let (found, _) = answers(&lines);
    assert_eq!(found.len(), 5003);
    assert!(found[0].starts_with("error: column 33: the expression is nested"));
    assert_eq!(found[2], "error: column 3: the text is not UTF-8");
}

#[test]
fn twenty_thousand_lines_take_seconds_at_most() {
    let expressions = [
        "zipped_divide((9,(4,8)):(59,(13,1)), <3:3, (2,4):(1,8)>)",
        "composition((_10,_2):(_16,_4), (_5,_4):(_1,_5))",
        "complement((2,2):(1,6), 24)",
        "composition((4,2):(1,8), 3:3)",
    ];
    let lines: String = (0..20_000)
        .map(|i| format!("{}\n", expressions[i % 4]))
        .collect();
    let (found, took) = answers(lines.as_bytes());
    assert_eq!(found.len(), 20_000);
    assert!(found[3].starts_with("error: ") && found[2] == found[19_998]);
    // It takes a fraction of a second. The limit allows for slow or busy machines, but not for a start of the program
    // or a search for each line.
    assert!(took < Duration::from_secs(60), "{took:?}");
}

/// A reader that has enough, as `head -1`, is no error.
#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(["layout", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cutlet runs");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("a pipe");
    // The command may end before it has read all.
    let _ = stdin.write_all("(4,2):(1,4)\n".repeat(1000).as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("cutlet ends");
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn tables_are_cutes() {
    assert_eq!(
        printed(&["(2,3):(1,2)", "--table"]),
        concat!(
            "(2,3):(1,2)\n",
            "      0   1   2 \n",
            "    +---+---+---+\n",
            " 0  | 0 | 2 | 4 |\n",
            "    +---+---+---+\n",
            " 1  | 1 | 3 | 5 |\n",
            "    +---+---+---+\n",
        )
    );
    assert!(printed(&["--annotated", "(3,(2,3)):(3,(12,1))"]).contains("<== 2-D col coord (j,k)"));
    assert!(printed(&["Sw<1,0,1> o 0 o (2,2):(2,1)", "--table"]).contains(" 1  | 3 | 2 |"));
    let too_many = cutlet(&["(1000,1000)", "--table"]);
    assert!(text(&too_many.stderr).contains("1000000 cells are too many"));
    // Drawing evaluates the layout, which may be refused although the expression was not.
    let misfit = cutlet(&["make_composed_layout((4,4), (1,2,3), 4)", "--table"]);
    assert!(
        text(&misfit.stderr).starts_with("error: "),
        "{}",
        text(&misfit.stderr)
    );
}

#[test]
fn thread_value_layouts_name_their_threads() {
    let by_position = printed(&["((4,8),(2,2)):((32,1),(16,8))", "--tv=(16,8)"]);
    assert!(
        by_position.contains(" 9  |  T4V2 |  T4V3 |"),
        "{by_position}"
    );
    let by_coordinate = printed(&["((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "--tv"]);
    assert_eq!(
        by_position.lines().skip(1).collect::<Vec<_>>(),
        by_coordinate.lines().skip(1).collect::<Vec<_>>()
    );
    assert!(printed(&["(4,2):(2,1)", "--tv", "--latex"]).contains(r"{T3 \\ V1}"));
}

#[test]
fn tiled_operations_have_a_picture_for_each_operand() {
    let mma = "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>";
    let tables = printed(&[mma, "--tv=(64,32,16)"]);
    for title in ["over (64,16)", "over (32,16)", "over (64,32)"] {
        assert_eq!(tables.matches(title).count(), 1, "{title}: {tables}");
    }
    // The columns 12 and 13 of row 1 of C are the first two values of thread 70.
    let of_c = tables.split("\nC: ").nth(1).unwrap();
    let row = of_c.lines().find(|line| line.starts_with(" 1  |")).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[13..15], ["T70V0", "T70V1"], "{row}");
    // A warpgroup reads A and B from shared memory.
    let wgmma = printed(&["Wgmma<16, bf16>", "--tv"]);
    assert!(
        wgmma.starts_with("C: ") && !wgmma.contains("A: "),
        "{wgmma}"
    );

    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mma.svg");
    printed(&[mma, "--svg", file.to_str().unwrap()]);
    let svg = fs::read_to_string(&file).unwrap();
    assert!(
        ["A: ", "B: ", "C: "]
            .iter()
            .all(|title| svg.contains(title))
    );
    for (arguments, wanted) in [
        ([mma, "--tv=(48,32,16)"], "do not divide a tile (48,32,16)"),
        (
            [mma, "--latex"],
            "a LaTeX document has one picture, but here are 3",
        ),
    ] {
        let refused = cutlet(&arguments);
        assert!(
            text(&refused.stderr).contains(wanted),
            "{}",
            text(&refused.stderr)
        );
    }
}

#[test]
fn boxes_of_tma_are_one_line_of_many_expressions() {
    let (lines, _) = answers("tma_box((64,128):(128,1), (8,64), 16)\n4:1\n".as_bytes());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("legal: a tensor map of 64 × 128 elements"));
}

#[test]
fn explanations_go_step_by_step() {
    let words = printed(&["logical_divide((_4,_2,_3):(_2,_1,_8), _4:_2)", "--explain"]);
    assert!(
        words.contains("  B* = complement(B, 24) = (_2,_3):(_1,_8), where the other tiles begin\n"),
        "{words}"
    );
    assert!(
        words.ends_with("\n((_2,_2),(_2,_3)):((_4,_1),(_2,_8))\n"),
        "{words}"
    );
    // A refusal is explained too.
    let output = cutlet(&["(4,2):(1,8) o 3:3", "--explain"]);
    assert!(text(&output.stdout).contains("refused: composition: (4,2):(1,8) o 3:3"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn documents_are_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("layout.svg");
    printed(&["(4,8):(8,1)", "--svg", file.to_str().expect("UTF-8")]);
    assert_eq!(
        fs::read_to_string(file)
            .expect("a file")
            .matches("stroke=\"black\"")
            .count(),
        32
    );
    assert!(printed(&["(4,8):(8,1)", "--latex"]).contains("\\begin{tikzpicture}"));

    let tiled = folder.join("tiled.svg");
    let name = tiled.to_str().expect("UTF-8");
    printed(&[
        "(9,(4,8)):(59,(13,1))",
        "--svg",
        name,
        "--tiles",
        "<3:3, (2,4):(1,8)>",
    ]);
    let document = fs::read_to_string(&tiled).expect("a file");
    assert_eq!(
        document.matches("fill=\"#afafff\"").count(),
        24,
        "the first tile has 3×8 cells"
    );
    let uneven = cutlet(&["(9,4)", "--svg", name, "--tiles", "<2,2>"]);
    assert!(
        text(&uneven.stderr).contains("evenly"),
        "{}",
        text(&uneven.stderr)
    );
}

#[test]
fn zipped_results_are_coloured_by_their_tiles() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("zipped.svg");
    let name = file.to_str().expect("UTF-8");
    let colours = |arguments: &[&str], color: &str| {
        printed(arguments);
        let document = fs::read_to_string(&file).expect("a file");
        document.matches(color).count()
    };
    let zipped = "zipped_divide((_8,_6):(_1,_8), <_4,_2>)";
    assert_eq!(
        colours(&[zipped, "--svg", name], "#afafff"),
        8,
        "a tile has 8 cells"
    );
    assert_eq!(colours(&["(_8,_6)", "--svg", name], "#afafff"), 0);
    assert_eq!(
        colours(&["(_8,_6)", "--svg", name, "--color", "row"], "#afafff"),
        6
    );
    // Bank 0 has the elements 0 and 1 of 16 bits.
    let banks = ["(_8,_4)", "--svg", name, "--color", "bank", "--banks", "16"];
    assert_eq!(colours(&banks, "#afafff"), 2);
    // A column of 8 rows has one bank without the swizzle, and 8 with it. Both are drawn.
    let swizzled = [
        "Sw<3,0,3> o 0 o (8,8):(8,1)",
        "--svg",
        name,
        "--color",
        "bank",
        "--banks",
        "128",
    ];
    assert_eq!(colours(&swizzled, "#afafff"), 8 + 8);
    assert_eq!(colours(&swizzled, "font-weight=\"bold\""), 2);
    // Thread 0 has 4 of 16×8 accumulators, and value 0 is in 32 of them. Colours repeat after eight threads.
    let held = "((4,8),(2,2)):((32,1),(16,8))";
    for (by, cells) in [("thread", 16), ("value", 32)] {
        let arguments = [held, "--tv=(16,8)", "--svg", name, "--color", by];
        assert_eq!(colours(&arguments, "#afafff"), cells, "{by}");
    }
    for (arguments, wanted) in [
        (
            ["(_8,_4)", "--color", "mood"],
            "give index, row, column or bank",
        ),
        (
            ["(_8,_4)", "--color", "value"],
            "needs a tile of threads and values",
        ),
    ] {
        let refused = cutlet(&[&arguments[..], &["--svg", name]].concat());
        assert!(text(&refused.stderr).contains(wanted), "{arguments:?}");
    }
}

/// The guide's figures are as the command draws them.
#[test]
fn figures_are_regenerated_by_one_command() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    printed(&["--figures", folder.to_str().expect("UTF-8")]);
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures");
    let names = [
        "composition1",
        "composition2",
        "complement1",
        "divide1",
        "divide2",
        "divide3",
        "product1",
        "product2",
        "product2d",
        "productblocked2d",
        "productraked2d",
    ];
    for name in names {
        let file = |folder: &Path| {
            let path = folder.join(name).with_extension("svg");
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        assert!(
            file(&folder) == file(&guide),
            "docs/figures/{name}.svg is not what `cutlet layout --figures docs/figures` draws"
        );
    }
}

#[test]
fn functions_are_listed() {
    let list = printed(&["--functions"]);
    for name in [
        "composition(A, tiler)",
        "zipped_divide(A, tiler)",
        "domain_distribute(shape, n)",
    ] {
        assert!(list.contains(name), "{name}");
    }
    assert_eq!(cutlet(&[]).status.code(), Some(2));
}

/// The words of a command line. Some are in single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        if i % 2 == 1 {
            // `--tv='(16,8)'` is one word.
            match words.last_mut() {
                Some(word) if line.contains(&format!("{word}'{part}'")) => *word += part,
                _ => words.push(part.to_owned()),
            }
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[test]
fn pages_show_what_the_command_prints() {
    for page in [
        "README.md",
        "docs/layouts.md",
        "docs/calculator.md",
        "docs/contractions.md",
        "docs/convolution.md",
        "docs/tiled.md",
        "docs/sticking-points.md",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
        let page = fs::read_to_string(path).unwrap();
        let mut shown = 0;
        for block in page.split("```text\n").skip(1) {
            let block = block.split("```").next().unwrap();
            for example in block.split("$ cutlet layout ").skip(1) {
                let (line, expected) = example.split_once('\n').unwrap();
                let line = words(line);
                let output = cutlet(&line.iter().map(String::as_str).collect::<Vec<_>>());
                let found = text(&output.stdout) + &text(&output.stderr);
                let trimmed = |text: &str| {
                    let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
                    lines.join("\n")
                };
                let (found, expected) = (trimmed(&found), trimmed(expected));
                // A page may leave out the end.
                match expected.strip_suffix('…') {
                    Some(begin) => assert!(found.starts_with(begin.trim_end()), "{found}"),
                    None => assert_eq!(found, expected, "{line:?}"),
                }
                shown += 1;
            }
        }
        assert!(shown >= 1);
    }
}
