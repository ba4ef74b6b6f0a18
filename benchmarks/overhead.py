"""What the neutral layer costs: rlcore's ``act`` and DQN ``update`` over the same arithmetic written by hand.

    python benchmarks/overhead.py [--json FILE] [--rounds N] [--only torch-eager,...]

One thread. rlcore and the hand-written code take turns, block by block; each figure is the median over
blocks, each ratio the median of the ratios of neighbouring blocks. ``native`` compares the functions on the
framework's own tensors, ``numpy`` adds the way from NumPy arrays and back that a training loop goes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from itertools import pairwise

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ[_name] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from rlcore.agents.dqn import DQN, DQNConfig
from rlcore.assembly import assemble
from rlcore.plugins.session import make_graph_builder
from rlcore.specs import TensorSpec

OBSERVATION, ACTIONS, GAMMA, RATE, CLIP = 4, 2, 0.99, 1e-3, 10.0
ACT_BATCHES, UPDATE_BATCH, NETS = (1, 8, 64), 64, ((64, 64), (256, 256))
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


def arrays(size):
    rng = np.random.default_rng(0)
    return {
        "observation": rng.standard_normal((size, OBSERVATION)).astype(np.float32),
        "action": rng.integers(0, ACTIONS, size),
        "return": rng.standard_normal(size).astype(np.float32),
        "discount": np.full(size, GAMMA, np.float32),
        "next_observation": rng.standard_normal((size, OBSERVATION)).astype(np.float32),
    }


def shapes_of(net):
    sizes = [OBSERVATION, *net, ACTIONS]
    return [s for a, b in pairwise(sizes) for s in ((a, b), (b,))]


def weights_of(net):
    rng = np.random.default_rng(1)
    return [(rng.standard_normal(s) * 0.1).astype(np.float32) for s in shapes_of(net)]


class Hand:
    """``act`` and ``update`` on native tensors; ``numpy_act`` and ``numpy_update`` from and to NumPy."""

    def numpy_act(self, observation):
        return self.out(self.act(self.into(observation)))

    def numpy_update(self, batch):
        return {k: self.out(v) for k, v in self.update({k: self.into(v) for k, v in batch.items()}).items()}


class TorchEager(Hand):
    """nn.Module, autograd, the fused Adam, as one would write it."""

    def __init__(self, net):
        import torch
        from torch import nn

        def network():
            sizes = [OBSERVATION, *net]
            layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())]
            return nn.Sequential(*layers, nn.Linear(net[-1], ACTIONS))

        self.torch, self.online, self.target = torch, network(), network()
        self.parameters = list(self.online.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, RATE, fused=True)
        self.into, self.out = torch.from_numpy, lambda t: t.numpy()

    def act(self, observation):
        with self.torch.no_grad():
            return self.online(observation).argmax(-1)

    def update(self, b):
        torch = self.torch
        with torch.no_grad():
            best = self.online(b["next_observation"]).argmax(-1, keepdim=True)
            value = self.target(b["next_observation"]).gather(-1, best)[:, 0]
            y = b["return"] + b["discount"] * value
        q = self.online(b["observation"]).gather(-1, b["action"].unsqueeze(-1))[:, 0]
        loss = torch.nn.functional.huber_loss(q, y)
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimizer.step()
        q = q.detach()
        return {"loss": loss.detach(), "grad_norm": norm, "td_error": q - y, "q_mean": q.mean()}


class TorchStatic(Hand):
    """One compiled function over a flat vector: the fastest form that we know to write by hand."""

    def __init__(self, net):
        import torch
        import torch.fx.experimental._config as fx_config

        shapes = shapes_of(net)
        sizes = [int(np.prod(s)) for s in shapes]
        flat = torch.from_numpy(np.concatenate([w.ravel() for w in weights_of(net)]))
        target, m, v, count = flat.clone(), torch.zeros_like(flat), torch.zeros_like(flat), torch.zeros(())

        def q(w, x):
            p = [t.view(s) for t, s in zip(torch.split(w, sizes), shapes, strict=True)]
            for i in range(0, len(p) - 2, 2):
                x = torch.relu(torch.matmul(x, p[i]) + p[i + 1])
            return torch.matmul(x, p[-2]) + p[-1]

        def update(obs, action, ret, discount, nxt):
            best = q(flat, nxt).argmax(-1, keepdim=True)
            y = ret + discount * q(target, nxt).gather(-1, best)[:, 0]

            def loss_of(w):
                value = q(w, obs).gather(-1, action.unsqueeze(-1))[:, 0]
                error = value - y
                size = error.abs()
                inside = size.clamp(max=1.0)
                return (inside * (size - 0.5 * inside)).mean(), (error, value.mean())

            g, (loss, (error, mean)) = torch.func.grad_and_value(loss_of, has_aux=True)(flat)
            norm = g.square().sum().sqrt()
            g = g * (CLIP / (norm + 1e-6)).clamp(max=1.0)
            count.add_(1.0)
            steps = count.double()
            m.copy_(m + (1 - BETA_1) * (g - m))
            v.copy_(BETA_2 * v + (1 - BETA_2) * g * g)
            c1, c2 = (1 - BETA_1**steps).float(), (1 - BETA_2**steps).float()
            flat.copy_(flat - RATE / c1 * m / (v.sqrt() / c2.sqrt() + EPSILON))
            return loss, norm, error, mean

        act = torch.compile(lambda x: q(flat, x).argmax(-1), fullgraph=True)
        compiled = torch.compile(update, fullgraph=True)
        names = ("observation", "action", "return", "discount", "next_observation")
        self.into, self.out = torch.from_numpy, lambda t: t.numpy()

        def run(b):
            with torch.no_grad():
                return dict(
                    zip(("loss", "grad_norm", "td_error", "q_mean"), compiled(*[b[n] for n in names]), strict=True)
                )

        def run_act(x):
            with torch.no_grad():
                return act(x)

        self.act, self.update = run_act, run
        with fx_config.patch(backed_size_oblivious=True):
            batch = {k: torch.from_numpy(x) for k, x in arrays(8).items()}
            for t in batch.values():
                torch._dynamo.mark_dynamic(t, 0)
            run(batch)
            run_act(batch["observation"])


class TfStatic(Hand):
    """The concrete function of one ``tf.function`` with a signature; a variable a weight."""

    def __init__(self, net):
        import tensorflow as tf

        online = [tf.Variable(w) for w in weights_of(net)]
        target = [tf.Variable(w) for w in weights_of(net)]
        ms, vs = ([tf.Variable(tf.zeros_like(w)) for w in online] for _ in range(2))
        count = tf.Variable(0.0)

        def q(p, x):
            for i in range(0, len(p) - 2, 2):
                x = tf.nn.relu(tf.matmul(x, p[i]) + p[i + 1])
            return tf.matmul(x, p[-2]) + p[-1]

        obs = tf.TensorSpec([None, OBSERVATION], tf.float32)
        vector = tf.TensorSpec([None], tf.float32)

        @tf.function(input_signature=[obs, tf.TensorSpec([None], tf.int64), vector, vector, obs], autograph=False)
        def update(observation, action, ret, discount, nxt):
            best = tf.argmax(q(online, nxt), -1)
            y = tf.stop_gradient(ret + discount * tf.gather(q(target, nxt), best, batch_dims=1))
            with tf.GradientTape() as tape:
                value = tf.gather(q(online, observation), action, batch_dims=1)
                error = value - y
                size = tf.abs(error)
                inside = tf.minimum(size, 1.0)
                loss = tf.reduce_mean(inside * (size - 0.5 * inside))
            grads, norm = tf.clip_by_global_norm(tape.gradient(loss, online), CLIP)
            count.assign_add(1.0)
            c1, c2 = 1 - tf.pow(BETA_1, count), 1 - tf.pow(BETA_2, count)
            for w, m, v, g in zip(online, ms, vs, grads, strict=True):
                m.assign(m + (1 - BETA_1) * (g - m))
                v.assign(BETA_2 * v + (1 - BETA_2) * tf.square(g))
                w.assign_sub(RATE / c1 * m / (tf.sqrt(v) / tf.sqrt(c2) + EPSILON))
            return loss, norm, error, tf.reduce_mean(value)

        act = tf.function(lambda x: tf.argmax(q(online, x), -1), input_signature=[obs], autograph=False)
        concrete, self.act = update.get_concrete_function(), act.get_concrete_function()
        names = ("observation", "action", "return", "discount", "next_observation")
        self.into, self.out = tf.constant, lambda t: t.numpy()
        self.update = lambda b: dict(
            zip(("loss", "grad_norm", "td_error", "q_mean"), concrete(*[b[n] for n in names]), strict=True)
        )


BUILDS = {
    "torch-eager": ("torch", "eager", TorchEager),
    "torch-static": ("torch", "static", TorchStatic),
    "tf-static": ("tf", "static", TfStatic),
}


def block(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls * 1e6


def compare(ours, hand, rounds):
    """Median microseconds of each, and the median ratio of neighbouring blocks."""
    for f in (ours, hand):
        block(f, 30)
    calls = max(5, int(20_000 / block(ours, 30)))  # blocks of about 20 ms
    a, b = [], []
    for i in range(rounds):
        for f, times in ((ours, a), (hand, b)) if i % 2 else ((hand, b), (ours, a)):
            times.append(block(f, calls))
    return float(np.median(a)), float(np.median(b)), float(np.median(np.array(a) / np.array(b)))


def measure(name, rounds):
    backend, mode, hand_class = BUILDS[name]
    if backend == "torch":
        import torch

        torch.set_num_threads(1)
    for net in NETS:
        config = DQNConfig(hidden=net, learning_rate=RATE, max_grad_norm=CLIP, gamma=GAMMA)
        root = DQN(TensorSpec((OBSERVATION,)), TensorSpec((), "int64", 0, ACTIONS - 1, "discrete"), config)
        built = make_graph_builder(backend).build(assemble(root, root.api_inputs()), mode=mode)
        hand = hand_class(net)
        progress = np.zeros((), np.float32)
        native_progress = built.from_numpy(progress)
        label = "-".join(map(str, net))
        cases = []
        for size in ACT_BATCHES:
            x = arrays(size)["observation"]
            built("act_greedy", x)
            f, t = built.function("act_greedy"), built.from_numpy(x)
            cases.append((f"act {size}", "native", lambda f=f, t=t: f(t), lambda t=t: hand.act(t)))
            cases.append((f"act {size}", "numpy", lambda x=x: built("act_greedy", x), lambda x=x: hand.numpy_act(x)))
        batch = arrays(UPDATE_BATCH)
        built("update", batch, progress)
        f, native = built.function("update"), {k: built.from_numpy(v) for k, v in batch.items()}
        cases.append(("update", "native", lambda: f(native, native_progress), lambda: hand.update(native)))
        cases.append(("update", "numpy", lambda: built("update", batch, progress), lambda: hand.numpy_update(batch)))
        for what, way, ours, by_hand in cases:
            us, theirs, ratio = compare(ours, by_hand, rounds)
            yield {
                "build": name,
                "net": label,
                "what": what,
                "way": way,
                "rlcore_us": us,
                "hand_us": theirs,
                "ratio": ratio,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the rows there too")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default=",".join(BUILDS))
    arguments = parser.parse_args()
    print(f"{platform.machine()}, one thread; microseconds a call, median of {arguments.rounds} interleaved blocks\n")
    print("| build | net | what | way | rlcore | by hand | ratio |\n|---|---|---|---|---:|---:|---:|")
    rows = []
    for name in arguments.only.split(","):
        for row in measure(name, arguments.rounds):
            rows.append(row)
            print(
                "| {build} | {net} | {what} | {way} | {rlcore_us:.1f} | {hand_us:.1f} | {ratio:.2f} |".format(**row),
                flush=True,
            )
    print(f"\nworst ratio: {max(r['ratio'] for r in rows):.2f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
