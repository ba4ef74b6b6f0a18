"""The ``rlcore`` command. Only the standard library and typer are imported before a command runs."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="rlcore",
    help="Deep RL whose algorithms are written once, for every graph backend and executor.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Agent = Annotated[str, typer.Argument(help="Name of the agent, e.g. dqn.", show_default=False)]
Env = Annotated[str, typer.Option("--env", help="Gymnasium id, e.g. CartPole-v1.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the agent; may be repeated.", show_default=False),
]


@app.callback()
def _main() -> None:
    """Keeps ``rlcore COMMAND``, however few commands there are."""


@app.command()
def train(
    agent: Annotated[
        str | None, typer.Argument(help="Name of the agent, e.g. dqn, or a file with its spec.", show_default=False)
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", help="Gymnasium id, e.g. CartPole-v1.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="JSON or YAML file of settings, e.g. config.yaml of a run.", show_default=False),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(help="Graph backend: numpy, torch, tf, or a plugin's.", show_default="RLCORE_BACKEND, or torch"),
    ] = None,
    mode: Annotated[str | None, typer.Option(help="eager or static.", show_default="the backend's")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, ...", show_default="the backend's")] = None,
    actor_backend: Annotated[str | None, typer.Option(help="Backend of the sampler.", show_default="--backend")] = None,
    executor: Annotated[
        str | None,
        typer.Option(help="Where it runs: local, or a plugin's.", show_default="RLCORE_EXECUTOR, or local"),
    ] = None,
    wrapper: Annotated[
        list[str] | None,
        typer.Option(help="A wrapper of each environment, e.g. frame_stack; may be repeated.", show_default=False),
    ] = None,
    num_envs: Annotated[
        int | None, typer.Option(help="Environments stepped together.", show_default="preset, or 1")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Env steps.", show_default="preset, or 100000")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random.", show_default="0")] = None,
    evaluation_episodes: Annotated[int | None, typer.Option(help="Greedy episodes.", show_default="100")] = None,
    hooks: Annotated[
        str | None,
        typer.Option(help="Hook plugins, a,b; '' for none.", show_default="RLCORE_HOOKS, or all installed"),
    ] = None,
    on_hook_error: Annotated[
        str | None,
        typer.Option(help="raise, warn or disable.", show_default="RLCORE_ON_HOOK_ERROR, or raise"),
    ] = None,
    run_dir: Annotated[Path | None, typer.Option(help="Where the run lies.", show_default="runs/...")] = None,
    settings: Settings = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the process; 1 is fastest for small networks.")] = 1,
) -> None:
    """Train an agent and show what it learned."""
    use_threads(threads)
    from rlcore.cli.train import train_command

    train_command(
        agent,
        env,
        config,
        settings or [],
        run_dir,
        backend=backend,
        mode=mode,
        device=device,
        actor_backend=actor_backend,
        executor=executor,
        wrappers=wrapper or None,
        num_envs=num_envs,
        steps=steps,
        seed=seed,
        evaluation_episodes=evaluation_episodes,
        hooks=None if hooks is None else [name.strip() for name in hooks.split(",") if name.strip()],
        on_hook_error=on_hook_error,
    )


@app.command()
def graph(
    agent: Agent,
    env: Env,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write there as well; .mmd, .dot, .html or .json. A folder gets them all.", show_default=False
        ),
    ] = None,
) -> None:
    """Print the component graph of an agent as a tree with specs."""
    from rlcore.cli.graph import graph_command

    graph_command(agent, env, settings or [], out)


@app.command()
def plugins(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """List the installed plugins; imports none of them."""
    from rlcore.cli.plugins import plugins_command

    plugins_command(as_json)


@app.command()
def doctor(
    names: Annotated[list[str] | None, typer.Argument(help="Of plugins; all if none.", show_default=False)] = None,
    deep: Annotated[bool, typer.Option(help="Also the plugins' own slow checks.")] = False,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds for each plugin.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Load each plugin in a process of its own and say what is wrong with it. Exit code 1 if anything is."""
    from rlcore.cli.plugins import doctor_command

    raise typer.Exit(doctor_command(names or [], deep, time_limit, as_json))


@app.command()
def check_plugin(
    name: Annotated[str, typer.Argument(help="torch, rl-torch:torch or executor/ray.", show_default=False)],
    expect_failure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHECK=REASON", help="A check that is known to fail; may be repeated.", show_default=False
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Only checks with this in their name.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Of an executor.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Run the conformance suite of a plugin. Exit code 1 if a check fails."""
    use_threads(1)
    from rlcore.cli.plugins import check_plugin_command
    from rlcore.runs.config import parse_settings

    options = parse_settings(settings or [])
    raise typer.Exit(check_plugin_command(name, expect_failure or [], only or [], options, as_json))


@app.command()
def new_plugin(
    name: Annotated[str, typer.Argument(help="Of the new plugin, e.g. jax.", show_default=False)],
    kind: Annotated[str, typer.Option(help="graph-builder, executor, components or hooks.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Where the folder is made.", show_default="here")] = None,
) -> None:
    """Write a complete small plugin project: pyproject.toml, package, tests and README."""
    from rlcore.cli.new_plugin import new_plugin_command

    new_plugin_command(name, kind, out or Path())


def use_threads(threads: int) -> None:
    """Set what NumPy, torch and TensorFlow read when they are imported; what the user has set stays."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        os.environ.setdefault(name, str(threads))
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def _one_line(message: object) -> str:
    lines = [" ".join(line.split()).rstrip(".;:") for line in str(message).splitlines()]
    return "; ".join(line for line in lines if line).replace("?; ", "? ")


def main() -> None:
    """Entry point. A user's mistake is one line on stderr and exit code 2."""
    from rlcore.errors import BuildError, RLCoreError

    default = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__name__ == "PluginWarning":  # by name: it is not imported before a command needs it
            print(f"warning: {_one_line(message)}", file=sys.stderr)
        else:
            default(message, category, *where, **more)

    warnings.showwarning = show
    try:
        app()
    except BuildError as e:  # its lines name the path, what was given and what was expected
        print(f"error: {e}", file=sys.stderr)
        sys.exit(2)
    except RLCoreError as e:
        print(f"error: {_one_line(e)}", file=sys.stderr)
        sys.exit(2)
    except OSError as e:  # a path that can't be written, a full disk
        print(f"error: {e}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
