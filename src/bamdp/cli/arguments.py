"""The commands and their arguments as data, the parser built from them, and the parsing of argument values."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import bamdp
from bamdp import _checks
from bamdp._parameters import read_value
from bamdp.registry import DEFAULT_PLANNER, LEARNED_REWARDS

RUN_VALUES = ("prior", "rewards", "objective", "discount", "seed")  # run parameters, as named in functions
PICTURES = (".png", ".svg", ".pdf")

LISTS = {  # of `bamdp list`, with their titles
    "envs": "Environments, with parameters as in grid:size=7; also file:MODEL.npz and gym:FrozenLake-v1",
    "planners": "Planners, with parameters as in dss-pi:n_steps=100 or --set n_steps=100",
    "priors": "Priors, with parameters as in sparse:alpha=0.2,beta=6 (alpha may be x/S); flat+sparse is a mixture",
    "rewards": "Reward models, with parameters as in normal:mu0=1,by=next",
    "continuous": "Planners and priors for continuous observations, such as gym:Pendulum-v1",
}
TARGETS = {  # target of `bamdp reproduce`: study
    **dict.fromkeys(("table1", "table2", "figure2"), "dss2020/published"),
    "figure3": "dss2020/figure3",
    "ablation": "dss2020/ablation",
}
WAY = "published (the parameters of Appendix C, the default) or fair (every algorithm tuned alike)"
STUDIES = (
    "A study is a TOML file; `bamdp lab new study.toml` writes a first one. The package contains the studies of the "
    "DSS paper: dss2020/published, dss2020/fair, dss2020/figure3 and dss2020/ablation."
)


def _argument(metavar: str, help: str, **more: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": help, **more}


def _switch(help: str, action: Any = "store_true") -> dict[str, Any]:
    return {"help": help, "action": action}


def _number(metavar: str, help: str, default: float | None, shown: str = "%(default)s") -> dict[str, Any]:
    kind = int if default is None else type(default)
    return _argument(metavar, f"{help} (default: {shown})", type=kind, default=default)


MANY = {"nargs": "+", "action": "extend", "default": []}
SEVERAL = "parameters of all planners, such as n_steps=100 or generator.depth=50"
PRIOR = "prior: NAME, NAME:KEY=VALUE,... or a mixture such as 3*flat+sparse (default: the planner's)"
REWARDS = (
    f"reward model: known, {', '.join(LEARNED_REWARDS)}, or as in normal:mu0=1 (default: by environment)"
)
OBJECTIVE = "plan to the end of the episode (episode, the default) or beyond it (lifetime)"
DISCOUNT = "planning discount: a number, horizon (no discount) or auto (as far as data justify)"
BINS = "discretise gym: observations: 8 bins, 3,3,6,5 for each coordinate, or quantiles:8"
STORE = "file of completed runs (default: STUDY.sqlite, or .bamdp/runs.sqlite without a study file)"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "env": _argument("ENV", "NAME, NAME:KEY=VALUE,... (see `bamdp list envs`), file:MODEL.npz or gym:ID"),
    "planner": _argument("PLANNER", "NAME or NAME:KEY=VALUE,... (see `bamdp list planners`)", nargs="?"),
    "planners": _argument("PLANNER", "NAME or NAME:KEY=VALUE,... (see `bamdp list planners`)", nargs="*"),
    "study": _argument("STUDY", "a study file, or the name of a study in the package"),
    "file": _argument("FILE", "default: study.toml", nargs="?", default="study.toml"),
    "list": _argument("WHAT", f"one of {', '.join(LISTS)} (default: all)", nargs="?", choices=tuple(LISTS)),
    "target": _argument("TARGET", f"any of {', '.join(TARGETS)}", nargs="+", choices=TARGETS),
    "--set": _argument("KEY=VALUE", SEVERAL, **MANY),
    "--prior": _argument("SPEC", PRIOR),
    "--rewards": _argument("MODEL", REWARDS),
    "--objective": _argument("WHAT", OBJECTIVE, default="episode"),
    "--discount": _argument("γ", DISCOUNT, type=read_value),
    "--steps": _number("T", "steps per run", None, "the environment's horizon"),
    "--runs": _number("N", "runs per planner, or tuning runs per configuration", 10),
    "--seed": _number("N", "random seed; the same seed gives the same results", 0),
    "--bins": _argument("N,N", BINS),
    "--figure": _argument("FILE", "plot the result to FILE (.png, .svg or .pdf)"),
    "--jobs": _number("N", "number of processes; results do not depend on it", None, "1"),
    "--progress": _switch(
        "show a progress bar (default: only in a terminal)", argparse.BooleanOptionalAction
    ),
    "--full": _switch("also print intervals, scores, episodes and every pair of planners"),
    "--json": _switch("print JSON instead of tables"),
    "--quick": _switch("use few, short runs as a trial; the results are marked as quick"),
    "--cluster": _argument("ADDRESS", "run on the Dask scheduler at ADDRESS, such as tcp://127.0.0.1:8786"),
    "--retry-failed": _switch("repeat runs that failed or were stopped"),
    "--store": _argument("PATH", STORE),
    "--grid": _argument("KEY=A,B", "candidate values of planner parameters, prior.beta or discount", **MANY),
    "--method": _argument("NAME", "grid (default) or halving (successive halving)", default="grid"),
    "--configurations": _number("N", "number of configurations drawn from the grid", None, "all"),
    "--evaluate": _number("N", "runs that evaluate the chosen configuration on new seeds", 0),
    "--output": _argument("PATH", "file or folder to write (default: named after the study)"),
    "--as": _argument("WAY", WAY, dest="way", choices=("published", "fair"), default="published"),
    "--environments": _argument("NAME", "only these environments of the study", nargs="+"),
    "--algorithms": _argument("NAME", "only these algorithms of the study", nargs="+"),
    "--host": _argument("ADDRESS", "address to listen on (default: this machine only)", default="127.0.0.1"),
    "--port": _number("N", "port to listen on", None, "8137, or a free port if that is taken"),
    "--limit": _number("SECONDS", "maximum time for one decision", 60.0),
    "--max-states": _number("N", "maximum number of states of an environment", 2500),
    "--open": _switch("open the page in a web browser"),
    "--step": _number("T", "explain the decision after T steps", 0),
    "--n-policies": _number("N", "policies at each node", 4),
    "--n-samples": _number("M", "samples of each policy", 500),
    "--n-steps": _number("K", "steps in each stage", 8),
    "--n-stages": _number("H", "stages", 1),
    "--c": _number("C", "how much two models drawn from the belief disagree", 0.01),
    "--epsilon0": _number("ε₀", "how much the belief changes during a stage", 0.0),
    "--delta": _number("δ", "probability with which Theorem 1 may fail", 0.05),
}


class Command(NamedTuple):
    """A command: its function, help text, arguments, further help, and changes to arguments."""

    run: str  # module.function in this package; empty for a group of commands
    help: str
    arguments: str = ""
    epilog: str = ""
    changes: Mapping[str, Mapping[str, Any]] = {}


AGENT = "--set --prior --rewards --objective --discount --seed --bins"
STUDY = "--jobs --progress --cluster --retry-failed --store"
COMMANDS = {
    "run": Command(
        "run.run",
        f"Run planners (by default {DEFAULT_PLANNER}) in an environment and report their total rewards.",
        f"env planners {AGENT} --steps --runs --jobs --progress --figure --full --json",
        "Example: bamdp run grid10 dss-pi --set n_steps=100 n_stages=2 --prior sparse:beta=6 --jobs 2",
    ),
    "compare": Command(
        "run.compare",
        "Compare planners like `bamdp run`, but store completed runs and resume from them.",
        f"env planners {AGENT} --steps --runs {STUDY} --figure --full --json",
        "Example: bamdp compare grid5 dss-pi:n_steps=25 thompson bamcp --runs 30 --jobs 2",
    ),
    "tune": Command(
        "run.tune",
        "Choose the parameters of a planner in an environment.",
        f"env planner --grid --method --configurations {AGENT} --steps --runs --evaluate {STUDY} --figure --json",
        "Example: bamdp tune grid10 dss-pi --grid n_policies=2,4 prior.beta=2,4,8 discount=.95,.99",
    ),
    "list": Command(
        "show.list_names", "List environments, planners, priors and reward models.", "list --json"
    ),
    "solve": Command(
        "show.solve",
        "Solve a known model: the optimal value and the expected total reward.",
        "env --discount --steps --figure --json",
        changes={"--discount": _number("γ", "discount", 0.95)},
    ),
    "studio": Command(
        "show.studio",
        "Watch an agent decide, on a local web page.",
        f"env planner {AGENT} --host --port --limit --max-states --open",
        "Example: bamdp studio grid10 dss-pi --set n_steps=50 --prior sparse:beta=6",
        {"env": {"nargs": "?"}},
    ),
    "explain": Command(
        "show.explain",
        f"Explain one decision of a planner (by default {DEFAULT_PLANNER}) in a web page or a picture.",
        f"env planner --step {AGENT} --figure",
        "Example: bamdp explain grid10 dss-pi --step 40 --prior sparse:beta=6 --figure why.html",
        {"--figure": {"default": "why.html", "help": "file to write, .html or .svg (default: %(default)s)"}},
    ),
    "lab": Command("", "Define, run and report studies of several planners and environments.", "", STUDIES),
    "lab new": Command("studies.write_template", "Write a commented study file to start from.", "file"),
    "lab run": Command(
        "studies.run_missing",
        "Run what is missing from the study's store. Repeat the command to resume.",
        f"study --quick {STUDY}",
    ),
    "lab status": Command(
        "studies.print_status",
        "Print how many runs are done, missing and failed, and the time left.",
        "study --quick --store --json",
    ),
    "lab report": Command(
        "studies.report_study",
        "Write tables, figures and a page that opens offline.",
        "study --quick --store --output",
    ),
    "lab export": Command(
        "studies.export_study", "Write the runs as CSV, one row per run.", "study --quick --store --output"
    ),
    "reproduce": Command(
        "studies.reproduce",
        "Repeat the experiments behind the tables and figures of the DSS paper.",
        f"target --as --environments --algorithms --quick {STUDY}",
        "Example: bamdp reproduce table1 table2 --quick --jobs 2",
    ),
    "theory": Command(
        "show.theory_bounds",
        "Compute bounds on the loss of DSS for several K.",
        "--n-policies --n-samples --n-steps --n-stages --discount --c --epsilon0 --delta --json",
        "Example: bamdp theory --n-policies 4 --n-samples 500 --n-steps 8 --discount 0.5 --c 0.01",
        {"--discount": _number("γ", "discount in [0, 1)", 0.5)},
    ),
    "warmup": Command(
        "run.warmup", "Compile planners (by default all) ahead of time.", "planners --set --prior --rewards"
    ),
}


class PlainParser(argparse.ArgumentParser):
    """Argument parser with one-line error messages and suggestions."""

    def error(self, message: str) -> NoReturn:
        """Raise the error with a reference to the help."""
        raise ValueError(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None:
            _checks.one_of(value, action.dest, action.choices)


def make_parser() -> PlainParser:
    """Return the parser of all commands."""
    top = PlainParser(
        prog="bamdp",
        description="Bayes-adaptive planning in Markov decision processes.",
        epilog="`bamdp COMMAND --help` describes a command, and `bamdp list` the environments, planners and priors.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"bamdp {bamdp.__version__}")
    top.set_defaults(parser=top, run_command=None)
    groups = {"": top.add_subparsers(dest="command", metavar="COMMAND", title="commands")}
    for name, command in COMMANDS.items():
        above, _, last = name.rpartition(" ")
        parser = groups[above].add_parser(
            last, help=command.help, description=command.help, epilog=command.epilog, allow_abbrev=False
        )
        parser.set_defaults(parser=parser, run_command=command.run)
        for argument in command.arguments.split():
            parser.add_argument(argument, **{**ARGUMENTS[argument], **command.changes.get(argument, {})})
        if not command.run:
            groups[name] = parser.add_subparsers(dest=f"{name} command", metavar="COMMAND", title="commands")
    return top


# Values


def values(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the named arguments as a dictionary."""
    return {name: getattr(arguments, name) for name in names}


def environment_text(arguments: argparse.Namespace) -> str:
    """Return the environment specification, including its bins."""
    if arguments.bins is None:
        return str(arguments.env)
    from bamdp.gym.world import with_bins

    return with_bins(arguments.env, arguments.bins)


def planner_text(arguments: argparse.Namespace, planner: str) -> str:
    """Return the planner specification, including the parameters given with --set."""
    parts = [planner, ",".join(arguments.set)] if arguments.set else [planner]
    return ("," if ":" in planner else ":").join(parts)


def picture_path(path: str | None, endings: tuple[str, ...] = PICTURES) -> Path | None:
    """Check the file extension of --figure, and return the path."""
    if path is not None and Path(path).suffix not in endings:
        raise ValueError(f"--figure must end in {', '.join(endings[:-1])} or {endings[-1]}, got {path!r}")
    return None if path is None else Path(path)
