"""Kernels of a user's package: what their PTX says, what a launch takes, and on a GPU what they compute."""

import os
import pathlib
import shutil
import struct

import numpy
import pytest

import cutlet

HEADER = ".version 7.0\n.target sm_80\n.address_size 64\n"

SCALE = """
.visible .entry scale(
	.param .u32 scale_param_0,
	.param .f32 scale_param_1,
	.param .u64 .ptr .align 1 scale_param_2,
	.param .u64 .ptr .align 1 scale_param_3
)
.maxntid 128, 1, 1
.minnctapersm 2
// cutlet-shared 1024
// cutlet-parameters n: u32, factor: f32, x: *const f32, y: *mut f32
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<6>;
	ld.param.u32 %r1, [scale_param_0];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.s32 %r4, %r2, 128, %r3;
	setp.ge.u32 %p1, %r4, %r1;
	@%p1 bra $DONE;
	ld.param.f32 %f1, [scale_param_1];
	ld.param.u64 %rd1, [scale_param_2];
	ld.param.u64 %rd2, [scale_param_3];
	mul.wide.u32 %rd3, %r4, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.f32 %f2, [%rd4];
	mul.f32 %f3, %f1, %f2;
	st.f32 [%rd5], %f3;
$DONE:
	ret;
}
"""

#: A kernel's parameters in Rust and in PTX, how it loads them, and from which byte.
ECHOED = [
    ("a: i8", ".u8", "s8"),
    ("b: u16", ".u16", "u16"),
    ("c: i64", ".u64", "s64"),
    ("d: f16", ".b16", "u16"),
    ("e: bf16", ".b16", "u16"),
    ("f: f64", ".f64", "u64"),
    ("g: bool", ".u8", "u8"),
    ("h: [u8; 12]", ".align 4 .b8", "u32"),
]


def echo():
    """A kernel that writes its arguments to an array, each as int64, and of the struct the last word."""
    declared, loads = [], []
    for nth, (_, declaration, load) in enumerate(ECHOED):
        extent, offset = ("[12]", "+8") if "b8" in declaration else ("", "")
        declared.append(f"\t.param {declaration} echo_param_{nth}{extent},")
        loads.append(f"\tld.param.{load} %rd1, [echo_param_{nth}{offset}];\n\tst.u64 [%rd2+{8 * nth}], %rd1;")
    last = len(ECHOED)
    return "\n".join([
        ".visible .entry echo(",
        *declared,
        f"\t.param .u64 echo_param_{last}",
        ")",
        ".maxntid 1, 1, 1",
        "// cutlet-parameters " + ", ".join([it for it, _, _ in ECHOED] + ["out: *mut i64"]),
        "{",
        "\t.reg .b64 %rd<3>;",
        f"\tld.param.u64 %rd2, [echo_param_{last}];",
        *loads,
        "\tret;",
        "}\n",
    ])  # fmt: skip


def entry(name, parameter, line, directives=".maxntid 32, 1, 1\n"):
    """A kernel of one parameter that does nothing."""
    return f".visible .entry {name}(\n\t.param {parameter}\n)\n{directives}{line}{{\n\tret;\n}}\n"


REFUSED = {
    "mapped": (".align 64 .b8 mapped_param_0[128]", "// cutlet-parameters map: TensorMap\n", "a tensor map"),
    "pairs": (".u64 pairs_param_0", "// cutlet-parameters pairs: *const _\n", "elements that are no numbers"),
    "alone": (".u32 alone_param_0", "// cutlet-parameters n: u32\n", "none of its parameters is a pointer"),
    "wide": (".u64 wide_param_0", "// cutlet-parameters n: u32\n", "`n: u32` has 8 bytes in the PTX"),
    "silent": (".u64 silent_param_0", "", "says the types of its parameters"),
    "more": (".u64 more_param_0", "// cutlet-parameters x: *mut f32, n: u32\n", "it has 1 parameters"),
}


@pytest.fixture
def module(tmp_path):
    """The kernels above, as a build leaves them."""
    refused = "".join(entry(name, parameter, line) for name, (parameter, line, _) in REFUSED.items())
    boundless = entry("boundless", ".u64 boundless_param_0", "// cutlet-parameters x: *mut f32\n", directives="")
    (tmp_path / "own-kernels.sm_80.ptx").write_text(HEADER + SCALE + echo() + refused + boundless)
    return cutlet.load(tmp_path)


@pytest.fixture
def x():
    return numpy.arange(300, dtype="float32")


def test_a_module_tells_its_kernels(module):
    assert module.kernels == ["echo", "scale"]
    scale = module["scale"]
    assert scale.parameters == [("n", "u32"), ("factor", "f32"), ("x", "*const f32"), ("y", "*mut f32")]
    assert (scale.threads, scale.cluster, scale.shared_bytes) == (128, 1, 1024)
    assert "scale(n: u32, factor: f32, x: *const f32, y: *mut f32), 128 threads" in repr(module.scale)
    with pytest.raises(KeyError, match="has no kernel `scales`; it has echo, scale"):
        module["scales"]
    assert not hasattr(module, "scales")


def test_kernels_that_python_cannot_launch_are_refused_with_the_reason(module):
    assert set(module.refused) == set(REFUSED) | {"boundless"}
    for name, (_, _, why) in REFUSED.items():
        assert why in module.refused[name]
        with pytest.raises(KeyError, match=f"cannot launch `{name}`"):
            module[name]
    assert "no `.maxntid`" in module.refused["boundless"]


def test_files_that_are_no_ptx_are_refused(tmp_path):
    with pytest.raises(ValueError, match="has no file"):
        cutlet.load(tmp_path)
    (tmp_path / "a.ptx").write_text("PTX")
    with pytest.raises(ValueError, match="no `.target`"):
        cutlet.load(tmp_path / "a.ptx")
    (tmp_path / "a.ptx").write_text(HEADER)
    with pytest.raises(ValueError, match="has no kernel"):
        cutlet.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        cutlet.load(tmp_path / "b.ptx")


def test_targets_must_agree(tmp_path):
    other = SCALE.replace("n: u32", "n: i32")
    (tmp_path / "own.sm_80.ptx").write_text(HEADER + SCALE)
    (tmp_path / "own.sm_90.ptx").write_text(HEADER.replace("sm_80", "sm_90") + SCALE)
    assert cutlet.load(tmp_path).kernels == ["scale"]
    (tmp_path / "own.sm_90.ptx").write_text(HEADER.replace("sm_80", "sm_90") + other)
    assert "another one for sm_90" in cutlet.load(tmp_path).refused["scale"]


def test_on_the_cpu_a_launch_says_that_it_needs_a_gpu(module, x):
    y = numpy.zeros_like(x)
    with pytest.raises(RuntimeError, match="scale: the arrays are on the CPU, and PTX runs on a GPU alone"):
        module.scale(300, 2.0, x, y, grid=3)
    with pytest.raises(RuntimeError, match="scale: "):
        module["scale"](numpy.uint32(300), numpy.float32(2), x, y, grid=(3, 1))
    assert not y.any()


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"n": -1}, ValueError, "-1 is out of the range of `n: u32`"),
        ({"n": 1 << 32}, ValueError, "4294967296 is out of the range of `n: u32`"),
        ({"n": 1 << 200}, ValueError, "out of the range of `n: u32`"),
        ({"n": 2.5}, TypeError, "`n: u32` takes a number of this type, and 2.5 is a <class 'float'>"),
        ({"factor": 1e39}, ValueError, "1e[+]39 is out of the range of `factor: f32`"),
        ({"factor": "2"}, TypeError, "`factor: f32` takes a number"),
        ({"factor": numpy.ones(1)}, TypeError, "`factor: f32` takes a number, and a .*ndarray"),
        ({"x": 2.0}, TypeError, "x is a <class 'float'>; give an array"),
        ({"x": numpy.zeros(300)}, TypeError, "scale: x is float64; give float32"),
        ({"x": numpy.zeros((3, 4), "float32").T}, ValueError, r"x is \(4, 3\) with strides \(1, 4\)"),
        ({"x": numpy.zeros(8, "float32")[::2]}, ValueError, "give a contiguous array"),
        ({"grid": 0}, ValueError, "grid is 0; give a number of blocks"),
        ({"grid": (1, -2)}, ValueError, r"grid is \(1, -2\)"),
        ({"grid": (1, 2, 3, 4)}, ValueError, r"grid is \(1, 2, 3, 4\)"),
        ({"grid": 2.0}, TypeError, "grid is 2.0"),
        ({"stream": 7}, ValueError, "stream was given, and x is on the CPU"),
    ],
)
def test_arguments_are_checked(module, x, change, error, message):
    arguments = {"n": 300, "factor": 2.0, "x": x, "y": numpy.zeros_like(x), "grid": 3, "stream": None} | change
    grid, stream = arguments.pop("grid"), arguments.pop("stream")
    with pytest.raises(error, match=message):
        module.scale(*arguments.values(), grid=grid, stream=stream)


def test_a_launch_has_all_arguments_and_a_grid(module, x):
    with pytest.raises(TypeError, match="scale: 3 arguments were given; give 4: scale.n: u32, factor: f32"):
        module.scale(300, 2.0, x, grid=3)
    with pytest.raises(TypeError, match="grid"):
        module.scale(300, 2.0, x, numpy.zeros_like(x))


def test_written_arrays_are_writable_and_apart_from_others(module, x):
    with pytest.raises(ValueError, match="memory ranges of y and x overlap"):
        module.scale(300, 2.0, x, x, grid=3)
    y = numpy.zeros_like(x)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="y is read-only"):
        module.scale(300, 2.0, x, y, grid=3)


ARGUMENTS = [-3, 65535, -(1 << 40), 0.5, -2.0, 1 / 3, True, struct.pack("iif", 1, 2, 0.25)]
ECHO_OF_ARGUMENTS = [
    -3,
    65535,
    -(1 << 40),
    0x3800,
    0xC000,
    struct.unpack("q", struct.pack("d", 1 / 3))[0],
    1,
    struct.unpack("I", struct.pack("f", 0.25))[0],
]


@pytest.mark.parametrize(
    "nth, value, error",
    [
        (0, 128, ValueError),
        (1, -1, ValueError),
        (2, 1 << 63, ValueError),
        (3, 65520.0, ValueError),
        (4, 3.4e38 * 2, ValueError),
        (6, 1, TypeError),
        (7, b"1234", ValueError),
        (7, 1.0, TypeError),
    ],
)
def test_numbers_and_structs_are_checked(module, nth, value, error):
    given = [value if at == nth else it for at, it in enumerate(ARGUMENTS)]
    with pytest.raises(error, match=f"`{ECHOED[nth][0]}`".replace("[", r"\[")):
        module.echo(*given, numpy.zeros(8, "int64"), grid=1)


def gpu():
    """PyTorch, if it has a GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return torch


def test_launches_on_a_gpu(module):
    torch = gpu()
    x = torch.arange(300, device="cuda", dtype=torch.float32)
    y = torch.zeros_like(x)
    module.scale(300, 2.0, x, y, grid=3)
    torch.testing.assert_close(y, 2 * x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    module.scale(200, 3.0, x, y, grid=(2,), stream=stream)
    stream.synchronize()
    torch.testing.assert_close(y, torch.cat([3 * x[:200], 2 * x[200:]]))
    with pytest.raises(ValueError, match="on the CPU, and x is on GPU 0"):
        module.scale(300, 2.0, x, y.cpu(), grid=3)


def test_a_gpu_gets_numbers_and_structs(module):
    torch = gpu()
    out = torch.zeros(8, device="cuda", dtype=torch.int64)
    module.echo(*ARGUMENTS, out, grid=1)
    assert out.tolist() == ECHO_OF_ARGUMENTS


def test_launches_are_captured_in_a_graph(module):
    torch = gpu()
    x, y = torch.ones(300, device="cuda"), torch.zeros(300, device="cuda")
    module.scale(300, 2.0, x, y, grid=3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module.scale(300, 2.0, x, y, grid=3)
    x.fill_(5.0)
    graph.replay()
    torch.testing.assert_close(y, 2 * x)


@pytest.fixture
def template():
    """The PTX of the package that `cutlet new` makes: in the folder that a variable names, or built by cargo."""
    folder = os.environ.get("CUTLET_OWN_KERNEL_PTX")
    if folder is None and shutil.which("cargo") is None:
        pytest.skip("there is no cargo, and CUTLET_OWN_KERNEL_PTX names no folder of PTX")
    package = pathlib.Path(__file__).parents[2] / "examples" / "own-kernel"
    return cutlet.load(folder or cutlet.build_kernels(package))


@pytest.mark.skipif("CUTLET_OWN_KERNEL_PTX" not in os.environ, reason="CUTLET_OWN_KERNEL_PTX names no folder of PTX")
def test_the_template_tells_its_kernels(template):
    assert template.kernels == ["rms_norm_128", "rms_norm_256", "rms_norm_512"]
    parameters = [("rows", "i32"), ("columns", "i32"), ("epsilon", "f32")]
    parameters += [("weight", "*const f32"), ("x", "*const f32"), ("y", "*mut f32")]
    assert template.rms_norm_256.parameters == parameters and template.rms_norm_256.threads == 256


def test_the_template_on_a_gpu(request):
    torch = gpu()
    template = request.getfixturevalue("template")
    rows, columns = 20, 300
    x, weight = torch.randn(rows, columns, device="cuda"), torch.randn(columns, device="cuda")
    expected = torch.nn.functional.rms_norm(x, (columns,), weight, eps=1e-6)
    for name in template.kernels:
        y = torch.zeros_like(x)
        template[name](rows, columns, 1e-6, weight, x, y, grid=-(-rows // 8))
        torch.testing.assert_close(y, expected)
