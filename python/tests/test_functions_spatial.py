"""conv3d, adaptive pools, interpolate and pixel_shuffle beside loops over NumPy's arrays."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from test_functions_move import check_gradient

import wick

RNG = np.random.default_rng(11)
# What a dtype's rounding of a sum of some dozens of products allows.
NEAR = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def conv3d(x, w, b, stride, padding, dilation, groups):
    """The definition, output by output."""
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    o, per = w.shape[:2]
    sizes = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(3)]
    y = np.zeros((x.shape[0], o, *sizes))
    for place in np.ndindex(*sizes):
        cut = tuple(slice(place[i] * stride[i], place[i] * stride[i] + dilation[i] * (w.shape[2 + i] - 1) + 1, dilation[i])
                    for i in range(3))  # fmt: skip
        for out in range(o):
            first = out // (o // groups) * per
            under = x[(slice(None), slice(first, first + per), *cut)]
            y[(slice(None), out, *place)] = (under * w[out]).sum((1, 2, 3, 4))
    return y if b is None else y + b.reshape(1, -1, 1, 1, 1)


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize(
    "size, kernel, stride, padding, dilation, groups",
    [
        ((5, 6, 7), (3, 3, 3), 1, 1, 1, 1), ((4, 5, 6), (2, 3, 1), (1, 2, 3), (1, 0, 2), 1, 2),
        ((7, 6, 5), (3, 2, 2), 2, (2, 1, 0), (2, 3, 1), 1), ((1, 4, 4), (1, 2, 2), 1, 0, 1, 4),
        ((6, 3, 3), (4, 1, 1), (3, 1, 1), 0, 1, 1), ((3, 3, 3), (3, 3, 3), 1, 0, 1, 2),
    ],
)  # fmt: skip
def test_conv3d(dtype, size, kernel, stride, padding, dilation, groups) -> None:
    def three(value):
        return (value,) * 3 if isinstance(value, int) else value

    x = wick.tensor(RNG.uniform(-1, 1, (2, 4, *size))).to(dtype)
    w = wick.tensor(RNG.uniform(-1, 1, (8, 4 // groups, *kernel))).to(dtype)
    b = wick.tensor(RNG.uniform(-1, 1, 8)).to(dtype)
    a, k, v = (t.to("float64").numpy() for t in (x, w, b))
    for bias, values in [(None, None), (b, v)]:
        y = wick.conv3d(x, w, bias, stride, padding, dilation, groups)
        expected = conv3d(a, k, values, three(stride), three(padding), three(dilation), groups)
        assert y.dtype == dtype and y.shape == expected.shape and y.is_contiguous()
        assert np.allclose(y.to("float64").numpy(), expected, rtol=NEAR[dtype], atol=10 * NEAR[dtype])
    # Strided operands, and one without a batch.
    turned = x.transpose(2, 4).contiguous().transpose(2, 4)
    assert x.conv3d(w, b, stride, padding, dilation, groups).equal(wick.conv3d(turned, w, b, stride, padding, dilation, groups))
    assert x[0].conv3d(w, None, stride, padding, dilation, groups).equal(
        wick.conv3d(x[:1], w, None, stride, padding, dilation, groups).squeeze(0))  # fmt: skip


def test_conv3d_as_conv2d_and_same() -> None:
    x, w = wick.randn(2, 3, 1, 6, 5), wick.randn(4, 3, 1, 3, 2)
    assert wick.conv3d(x, w, padding=(0, 1, 0)).squeeze(2).allclose(wick.conv2d(x.squeeze(2), w.squeeze(2), padding=(1, 0)))
    volume = wick.randn(1, 2, 5, 6, 7)
    for kernel, dilation in itertools.product([1, 2, 3, 4], [1, 2]):
        if dilation * (kernel - 1) >= 5:
            continue
        weight = wick.randn(2, 2, kernel, 2, 1)
        y = wick.conv3d(volume, weight, padding="same", dilation=dilation)
        reach = [dilation * (k - 1) for k in (kernel, 2, 1)]
        wide = np.pad(volume.numpy(), [(0, 0), (0, 0)] + [(r // 2, r - r // 2) for r in reach])
        expected = conv3d(wide, weight.numpy(), None, (1,) * 3, (0,) * 3, (dilation,) * 3, 1)
        assert y.shape == volume.shape and np.allclose(y.numpy(), expected, atol=1e-5)
    assert wick.conv3d(volume, wick.ones(1, 2, 2, 2, 2), padding="valid").shape == (1, 1, 4, 5, 6)


def test_conv3d_gradient() -> None:
    x, w, b = RNG.uniform(-1, 1, (2, 2, 3, 3, 2)), RNG.uniform(-1, 1, (2, 1, 2, 2, 2)), RNG.uniform(-1, 1, 2)
    check_gradient(lambda *t: wick.conv3d(*t, stride=(2, 1, 1), padding=(1, 0, 1), groups=2), x, w, b)
    check_gradient(lambda t, k: wick.conv3d(t, k, dilation=(2, 1, 1), groups=2), x, w)


def test_conv3d_refuses() -> None:
    x, w = wick.ones(1, 2, 3, 3, 3), wick.ones(4, 2, 2, 2, 2)
    for call, message in [
        (lambda: wick.conv3d(x, w[0]), "wrong rank"), (lambda: wick.conv3d(x[0, 0], w), "wrong rank"),
        (lambda: wick.conv3d(x, w, groups=2), "channels don't fit"),
        (lambda: wick.conv3d(x, w, stride=0), "parameters out of range"),
        (lambda: wick.conv3d(x, w, padding=-1), "parameters out of range"),
        (lambda: wick.conv3d(x, wick.ones(4, 2, 4, 2, 2)), "kernel larger than the padded input: .*: dim 2"),
        (lambda: wick.conv3d(x, wick.ones(4, 2, 2, 2, 4)), "kernel larger than the padded input: .*: dim 4"),
        (lambda: wick.conv3d(x, w, dilation=(1, 3, 1)), "kernel larger than the padded input: .*: dim 3"),
        (lambda: wick.conv3d(x, w, wick.ones(3)), "bias has the wrong shape"),
        (lambda: wick.conv3d(x, w.to("float64")), "dtypes differ"),
        (lambda: wick.conv3d(x, wick.ones(4, 2, 0, 2, 2)), "an empty kernel"),
        (lambda: wick.conv3d(x, w, padding="same", stride=2), 'padding "same" with a stride'),
    ]:
        with pytest.raises(wick.Error, match=f"^conv3d: {message}"):
            call()
    with pytest.raises(TypeError, match="^conv3d: stride: need one int or three"):
        wick.conv3d(x, w, stride=(1, 1))


def pooled(a: np.ndarray, sizes: tuple[int, ...], f) -> np.ndarray:
    """The definition: window i covers [floor(i * size / count), ceil((i + 1) * size / count))."""
    y = np.zeros((*a.shape[:2], *sizes))
    for place in np.ndindex(*sizes):
        cut = tuple(slice(i * a.shape[2 + d] // sizes[d], -((i + 1) * a.shape[2 + d] // -sizes[d])) for d, i in enumerate(place))
        window = a[(slice(None), slice(None), *cut)]
        y[(slice(None), slice(None), *place)] = f(window, tuple(range(2, a.ndim)))
    return y


@pytest.mark.parametrize("dtype", NEAR)
def test_adaptive_pools_1d(dtype: str) -> None:
    for size, count in itertools.product([1, 2, 5, 6, 7, 12, 13], [1, 2, 3, 4, 5, 6, 8, 13, 20]):
        x = wick.tensor(RNG.uniform(-1, 1, (2, 3, size))).to(dtype)
        a = x.to("float64").numpy()
        mean, most = x.adaptive_avg_pool1d(count), wick.adaptive_max_pool1d(x, count)
        assert mean.dtype == dtype and most.dtype == dtype
        assert np.allclose(mean.to("float64").numpy(), pooled(a, (count,), np.mean), rtol=NEAR[dtype], atol=NEAR[dtype] / 4)
        assert (most.to("float64").numpy() == pooled(a, (count,), np.max)).all()
        assert x[0].adaptive_avg_pool1d(count).equal(mean[0]) and x[0].adaptive_max_pool1d((count,)).equal(most[0])


@pytest.mark.parametrize("dtype", NEAR)
def test_adaptive_pools_2d(dtype: str) -> None:
    for size, counts in itertools.product([(5, 7), (6, 4), (3, 1)], [(1, 1), (3, 2), (2, 5), (5, 7), (8, 3), (6, 4)]):
        x = wick.tensor(RNG.uniform(-1, 1, (2, 3, *size))).to(dtype).transpose(2, 3).contiguous().transpose(2, 3)
        a = x.to("float64").numpy()
        mean, most = x.adaptive_avg_pool2d(counts), x.adaptive_max_pool2d(counts)
        assert np.allclose(mean.to("float64").numpy(), pooled(a, counts, np.mean), rtol=NEAR[dtype], atol=NEAR[dtype] / 4)
        assert (most.to("float64").numpy() == pooled(a, counts, np.max)).all()
        assert x[1].adaptive_max_pool2d(counts).equal(most[1])


def test_adaptive_pools_beside_others() -> None:
    x = wick.randn(1, 2, 6, 8)
    assert x.adaptive_avg_pool2d((3, 4)).equal(x.avg_pool2d(2)) and x.adaptive_max_pool2d(2).equal(x.max_pool2d((3, 4)))
    assert x.adaptive_avg_pool2d(None).equal(x) and x.adaptive_avg_pool2d((None, 4)).shape == (1, 2, 6, 4)
    assert x.adaptive_max_pool2d((5, None)).shape == (1, 2, 5, 8)
    assert x.to("int32").adaptive_max_pool2d((5, 5)).dtype == wick.int32
    # NaN wins, infinities stay where they are.
    y = wick.tensor([[[1.0, math.nan, 3.0, math.inf, 5.0]]])
    assert np.isnan(y.adaptive_max_pool1d(3).numpy()).tolist() == [[[True, True, False]]]
    assert np.isnan(y.adaptive_avg_pool1d(3).numpy()).tolist() == [[[True, True, False]]]
    assert y.adaptive_avg_pool1d(4).tolist()[0][0][-1] == math.inf
    # Sums of many numbers don't overflow in 16 bits, nor stop growing.
    assert wick.full((1, 1, 4097), 60000.0, dtype="float16").adaptive_avg_pool1d(2).tolist() == [[[60000.0] * 2]]


def test_adaptive_pool_gradients() -> None:
    a, line = RNG.uniform(-1, 1, (1, 2, 5, 4)), RNG.uniform(-1, 1, (1, 2, 7))
    for sizes in [(3, 3), (5, 2), (1, 1), (7, 3)]:
        check_gradient(lambda t, s=sizes: t.adaptive_avg_pool2d(s), a)
        check_gradient(lambda t, s=sizes: t.adaptive_max_pool2d(s), a)
    for size in [3, 7, 9]:
        check_gradient(lambda t, s=size: t.adaptive_avg_pool1d(s), line)
        check_gradient(lambda t, s=size: t.adaptive_max_pool1d(s), line)
    # Of several largest elements the first one has the gradient.
    x = wick.ones(1, 1, 5, requires_grad=True)
    x.adaptive_max_pool1d(2).sum().backward()
    assert x.grad.tolist() == [[[1, 0, 1, 0, 0]]]


def test_adaptive_pools_refuse() -> None:
    x = wick.ones(1, 1, 4, 4)
    for name in ["adaptive_avg_pool2d", "adaptive_max_pool2d"]:
        for wrong in [0, (2, -1), (2**62, 2)]:
            with pytest.raises(wick.Error, match=f"^({name}|alloc|shape): "):
                getattr(x, name)(wrong)
        with pytest.raises(ValueError, match=f"^{name}: wrong rank"):
            getattr(wick.ones(1, 4), name)(2)
        with pytest.raises(ValueError, match=f"^{name}: an empty image"):
            getattr(wick.ones(1, 1, 0, 4), name)(2)
        with pytest.raises(TypeError, match=f"^{name}: output_size: need one size or 2"):
            getattr(x, name)((1, 2, 3))
        with pytest.raises(TypeError, match=f"^{name}: output_size: need "):
            getattr(x, name)(1.5)
    with pytest.raises(TypeError, match="^adaptive_avg_pool2d: unsupported dtype"):
        x.to("int64").adaptive_avg_pool2d(3)


def linear(a: np.ndarray, axis: int, size: int, factor: float | None, align: bool) -> np.ndarray:
    n = a.shape[axis]
    i = np.arange(size)
    if align:
        at = i * ((n - 1) / (size - 1)) if size > 1 else i * 0.0
    else:
        at = np.maximum((i + 0.5) * (n / size if factor is None else 1 / factor) - 0.5, 0)
    low = np.minimum(np.floor(at).astype(int), n - 1)
    high, share = np.minimum(low + 1, n - 1), (at - low).reshape([-1 if d == axis else 1 for d in range(a.ndim)])
    return a.take(low, axis) * (1 - share) + a.take(high, axis) * share


def nearest(a: np.ndarray, axis: int, size: int, factor: float | None) -> np.ndarray:
    n = a.shape[axis]
    ids = np.floor(np.arange(size) * (n / size if factor is None else 1 / factor)).astype(int)
    return a.take(np.minimum(ids, n - 1), axis)


@pytest.mark.parametrize("to", [{"size": (7, 9)}, {"size": 3}, {"scale_factor": 2}, {"scale_factor": (1.5, 0.5)}])
def test_interpolate_images(to) -> None:
    a = RNG.uniform(-1, 1, (2, 3, 4, 6))
    x = wick.tensor(a)
    size, factor = to.get("size"), to.get("scale_factor")
    sizes = (size, size) if isinstance(size, int) else size
    factors = (factor, factor) if isinstance(factor, int) else factor or (None, None)
    sizes = sizes or tuple(math.floor(a.shape[2 + i] * factors[i]) for i in range(2))
    expected = nearest(nearest(a, 2, sizes[0], factors[0]), 3, sizes[1], factors[1])
    assert x.interpolate(**to).tolist() == expected.tolist() == wick.interpolate(x, **to, mode="nearest").tolist()
    for align in (None, False, True):
        got = x.interpolate(**to, mode="bilinear", align_corners=align)
        rows = linear(a, 2, sizes[0], factors[0], bool(align))
        assert np.allclose(got.numpy(), linear(rows, 3, sizes[1], factors[1], bool(align)), atol=1e-12)
    assert np.allclose(x.interpolate(**to, mode="area").numpy(), pooled(a, sizes, np.mean), atol=1e-12)


@pytest.mark.parametrize("to", [{"size": 9}, {"size": (3,)}, {"scale_factor": 2.5}, {"scale_factor": 0.5}])
def test_interpolate_lines(to) -> None:
    a = RNG.uniform(-1, 1, (2, 3, 6))
    x = wick.tensor(a)
    factor = to.get("scale_factor")
    size = to["size"] if "size" in to else math.floor(6 * factor)
    size = size[0] if isinstance(size, tuple) else size
    assert x.interpolate(**to).tolist() == nearest(a, 2, size, factor).tolist()
    for align in (None, True):
        got = x.interpolate(**to, mode="linear", align_corners=align)
        assert np.allclose(got.numpy(), linear(a, 2, size, factor, bool(align)), atol=1e-12)
    assert np.allclose(x.interpolate(**to, mode="area").numpy(), pooled(a, (size,), np.mean), atol=1e-12)


def test_interpolate_gradients_and_errors() -> None:
    image, line = RNG.uniform(-1, 1, (1, 1, 3, 4)), RNG.uniform(-1, 1, (1, 2, 4))
    for mode in ["nearest", "bilinear", "area"]:
        check_gradient(lambda t, m=mode: t.interpolate((5, 3), mode=m), image)
    for mode in ["nearest", "linear", "area"]:
        check_gradient(lambda t, m=mode: t.interpolate(7, mode=m), line)
    x = wick.ones(1, 1, 4, 4)
    for call, message in [
        (lambda: x.interpolate(2, mode="bicubic"), "no such mode: bicubic: nearest, linear, bilinear or area"),
        (lambda: x.interpolate(2, align_corners=True), "align_corners with mode nearest"),
        (lambda: x.interpolate(2, mode="linear"), "wrong rank"), (lambda: x[0].interpolate(2, mode="bilinear"), "wrong rank"),
        (lambda: x.flatten().interpolate(2), "wrong rank"), (lambda: x.interpolate(0), "sizes don't fit"),
        (lambda: x.interpolate(scale_factor=-1.0), "scale factor isn't positive"),
    ]:
        with pytest.raises(wick.Error, match=f"^interpolate: ({message})"):
            call()
    for call in [lambda: x.interpolate(), lambda: x.interpolate(2, 2.0), lambda: x[0].interpolate(),
                 lambda: x[0].interpolate(scale_factor=(1.0, 2.0)), lambda: x[0].interpolate((1, 2))]:  # fmt: skip
        with pytest.raises(TypeError, match="^interpolate: "):
            call()


@pytest.mark.parametrize("r", [1, 2, 3])
def test_pixel_shuffle(r: int) -> None:
    for lead in [(), (2,), (2, 3)]:
        a = RNG.integers(0, 100, (*lead, 2 * r * r, 3, 4))
        x = wick.tensor(a)
        expected = np.zeros((*lead, 2, 3 * r, 4 * r))
        for c, i, j, h, w in np.ndindex(2, r, r, 3, 4):
            expected[..., c, h * r + i, w * r + j] = a[..., c * r * r + i * r + j, h, w]
        y = x.pixel_shuffle(r)
        assert y.tolist() == expected.tolist() and y.pixel_unshuffle(r).equal(x)
        assert wick.pixel_shuffle(x, upscale_factor=r).equal(y)
    check_gradient(lambda t: t.pixel_shuffle(2), RNG.uniform(-1, 1, (4, 2, 2)))


def test_pixel_shuffle_refuses() -> None:
    x = wick.ones(1, 4, 3, 2)
    for call, message in [
        (lambda: x.pixel_shuffle(3), "pixel_shuffle: channels don't divide"),
        (lambda: x.pixel_shuffle(0), "pixel_shuffle: factor out of range"),
        (lambda: x[0, 0].pixel_shuffle(1), "pixel_shuffle: rank below 3"),
        (lambda: x.pixel_unshuffle(2), "pixel_unshuffle: sizes don't divide"),
        (lambda: x.pixel_unshuffle(2**40), "pixel_unshuffle: factor out of range"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}"):
            call()
