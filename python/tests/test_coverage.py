"""Everything that wick computes is there for Python: a function, a docstring, a stub.

Walks the rows of ops.def as the module exports them (wick.ops()), and the headers of wick/tensor for
functions that are no rows.
"""

import ast
import inspect
import pathlib
import re

import pytest

import wick

SOURCE = pathlib.Path(__file__).parents[2]
STUB = pathlib.Path(wick.__file__).with_name("_core.pyi")
KINDS_WITH_METHODS = {"unary", "unary_with", "test", "binary", "compare", "reduce", "arg"}
# Of the rest, those that don't begin with the tensor they are about.
FUNCTIONS_ALONE = {"cat", "store_in_pages", "fill", "iota", "einsum", "uniform", "normal"}

# What C++ calls otherwise, or Python users have no use for.
OTHER_NAMES = {
    "gradients": "grad",
    "set_gradient": "Tensor.grad",
    "backward": "Tensor.backward",
    "grad_enabled": "is_grad_enabled",
    "t": "Tensor.mT",
    "rank": "Tensor.ndim",
    "elems": "Tensor.numel",
    "str": "Tensor.__repr__",
    "layout": "Tensor.strides",
    "slice": "Tensor.__getitem__",
    "to_vector": "Tensor.tolist",
    "needs_grad": "Tensor.requires_grad",
    "item": "Tensor.item",
    "std_dev": "std",
    "unique_all": "unique",
    "max_pool1d_with_indices": "max_pool1d",
    "max_pool2d_with_indices": "max_pool2d",
    "adaptive_max_pool1d_with_indices": "adaptive_max_pool1d",
    "adaptive_max_pool2d_with_indices": "adaptive_max_pool2d",
}
FOR_CPP_ALONE = {
    "rows_in_cache",  # how models cut their activations
    "packed_bytes",  # how models are split between devices
    "quiesce",  # called by the code that gives memory back to other libraries
    "defined",  # every tensor of Python is
    "require_values",  # called by functions that read values
    "storage",
    "view",
    "mutable_view",
    "node",
    "set_node",
}


def stub_of(tree: ast.Module | ast.ClassDef) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


TREE = ast.parse(STUB.read_text())
FUNCTIONS = stub_of(TREE)
CLASSES = {node.name: stub_of(node) for node in TREE.body if isinstance(node, ast.ClassDef)}


def check_stub(nodes: list[ast.FunctionDef], name: str, is_method: bool) -> None:
    assert nodes, f"no stub for {name}"
    for node in nodes:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for argument in arguments[1 if is_method else 0 :]:
            assert argument.annotation is not None, f"{name}: {argument.arg} has no type"
        assert node.returns is not None, f"{name} gives no type"


def test_the_module_exports_the_table() -> None:
    rows = re.findall(r"^WICK_[A-Z0-9_]+\s*\((\w+),", (SOURCE / "wick/op/ops.def").read_text(), re.MULTILINE)
    assert [op.name for op in wick.ops()] == rows and len(rows) > 80


@pytest.mark.parametrize("op", wick.ops(), ids=lambda op: op.name)
def test_every_row(op: wick.Op) -> None:
    assert op.functions, f"no function of Python serves {op.name}"
    assert op.dtypes and op.numeric_class in ("exact", "tree", "blocked", "bound")
    if op.name not in ("fill", "iota"):
        assert op.name in op.functions
    for name in op.functions:
        function = getattr(wick, name)
        assert callable(function)
        assert function.__doc__ and len(function.__doc__.split()) >= 5, name
        check_stub(FUNCTIONS.get(name, []), name, False)
        with pytest.raises((TypeError, wick.Error)):
            function(object())
    if op.kind in KINDS_WITH_METHODS or op.name not in FUNCTIONS_ALONE:
        method = getattr(wick.Tensor, op.name)
        assert callable(method) and method.__doc__
        check_stub(CLASSES["Tensor"].get(op.name, []), f"Tensor.{op.name}", True)


def test_docstrings_say_what_the_row_says() -> None:
    for op in wick.ops():
        if op.name in op.functions and op.name != "eye":
            text = inspect.getdoc(getattr(wick, op.name)) or ""
            assert all(line.rstrip(".") in text for line in op.doc.split("\n")), op.name
            assert f"Class: {op.numeric_class}" in text, op.name


def test_everything_else_has_docstring_and_stub() -> None:
    public = {name: getattr(wick, name) for name in dir(wick) if not name.startswith("_")}
    for name, value in public.items():
        if isinstance(value, type):
            assert value.__doc__, name
        elif callable(value):
            assert value.__doc__, name
            source = getattr(wick._core, name, None)
            if source is not None:
                check_stub(FUNCTIONS.get(name, []), name, False)
    for name in dir(wick.Tensor):
        if name.startswith("_"):
            continue
        assert getattr(wick.Tensor, name).__doc__, f"Tensor.{name}"
        assert name in CLASSES["Tensor"], f"no stub for Tensor.{name}"


def test_functions_of_the_headers() -> None:
    """Every function that wick/tensor/*.h declares, free or a member of Tensor."""
    names = set()
    for header in ["ops", "shape_ops", "index_ops", "functions", "random", "memory", "autograd"]:
        text = (SOURCE / "wick/tensor" / f"{header}.h").read_text()
        names |= set(re.findall(r"^WICK_API [\w:<>]+ (\w+)\(", text, re.MULTILINE))
    names -= {"name"}  # of the macros: the rows
    members = re.findall(r"^  (?:\[\[nodiscard\]\] )?(?:static )?(?:const )?[\w:<>]+&? (\w+)\(",
                         (SOURCE / "wick/tensor/tensor.h").read_text().split(" private:")[0], re.MULTILINE)
    assert len(names) > 60 and {"narrow", "reshape", "detach", "arange"} <= set(members)
    missing = []
    for name in sorted(names | set(members) - {"Tensor"}):
        if name in FOR_CPP_ALONE or name in ("from", "require_defined", "resolve_dim"):
            continue
        where = OTHER_NAMES.get(name, name)
        owner, attribute = (wick.Tensor, where[7:]) if where.startswith("Tensor.") else (wick, where)
        if not hasattr(owner, attribute) and not hasattr(wick.Tensor, attribute):
            missing.append(name)
    assert not missing


def test_every_dim_may_be_called_axis() -> None:
    """A signature with `dim` stands beside one with `axis` in its place."""
    checked = 0
    for owner in [FUNCTIONS, CLASSES["Tensor"]]:
        for name, nodes in owner.items():
            signatures = {ast.unparse(node.args) for node in nodes}
            for node in nodes:
                if name not in ("size", "slice_set") and any(a.arg == "dim" for a in node.args.args):
                    assert re.sub(r"\bdim\b", "axis", ast.unparse(node.args)) in signatures, name
                    checked += 1
    assert checked > 70


def test_stubs_read_well() -> None:
    text = STUB.read_text()
    assert "None | None" not in text
    defaults = set(re.findall(r"eps: float = ([^,)]+)", text))
    assert defaults == {"1e-05"}
    # NumPy's integers have __index__, but are no ints for type checkers.
    for name in ["zeros", "ones", "full", "sum", "conv2d"]:
        for function in FUNCTIONS[name]:
            assert "SupportsIndex | Sequence[SupportsIndex]" in ast.unparse(function.args), name
