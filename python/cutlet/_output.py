"""Outputs that the framework of an operand makes."""

import sys


def empty(operation, like, shape, dtype, stream):
    """An array of ``shape`` beside ``like``, whose elements are not set. ``dtype`` is a name, or None for that of
    ``like``.

    Memory of a GPU belongs to ``stream`` (a handle) if there is one, and else to the framework's current stream.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return _of_torch(torch, like, shape, like.dtype if dtype is None else getattr(torch, dtype), stream)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(like, numpy.ndarray):
        return numpy.empty(shape, like.dtype if dtype is None else dtype)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(like, cupy.ndarray):
        return _of_cupy(cupy, like, shape, like.dtype if dtype is None else dtype, stream)
    raise TypeError(
        f"{operation}: no output was passed, and a {type(like).__module__}.{type(like).__qualname__} is no array that "
        "may be written; pass an output of PyTorch, CuPy or NumPy"
    )


def _of_torch(torch, like, shape, dtype, stream):
    device = like.device
    if stream is None:
        return torch.empty(shape, dtype=dtype, device=device)
    cuda = torch.cuda
    with cuda.stream(cuda.ExternalStream(stream, device) if stream else cuda.default_stream(device)):
        return torch.empty(shape, dtype=dtype, device=device)


def _of_cupy(cupy, like, shape, dtype, stream):
    with like.device:
        if stream is None:
            return cupy.empty(shape, dtype)
        with cupy.cuda.ExternalStream(stream) if stream else cupy.cuda.Stream.null:
            return cupy.empty(shape, dtype)
