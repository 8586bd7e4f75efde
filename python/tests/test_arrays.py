"""How arrays tell where their elements are: by DLPack in each of its forms, and by array interfaces."""

import ctypes
import gc
import sys
import threading
import weakref

import numpy
import pytest

import cutlet


class Dlpack:
    """An array with `__dlpack__` alone, in the versioned form."""

    def __init__(self, array):
        self.array = array
        self.asked = []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.array.__dlpack__(**options)


class OldDlpack(Dlpack):
    """From before versions."""

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        return self.array.__dlpack__()


class Interface:
    """An array with `__array_interface__` alone."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("of", [Dlpack, OldDlpack, Interface])
def test_protocols(array, of):
    a, b, out = array(4, 6).T, array(4, 5), numpy.zeros((6, 5), "float32")
    wrapped = of(out)
    assert cutlet.gemm(of(a), of(b), out=wrapped) is wrapped
    numpy.testing.assert_array_equal(out, a @ b)


def test_a_version_is_asked_for(array):
    a = Dlpack(array(2, 3))
    cutlet.gemm(a, array(3, 4), out=numpy.zeros((2, 4), "float32"))
    assert a.asked == [{"max_version": (1, 0)}]


def test_capsules_are_given_back(array):
    a, b = array(4, 6), array(6, 5)
    counts = sys.getrefcount(a), sys.getrefcount(b)
    for _ in range(10):
        cutlet.gemm(a, b)
        with pytest.raises(ValueError):
            cutlet.gemm(a, a)
    assert (sys.getrefcount(a), sys.getrefcount(b)) == counts


def test_an_output_is_freed_with_its_last_reference(array):
    out = cutlet.gemm(array(4, 6), array(6, 5))
    freed = weakref.ref(out)
    del out
    gc.collect()
    assert freed() is None


def test_memory_does_not_grow(array):
    a, b, out = array(4, 6), array(6, 5), numpy.zeros((4, 5), "float32")

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    for _ in range(200):
        cutlet.gemm(a, b, out=out)
    before = resident()
    for _ in range(2000):
        cutlet.gemm(a, b, out=out)
    assert resident() - before < 256


def test_an_exception_of_the_array_is_passed_on(array):
    class Broken(Dlpack):
        def __dlpack__(self, **options):
            raise RuntimeError("moved away")

    with pytest.raises(RuntimeError, match="moved away"):
        cutlet.gemm(Broken(array(2, 3)), array(3, 4))


def test_a_device_without_kernels(array):
    class OnMetal(Dlpack):
        def __dlpack_device__(self):
            return (8, 3)

    with pytest.raises(ValueError, match="a is on device 3 of DLPack's type 8"):
        cutlet.gemm(OnMetal(array(2, 3)), array(3, 4))


def test_an_array_of_a_gpu_beside_one_of_the_cpu(array):
    with pytest.raises(ValueError, match="gemm: b is on GPU 0, and a is on the CPU; move one of them"):
        cutlet.gemm(array(2, 3), OnGpu(array(3, 4)))


class OnGpu(Dlpack):
    """Says that it is on GPU 0."""

    def __dlpack_device__(self):
        return (2, 0)


def test_a_gpu_without_a_driver(array):
    if "driver: NVIDIA" in cutlet.doctor():
        pytest.skip("there is a driver")
    with pytest.raises(RuntimeError, match="no NVIDIA driver.*; install the NVIDIA driver or pass arrays of the CPU"):
        cutlet.gemm(OnGpu(array(2, 3)), OnGpu(array(3, 4)))


class OfTorch:
    cuda_stream, device_index = 0, 1


class OfCupy:
    ptr, device_id = 0, 1


@pytest.mark.parametrize("stream", [OfTorch, OfCupy])
def test_a_stream_of_another_gpu(array, stream):
    with pytest.raises(ValueError, match="gemm: stream is of GPU 1, and a is on GPU 0; give a stream of GPU 0"):
        cutlet.gemm(OnGpu(array(2, 3)), OnGpu(array(3, 4)), stream=stream())


def test_threads_share_a_stream(array):
    a, b = array(24, 16), array(16, 24)
    expected, wrong = a @ b, []

    def work():
        for _ in range(20):
            if not numpy.array_equal(cutlet.gemm(a, b), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# The C exchange API, as a framework has it: its functions describe an array without an object of Python.


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


def capsule(pointer, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(pointer), name, None)


def test_both_of_dlpacks_devices_are_the_same(array):
    values = array(3)

    class Elsewhere:
        extents = (ctypes.c_int64 * 1)(3)
        tensor = Tensor(values.ctypes.data, Device(2, 1), 1, 2, 32, 1, extents, None, 0)
        managed = Managed(tensor, None, None)

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return capsule(self.managed, b"dltensor")

    match = "permute: source is on the CPU by its `__dlpack_device__`, and on GPU 1 by its `__dlpack__`"
    with pytest.raises(ValueError, match=match):
        cutlet.permute(Elsewhere())


DESCRIBE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("to_managed", ctypes.c_void_p),
        ("from_managed", ctypes.c_void_p),
        ("describe", DESCRIBE),
        ("stream", STREAM),
    ]


class Exchanged:
    """An array of a framework with the API."""

    def __init__(self, array):
        self.array = array
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*(it // array.itemsize for it in array.strides))


@DESCRIBE
def describe(array, tensor):
    found = tensor.contents
    found.data = array.array.ctypes.data - 8
    found.device = Device(1, 0)
    found.rank, found.code, found.bits, found.lanes = array.array.ndim, 2, 32, 1
    found.shape, found.strides, found.byte_offset = array.shape, array.strides, 8
    return 0


@STREAM
def no_stream(kind, number, stream):
    return -1


def api(major):
    table = Exchange((1, 3), None, None, None, None, describe, no_stream)
    if major != 1:
        newer = Exchange((major, 0), ctypes.addressof(table), None, None, None, describe, no_stream)
        newer.kept = table
        return newer
    return table


@pytest.mark.parametrize("major", [1, 2])
def test_the_exchange_api(array, major):
    table = api(major)
    of_framework = type("Array", (Exchanged,), {})
    of_framework.__dlpack_c_exchange_api__ = capsule(table, b"dlpack_exchange_api")
    of_framework.kept = table
    a, b, out = array(4, 6).T, array(4, 5), numpy.zeros((6, 5), "float32")
    cutlet.gemm(of_framework(a), of_framework(b), out=of_framework(out))
    numpy.testing.assert_array_equal(out, a @ b)


def test_a_second_framework_with_the_exchange_api_is_ordered():
    """The call waits for the current streams of both frameworks, and both wait for the call."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("there is no GPU, or PyTorch has no exchange API")
    side = torch.cuda.Stream()

    class Other:
        def __init__(self, tensor):
            self.tensor = tensor
            self.shape = (ctypes.c_int64 * tensor.ndim)(*tensor.shape)

    @DESCRIBE
    def on_gpu(array, found):
        found = found.contents
        found.data, found.device = array.tensor.data_ptr(), Device(2, 0)
        found.rank, found.code, found.bits, found.lanes = array.tensor.ndim, 2, 32, 1
        found.shape, found.byte_offset = array.shape, 0
        return 0

    @STREAM
    def current(kind, number, stream):
        stream[0] = side.cuda_stream
        return 0

    table = Exchange((1, 3), None, None, None, None, on_gpu, current)
    Other.__dlpack_c_exchange_api__ = capsule(table, b"dlpack_exchange_api")
    Other.kept = table
    a, b = (torch.randint(-4, 5, (64, 64), device="cuda").float() for _ in range(2))
    late = torch.zeros_like(b)
    expected = cutlet.gemm(a, b)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        late.copy_(b)
    torch.cuda._sleep(1_000_000)
    result = cutlet.gemm(a, Other(late))
    with torch.cuda.stream(side):
        late.zero_()
    torch.cuda.synchronize()
    assert torch.equal(result, expected)


def test_an_array_that_refuses_is_detached_once():
    class Refuses:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            raise BufferError("conjugate")

        def detach(self):
            return Refuses()

    with pytest.raises(BufferError, match="conjugate"):
        cutlet.permute(Refuses())


def test_masks_are_refused(array):
    values = array(3, 3)
    with pytest.raises(ValueError, match="with a mask, which no kernel reads"):
        cutlet.gemm(numpy.ma.array(values, mask=values > 0), values)


@pytest.mark.parametrize("interface", ["__array_interface__", "__cuda_array_interface__"])
def test_masks_of_interfaces_are_refused(array, interface):
    values = array(3, 3)
    with_mask = {**values.__array_interface__, "mask": values > 0}
    with pytest.raises(ValueError, match="source has a mask in its array interface, which no kernel reads"):
        cutlet.permute(type("Masked", (), {interface: with_mask})())
    without = type("Described", (), {"__array_interface__": {**with_mask, "mask": None}})()
    out = numpy.zeros((3, 3), "float32")
    numpy.testing.assert_array_equal(cutlet.permute(without, out=out), values.T)


@pytest.mark.parametrize("strides", [(), (4,), (4, 4, 4)])
def test_a_stride_for_each_dimension(array, strides):
    values = array(2, 2)

    class Described:
        __array_interface__ = {**values.__array_interface__, "strides": strides}

    with pytest.raises(ValueError, match="2 dimensions and . strides"):
        cutlet.permute(Described())


def test_what_an_interface_raises_is_passed_on():
    class Interrupted:
        @property
        def __array_interface__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cutlet.permute(Interrupted())
