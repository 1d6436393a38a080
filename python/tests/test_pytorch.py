"""Memory shared with PyTorch, where it is installed."""

import gc

import pytest

import wick

torch = pytest.importorskip("torch")

DTYPES = ["uint8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_ways_without_a_copy(dtype: str) -> None:
    base = torch.arange(24, dtype=getattr(torch, dtype)).reshape(2, 3, 4)
    for theirs in [base, base.mT, base[:, 1:, ::2], base[1, 2, 3], base[:, :0], base[:, :1].expand(2, 5, 4)]:
        mine = wick.from_dlpack(theirs)
        assert mine.dtype.name == dtype and mine.shape == tuple(theirs.shape)
        assert mine.tolist() == theirs.tolist()
        back = torch.from_dlpack(mine)
        assert back.dtype == theirs.dtype and back.tolist() == theirs.tolist()
        if theirs.numel():
            assert back.data_ptr() == theirs.data_ptr()
            assert torch.from_dlpack(wick.from_dlpack(back)).data_ptr() == theirs.data_ptr()


def test_who_shares_keeps() -> None:
    theirs = torch.arange(1000.0)
    mine = wick.from_dlpack(theirs)[::2]
    theirs[20] = -1
    assert mine[10].item() == -1
    del theirs
    gc.collect()
    assert mine[1].item() == 2
    mine = wick.arange(1000.0)
    back = torch.from_dlpack(mine)
    del mine
    gc.collect()
    wick.trim_memory()
    assert back[999].item() == 999


def test_leaves() -> None:
    leaf = wick.ones(2, requires_grad=True)
    assert torch.from_dlpack(leaf).tolist() == [1, 1]
    with pytest.raises(Exception):
        wick.from_dlpack(torch.ones(2, requires_grad=True))
    assert wick.from_dlpack(torch.ones(2, requires_grad=True).detach()).tolist() == [1, 1]


def test_bools_are_bools_and_others_are_refused() -> None:
    assert wick.from_dlpack(torch.tensor([True, False])).dtype is wick.bool
    assert wick.arange(3)[torch.tensor([True, False, True])].tolist() == [0, 2]
    assert wick.arange(3)[torch.tensor([2, 0], dtype=torch.uint8)].tolist() == [2, 0]
    for dtype in [torch.complex64, torch.int8]:
        with pytest.raises(wick.Error, match="from_dlpack: unsupported dtype"):
            wick.from_dlpack(torch.zeros(2, dtype=dtype))


def test_the_same_numbers() -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    mine = wick.from_dlpack(x)
    for name, arguments in [("exp", ()), ("tanh", ()), ("softmax", (-1,)), ("cumsum", (0,)), ("sum", (1,)), ("argmax", (0,)),
                            ("tril", ()), ("logsumexp", (1,)), ("pow", (2,)), ("maximum", (x,)), ("atan2", (x,))]:  # fmt: skip
        theirs = getattr(torch, name)(x, *arguments)
        own = [mine if a is x else a for a in arguments]
        assert torch.allclose(torch.from_dlpack(getattr(mine, name)(*own)).to(theirs.dtype), theirs, atol=1e-6), name


needs_a_gpu = pytest.mark.skipif(
    not (torch.cuda.is_available() and "cuda:0" in map(str, wick.devices())), reason="no GPU for both"
)


@needs_a_gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_a_gpu_without_a_copy(dtype: str) -> None:
    base = torch.arange(24, dtype=getattr(torch, dtype), device="cuda").reshape(2, 3, 4)
    for theirs in [base, base.mT, base[:, 1:, ::2], base[1, 2, 3], base[:, :0], base[:, :1].expand(2, 5, 4)]:
        mine = wick.from_dlpack(theirs)
        assert mine.device == "cuda:0" and mine.dtype.name == dtype and mine.shape == tuple(theirs.shape)
        assert mine.cpu().tolist() == theirs.tolist()
        assert (mine + mine).cpu().tolist() == (theirs + theirs).tolist()
        back = torch.from_dlpack(mine)
        assert back.device == theirs.device and back.tolist() == theirs.tolist()
        if theirs.numel():
            assert back.data_ptr() == theirs.data_ptr()


@needs_a_gpu
def test_work_of_one_waits_for_that_of_the_other() -> None:
    a = torch.ones(4096, 4096, device="cuda")
    for stream in [torch.cuda.current_stream(), torch.cuda.Stream()]:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = a
            for _ in range(40):  # long enough for a reader that doesn't wait to be early
                y = (y @ a) / 4096
            y = y * 3
            mine = wick.from_dlpack(y)
        assert mine.min().item() == mine.max().item() == 3
    x = wick.ones((4096, 4096), device="cuda:0")
    for _ in range(40):
        x = x.matmul(wick.ones((4096, 4096), device="cuda:0")) / 4096
    assert torch.from_dlpack(x * 2).min().item() == 2


@needs_a_gpu
def test_a_gpus_memory_lives_as_long_as_it_is_read() -> None:
    for _ in range(20):
        mine = wick.from_dlpack(torch.full((1 << 22,), 5.0, device="cuda"))
        total = (mine * 2).sum()
        del mine
        torch.full((1 << 22,), -1.0, device="cuda")  # takes the memory that is free again
        assert total.item() == 10 * (1 << 22)
