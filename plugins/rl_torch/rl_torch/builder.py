"""GraphBuilder and Executable for PyTorch: ``eager`` runs the components, ``static`` is one compiled graph an api."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optree
import torch
import torch._dynamo
import torch.fx.experimental._config as fx_config

from rl_torch.ops import Group, StaticTorchOps, TorchOps
from rl_torch.overrides import OVERRIDES
from rlcore.backend import Capabilities, Executable, GraphBuilder
from rlcore.component_graph import ApiGraph, ComponentGraph
from rlcore.errors import BuildError, ConfigError
from rlcore.layout import Instance
from rlcore.noise import NoiseFeed
from rlcore.ops import Ops
from rlcore.specs import is_spec


class TorchGraphBuilder(GraphBuilder):
    name = "torch"
    capabilities = Capabilities(modes=("eager", "static"), gradients=True, devices=("cpu", "cuda"))
    overrides = OVERRIDES

    @property
    def ops(self) -> Ops:
        return TorchOps()

    def _build(self, graph: ComponentGraph, instance: Instance, mode: str, device: str, seed: int) -> Executable:
        if device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("backend 'torch': device 'cuda' was asked for, but torch sees no GPU. Use device='cpu'")
        return TorchExecutable(graph, instance, mode, device, seed)


class TorchExecutable(Executable):
    """Trained variables lie in one tensor, frozen ones in another; components hold views."""

    def __init__(self, graph: ComponentGraph, instance: Instance, mode: str, device: str, seed: int) -> None:
        super().__init__(graph, instance, mode, seed)
        self.device, self._on_cpu = torch.device(device), device == "cpu"
        static = mode == "static"
        storage = {
            trained: torch.zeros(sum(b.size for b in instance.blocks if b.trainable is trained), device=self.device)
            for trained in (True, False)
        }
        self._views: dict[str, torch.Tensor] = {}
        self._groups: list[Group] = []
        for block, slots in zip(instance.blocks, instance.block_slots, strict=True):
            flat = storage[block.trainable][block.offset : block.offset + block.size]
            flat.copy_(torch.from_numpy(block.draw(seed)))
            if static:
                flat = flat.clone()  # a graph's inputs must not share memory
            group = Group(flat, slots)
            for slot, part in zip(slots, torch.split(flat, group.sizes), strict=True):
                self._views[slot.variable.path] = part.view(slot.variable.shape)
                leaf = self._views[slot.variable.path].detach()
                if block.trainable and not static:
                    leaf.requires_grad_()
                    group.leaves.append(leaf)
                setattr(slot.component, slot.attribute, leaf)
            self._groups.append(group)
        self._trained_parts = [g.flat for g, b in zip(self._groups, instance.blocks, strict=True) if b.trainable]
        for slot in instance.loose:
            tensor = torch.from_numpy(slot.variable.draw(seed)).to(self.device)
            setattr(slot.component, slot.attribute, tensor)
            self._views[slot.variable.path] = tensor
        for handle, index in instance.handles:
            if index is not None:
                handle.group, handle.flat = self._groups[index], self._groups[index].flat  # type: ignore[attr-defined]
        ops = StaticTorchOps() if static else TorchOps()
        for component in instance.components.values():
            component.ops = ops

    # -- functions -------------------------------------------------------------------------------
    def _make_function(self, api: ApiGraph) -> Callable[..., Any]:
        method = getattr(self.instance.root, api.name)
        if api.noise:
            method = _with_noise(method, NoiseFeed(self.instance, api), len(api.inputs))
        if self.mode == "static":
            return self._compile(api, method)
        no_grad = torch.no_grad

        def function(*args: Any) -> Any:
            with no_grad():
                return method(*args)

        return function

    def _compile(self, api: ApiGraph, method: Callable[..., Any]) -> Callable[..., Any]:
        groups = [g for g in self._groups if any(c._path in api.reached for c, _, _ in g.places)]
        places = [(c, a, getattr(c, a)) for g in groups for c, a, _ in g.places]

        def body(*args: Any) -> Any:
            for group in groups:
                group.bind(group.flat)
            out = method(*args)
            for component, attribute, _ in places:  # what was bound while tracing must not stay
                setattr(component, attribute, None)
            return out

        def read_only(*args: Any) -> Any:  # views may be inputs: nothing they share memory with is written
            return method(*args)

        def put_back() -> None:
            for component, attribute, view in places:
                setattr(component, attribute, view)

        inductor = torch._dynamo.lookup_backend("inductor")

        def compile_graph(module: Any, inputs: Any) -> Any:
            self.trace_count[api.name] += 1
            return inductor(module, inputs)

        # No guards: the tree is this build's private copy that nobody changes, the named axes are marked dynamic,
        # and __call__ checks every input. With them, a small network waits as long for its guards as it computes.
        options: Any = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
        compiled = torch.compile(
            _own_code(body if api.writes else read_only, api.name),
            fullgraph=True,
            backend=compile_graph,
            options=options,
        )
        specs = optree.tree_leaves(tuple(api.inputs.values()), is_leaf=is_spec) + [n.spec for n in api.noise]
        no_grad = torch.no_grad

        def read(*args: Any) -> Any:
            with no_grad():
                return compiled(*args)

        def write(*args: Any) -> Any:
            with no_grad():
                out = compiled(*args)
            put_back()
            return out

        run = write if api.writes else read

        def first(*args: Any) -> Any:
            for spec, tensor in zip(specs, optree.tree_leaves(args), strict=True):
                for i, axis in enumerate(spec.axes):
                    if axis:
                        torch._dynamo.mark_dynamic(tensor, i)
            try:
                # Without it a batch of one would be a graph of its own.
                with fx_config.patch(backed_size_oblivious=True):
                    out = run(*args)
            except torch._dynamo.exc.Unsupported as e:
                root = self.instance.root
                reason = f"a part of it can't be in a static graph: {str(e).splitlines()[0]}"
                raise BuildError(reason, path="", component=type(root).__name__, api=api.name) from e
            except torch._dynamo.exc.BackendCompilerFailed as e:
                if "No working C++ compiler" not in str(e):
                    raise
                raise ConfigError(
                    "backend 'torch', mode 'static': torch.compile finds no C++ compiler. Install one (g++ or clang++, "
                    "or name it in the environment variable CXX), or use mode 'eager'"
                ) from e
            self._functions[api.name] = run
            return out

        return first

    # -- arrays ----------------------------------------------------------------------------------
    def from_numpy(self, array: np.ndarray) -> Any:
        if not array.flags.carray:  # torch takes no negative strides, and a graph is specialised on strides
            array = np.array(array, order="C")
        try:
            tensor = torch.from_numpy(array)
        except ValueError:  # one row of a reversed array: contiguous to NumPy, a negative stride to torch
            tensor = torch.from_numpy(array.copy())
        return tensor if self._on_cpu else tensor.to(self.device)

    def to_numpy(self, tensor: Any) -> np.ndarray:
        if not self._on_cpu or tensor.requires_grad:
            tensor = tensor.detach().cpu()
        return tensor.numpy()

    # -- state -----------------------------------------------------------------------------------
    def _read_trainable(self) -> np.ndarray:
        if not self._trained_parts:
            return np.zeros(0, np.float32)
        return torch.cat(self._trained_parts).cpu().numpy()

    def _write_trainable(self, buffer: np.ndarray) -> None:
        source, offset = self.from_numpy(buffer), 0
        for part in self._trained_parts:
            part.copy_(source[offset : offset + part.numel()])
            offset += part.numel()

    def get_state(self) -> dict[str, np.ndarray]:
        return {path: view.detach().cpu().numpy().copy() for path, view in self._views.items()}

    def _write_state(self, state: Mapping[str, np.ndarray]) -> None:
        with torch.no_grad():
            for path, view in self._views.items():
                view.copy_(torch.from_numpy(np.array(state[path])))


_numbers = itertools.count()


def _own_code(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same function with a code object of its own: Dynamo keeps its graphs, and counts them, by code object."""
    code = function.__code__.replace(co_name=f"{name}_{next(_numbers)}")
    return types.FunctionType(code, function.__globals__, code.co_name, function.__defaults__, function.__closure__)


def _with_noise(method: Callable[..., Any], feed: NoiseFeed, count: int) -> Callable[..., Any]:
    def fed(*args: Any) -> Any:
        feed.fill(args[count:])
        out = method(*args[:count])
        feed.clear()
        return out

    return fed
