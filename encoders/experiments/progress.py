"""What a person sees while a comparison runs: on a terminal two bars, elsewhere a line for each finished run."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import TrainerCallback


class ProgressDisplay:
    """Bars for all runs and for the steps of the current one; lines printed through it stay above the bars."""

    def __init__(self, console: Console, runs: int):
        self.console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._all_runs = self._bars.add_task("runs", total=runs)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._bars.stop()

    def finish_run(self, line: str) -> None:
        """Print the outcome of a run and move the bar of all runs on."""
        self.console.print(line, soft_wrap=True)
        self._bars.advance(self._all_runs)

    def steps_of(self, description: str) -> TrainerCallback:
        """Return a callback that draws the steps of one run."""
        return _StepBar(self._bars, description)


class _StepBar(TrainerCallback):
    def __init__(self, bars: Progress, description: str):
        self._bars, self._description = bars, description

    def on_train_begin(self, args, state, control, **kwargs):
        self._bar = self._bars.add_task(self._description, total=state.max_steps)

    def on_step_end(self, args, state, control, **kwargs):
        self._bars.advance(self._bar)

    def on_train_end(self, args, state, control, **kwargs):
        self._bars.remove_task(self._bar)
