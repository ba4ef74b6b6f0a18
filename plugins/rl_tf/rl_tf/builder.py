"""GraphBuilder and Executable for TensorFlow, on ``tf.Variable`` and ``tf.function`` alone (no Keras)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optree
import tensorflow as tf

from rl_tf.ops import Group, TfOps
from rlcore.backend import Capabilities, Executable, GraphBuilder
from rlcore.component_graph import ApiGraph, ComponentGraph
from rlcore.errors import BuildError, ConfigError
from rlcore.layout import Instance
from rlcore.noise import NoiseFeed
from rlcore.ops import Ops
from rlcore.specs import TensorSpec, is_spec


class TfGraphBuilder(GraphBuilder):
    name = "tf"
    capabilities = Capabilities(modes=("static", "eager"), gradients=True, devices=("cpu", "gpu"))

    @property
    def ops(self) -> Ops:
        return TfOps()

    def _build(self, graph: ComponentGraph, instance: Instance, mode: str, device: str, seed: int) -> Executable:
        if device == "gpu" and not tf.config.list_physical_devices("GPU"):
            raise ConfigError("backend 'tf': device 'gpu' was asked for, but TensorFlow sees none. Use device='cpu'")
        return TfExecutable(graph, instance, mode, device, seed)


class TfExecutable(Executable):
    """Each block is one flat ``tf.Variable``; components hold tensors split from it."""

    def __init__(self, graph: ComponentGraph, instance: Instance, mode: str, device: str, seed: int) -> None:
        super().__init__(graph, instance, mode, seed)
        self._device = "/GPU:0" if device == "gpu" else "/CPU:0"
        ops = TfOps()
        self._blocks: list[Group] = []
        with tf.device(self._device):
            for block, slots in zip(instance.blocks, instance.block_slots, strict=True):
                group = Group(tf.Variable(block.draw(seed)), slots)
                ops.groups[id(group.variable)] = group
                self._blocks.append(group)
            for slot in instance.loose:
                setattr(slot.component, slot.attribute, tf.Variable(slot.variable.draw(seed)))
        for handle, index in instance.handles:
            if index is not None:
                handle.flat = self._blocks[index].variable
        for component in instance.components.values():
            component.ops = ops
        self._trained = [g for g, b in zip(self._blocks, instance.blocks, strict=True) if b.trainable]
        self._bind()

    def _bind(self) -> None:
        for group in self._blocks:
            group.bind()

    # -- functions -------------------------------------------------------------------------------
    def _make_function(self, api: ApiGraph) -> Callable[..., Any]:
        method, count = getattr(self.instance.root, api.name), len(api.inputs)
        feed = NoiseFeed(self.instance, api)

        def call(*args: Any) -> Any:
            with tf.device(self._device), feed(args[count:]):
                return method(*args[:count])

        return call if self.mode == "eager" else self._capture(api, call)

    def _capture(self, api: ApiGraph, call: Callable[..., Any]) -> Callable[..., Any]:
        specs, treespec = optree.tree_flatten(tuple(api.inputs.values()), is_leaf=is_spec)
        specs += [n.spec for n in api.noise]
        inputs = len(specs) - len(api.noise)

        def body(*leaves: Any) -> Any:
            self.trace_count[api.name] += 1
            try:
                self._bind()
                return call(*optree.tree_unflatten(treespec, leaves[:inputs]), *leaves[inputs:])
            finally:
                with tf.init_scope():  # what was bound while tracing must not stay
                    self._bind()

        signature = [_tf_spec(spec, i) for i, spec in enumerate(specs)]
        function_of = tf.function(body, input_signature=signature, autograph=False)
        try:
            # The concrete function itself: the dispatch of tf.function costs more than a small network.
            concrete = function_of.get_concrete_function()
        except tf.errors.OperatorNotAllowedInGraphError as e:
            root = type(self.instance.root).__name__
            reason = f"a part of it can't be in a static graph: {str(e).splitlines()[0]}"
            raise BuildError(reason, path="", component=root, api=api.name) from e
        if all(is_spec(tree) for tree in api.inputs.values()):
            return concrete  # type: ignore[no-any-return]
        self._flat_functions[api.name] = concrete
        count, leaves_of = len(api.inputs), optree.tree_leaves

        def function(*args: Any) -> Any:
            return concrete(*leaves_of(args[:count]), *args[count:])

        return function

    # -- arrays ----------------------------------------------------------------------------------
    def from_numpy(self, array: np.ndarray) -> Any:
        return tf.constant(array)

    def to_numpy(self, tensor: Any) -> np.ndarray:
        return tensor.numpy()  # type: ignore[no-any-return]

    # -- state -----------------------------------------------------------------------------------
    def _read_trainable(self) -> np.ndarray:
        parts = [g.variable.numpy() for g in self._trained]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def _write_trainable(self, buffer: np.ndarray) -> None:
        offset = 0
        for group in self._trained:
            size = sum(group.sizes)
            group.variable.assign(buffer[offset : offset + size])
            offset += size
        self._written()

    def _written(self) -> None:
        if self.mode == "eager":  # a static graph reads the variables themselves
            self._bind()

    def get_state(self) -> dict[str, np.ndarray]:
        state = {}
        for group in self._blocks:
            parts = np.split(group.variable.numpy(), np.cumsum(group.sizes)[:-1])
            for slot, part in zip(group.slots, parts, strict=True):
                state[slot.variable.path] = part.reshape(slot.variable.shape).copy()
        for slot in self.instance.loose:
            state[slot.variable.path] = np.array(getattr(slot.component, slot.attribute).numpy())
        return state

    def _write_state(self, state: Mapping[str, np.ndarray]) -> None:
        for group in self._blocks:
            group.variable.assign(np.concatenate([state[s.variable.path].ravel() for s in group.slots]))
        for slot in self.instance.loose:
            getattr(slot.component, slot.attribute).assign(state[slot.variable.path])
        self._written()


def _tf_spec(spec: TensorSpec, index: int) -> tf.TensorSpec:
    return tf.TensorSpec([None if isinstance(d, str) else d for d in spec.shape], spec.dtype, name=f"input_{index}")
