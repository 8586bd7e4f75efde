"""Plans of products, and tuning: on GPU 0 if PyTorch has one, and else on the CPU, where nothing is measured."""

import numpy
import pytest

import cutlet

try:
    import torch

    HAS_GPU = torch.cuda.is_available()
except ImportError:
    HAS_GPU = False

on_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU, or no PyTorch")


def test_a_plan_is_the_product(array):
    a, b, out = array(12, 16), array(16, 20), array(12, 20)
    plan = cutlet.plan_gemm(a, b, out=out)
    assert plan(a, b, out=out) is out and (out == a @ b).all()
    # Other arrays of the same shapes, and an output that is made.
    other = array(12, 16)
    assert (plan(other, b) == other @ b).all()


def test_what_is_fused_is_part_of_the_plan(array):
    a, b, bias, residual = array(12, 16), array(16, 20), array(20), array(12, 20)
    options = {"bias": bias, "residual": residual, "activation": "relu", "alpha": 2.0}
    plan = cutlet.plan_gemm(a, b, **options)
    expected = numpy.maximum(2 * (a @ b) + residual + bias, 0)
    assert (plan(a, b, bias=bias, residual=residual) == expected).all()
    with pytest.raises(ValueError, match="plan: it was made with a bias; pass one"):
        plan(a, b, residual=residual)
    with pytest.raises(ValueError, match="plan: it was made without a residual; make one with it"):
        cutlet.plan_gemm(a, b)(a, b, residual=residual)
    rows = array(12)
    plan = cutlet.plan_gemm(a, b, bias=rows, bias_along="rows")
    assert (plan(a, b, bias=rows) == a @ b + rows[:, None]).all()
    out = array(12, 10)
    plan = cutlet.plan_gemm(a, b, activation="swiglu", out=out)
    assert numpy.array_equal(plan(a, b), cutlet.gemm(a, b, activation="swiglu"))
    before = out.copy()
    plan = cutlet.plan_gemm(a[:, :8], b[:8, :10], beta=1.0, out=out)
    assert (plan(a[:, :8], b[:8, :10], out=out) == before + a[:, :8] @ b[:8, :10]).all()


@pytest.mark.parametrize(("of_a", "of_c"), [("float32", "float16"), ("float64", "float64"), ("int8", "int32")])
def test_types_of_plans(array, of_a, of_c):
    a, b = array(8, 16, dtype=of_a), array(16, 24, dtype=of_a)
    plan = cutlet.plan_gemm(a, b, dtype=of_c)
    c = plan(a, b)
    assert c.dtype == of_c and (c == (a.astype(float) @ b.astype(float)).astype(of_c)).all()
    with pytest.raises(TypeError, match=f"plan: a is uint16, and the plan was made for {of_a}"):
        plan(a.astype("uint16"), b)
    with pytest.raises(TypeError, match=f"plan: out is uint16, and the plan was made for {of_c}"):
        plan(a, b, out=c.astype("uint16"))


def test_a_plan_refuses_other_matrices(array):
    a, b = array(12, 16), array(16, 20)
    plan, out = cutlet.plan_gemm(a, b), numpy.full((12, 20), 7, "float32")
    for others in [(array(11, 16), b), (numpy.asfortranarray(a), b), (array(12, 20)[:, :16], b)]:
        with pytest.raises(ValueError, match="plan"):
            plan(*others, out=out[: others[0].shape[0]])
    with pytest.raises(ValueError, match="plan: a has 3 dimensions"):
        plan(array(1, 12, 16), b)
    assert (out == 7).all()


def test_a_plan_says_what_it_runs(array):
    a, b = array(12, 16), array(16, 20)
    plan = cutlet.plan_gemm(a, b)
    assert plan.kernel and plan.kernel in repr(plan) and plan.kernel in plan.explain()
    assert "float32 (12, 16) @ (16, 20) into float32 (12, 20)" in plan.explain()
    assert "problem: operands=f32 c=f32 precision=exact m=12 n=20 k=16 a=row b=row" in plan.explain()
    empty = cutlet.plan_gemm(array(0, 16), b)
    assert empty.kernel is None and empty(array(0, 16), b).shape == (0, 20)
    assert "not tuned" in empty.explain()


def test_a_plan_runs_the_kernel_of_a_name(array):
    a, b = array(64, 64), array(64, 64)
    with pytest.raises(ValueError, match="instance `none` was asked for") as refused:
        cutlet.plan_gemm(a, b, kernel="none")
    # The message ends with the names that there are.
    names = str(refused.value).rsplit(": ", 1)[1].split(", ")
    plans = []
    for name in names:
        try:
            plans.append(cutlet.plan_gemm(a, b, kernel=name))
        except ValueError:
            continue
        assert plans[-1].kernel == name and (plans[-1](a, b) == a @ b).all()
    assert len(plans) > 1


def test_a_plan_in_threads(array):
    import threading

    a, b = array(32, 16), array(16, 32)
    plan, wrong = cutlet.plan_gemm(a, b), []

    def work():
        for _ in range(20):
            if not (plan(a, b) == a @ b).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@on_gpu
def test_a_plan_on_a_gpu():
    a, b, c = (torch.randint(-4, 5, (128, 128), device="cuda").to(torch.bfloat16) for _ in range(3))
    plan = cutlet.plan_gemm(a, b.t(), out=c)
    expected = (a.double() @ b.double().t()).to(torch.bfloat16)
    assert torch.equal(plan(a, b.t(), out=c), expected) and torch.equal(plan(a, b.t()), expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan(a, b.t(), out=c)
    a.zero_()
    graph.replay()
    assert not c.any()
    with pytest.raises((ValueError, RuntimeError)):
        plan(a.cpu(), b.t().cpu())


def test_times_of_the_cpu_say_nothing(array):
    with pytest.raises(RuntimeError, match="tune: a is on the CPU, whose times say nothing about a GPU"):
        cutlet.tune(array(8, 8), array(8, 8))


@on_gpu
@pytest.mark.parametrize("options", [{}, {"activation": "gelu"}, {"beta": 1.0}], ids=["plain", "gelu", "beta"])
def test_tuning(tmp_path, options):
    def matrix(m, n):
        return torch.randn(m, n, device="cuda").to(torch.bfloat16)

    a, b, c = matrix(256, 512), matrix(384, 512).t(), matrix(256, 384)
    before, path = [it.clone() for it in (a, b, c)], tmp_path / "my.tuning"
    tuned = cutlet.tune(a, b, out=c, path=path, **options)
    assert all(torch.equal(one, other) for one, other in zip(before, (a, b, c)))
    assert 0 < tuned.microseconds < 1e4 and tuned.gain > 0.99
    assert (tuned.kernel == tuned.estimated) == (tuned.gain == 1.0)
    assert tuned.kernel in str(tuned) and tuned.kernel in repr(tuned)
    assert "operands=bf16 c=bf16 precision=exact m=256 n=384 k=512 a=row b=col" in tuned.problem
    text = path.read_text()
    assert (tuned.problem in text) == (tuned.kernel != tuned.estimated)
    # It is installed already, and once more from the file.
    for _ in range(2):
        kernel = cutlet.plan_gemm(a, b, out=c, **options).kernel
        assert tuned.kernel.split("/")[0] == kernel
        cutlet.install_tuning(path)
    # An entry of a second product is added.
    cutlet.tune(a[:128], b, out=c[:128], path=path, install=False, **options)
    assert tuned.kernel == tuned.estimated or tuned.problem in path.read_text()


@on_gpu
def test_products_that_are_not_tuned(tmp_path):
    a, b = torch.randn(32, 64, device="cuda"), torch.randn(64, 32, device="cuda")
    with pytest.raises(ValueError, match="the product is gated or has no elements"):
        cutlet.tune(a, b, activation="swiglu")
    with pytest.raises(ValueError, match="the product is gated or has no elements"):
        cutlet.tune(a[:, :0], b[:0])
    path = tmp_path / "damaged.tuning"
    path.write_text("format=1\n")
    with pytest.raises(RuntimeError, match="damaged.tuning"):
        cutlet.tune(a, b, path=path)
