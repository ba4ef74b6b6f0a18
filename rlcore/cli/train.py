"""``rlcore train``: a progress bar, and the evaluation before and after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from rlcore.errors import ConfigError
from rlcore.plugins.events import Evaluation
from rlcore.runs.config import load_config, merged, name_and_options, nested, parse_settings, resolve
from rlcore.runs.train import Status, run


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} steps/s" if task.speed else "", style="cyan")


def train_command(
    agent: str | None, env: str | None, file: Path | None, settings: Sequence[str], run_dir: Path | None, **options: Any
) -> None:
    given: dict[str, Any] = load_config(file) if file is not None else {}
    agent, env = agent or given.pop("agent", None), env or given.pop("env", None)
    if agent is None or env is None:
        raise ConfigError(f"which {'agent' if agent is None else 'environment'}? rlcore train dqn --env CartPole-v1")
    own = merged(given.pop("config", None) or {}, nested(parse_settings(settings)))
    run_settings = {k: v for k, v in given.items() if k not in ("agent", "env")}
    run_settings |= {k: v for k, v in options.items() if v is not None}
    config, learner, actor = resolve(agent, env, own, **run_settings)
    agent, env, executor = config.agent, config.env, name_and_options(config.executor)[0]
    console = Console()
    where = config.backend if config.mode is None else f"{config.backend}, {config.mode}"
    console.print(
        f"[bold]{agent}[/] on [bold]{env}[/]  ({where}; {executor}; {config.steps:,} steps; seed {config.seed})"
    )

    def on_evaluation(name: str, result: Evaluation) -> None:
        word = "before training" if name == "before" else "after training "
        console.print(f"  evaluation {word}:  return [bold]{result}[/]")

    columns = (
        SpinnerColumn(),
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        _Speed(),
        TimeRemainingColumn(),
        TextColumn("return {task.fields[mean]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task: Any = None
        lines = 0

        def on_status(status: Status) -> None:
            nonlocal task, lines
            mean = "-" if status.return_mean is None else f"{status.return_mean:.1f}"
            if console.is_terminal:
                if task is None:
                    task = bar.add_task("train", total=status.steps, mean=mean)
                bar.update(task, completed=status.env_steps, mean=mean)
            elif status.env_steps * 10 // status.steps > lines:  # ten plain lines where there is no terminal
                lines = status.env_steps * 10 // status.steps
                speed = status.env_steps / max(status.seconds, 1e-9)
                console.print(f"  {status.env_steps:>9,} steps  {speed:>7,.0f} steps/s  return {mean}")

        result = run(config, learner, actor, run_dir=run_dir, on_status=on_status, on_evaluation=on_evaluation)
    speed = result.env_steps / result.seconds
    console.print(f"  trained in {result.seconds:.1f} s ({speed:,.0f} steps/s, {result.updates:,} updates)")
    console.print(f"  return {result.before.mean:.1f} -> [bold green]{result.after.mean:.1f}[/]")
    console.print(f"  the run lies in [bold]{result.run_dir}[/]", soft_wrap=True)
