"""The names that can be used: ``bamdp list`` prints them, and ``bamdp completion`` lets bash and zsh complete them.

The script of completions contains all words, so that completing does not start Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bamdp.cli import console, options
from bamdp.envs.registry import list_envs
from bamdp.registry import list_planners, list_priors, list_rewards

LISTS: dict[str, tuple[Any, str]] = {  # the function and the title
    "envs": (
        list_envs,
        "Environments   (parameters: grid:size=7; your own model: file:model.npz; Gymnasium's: gym:FrozenLake-v1)",
    ),
    "planners": (list_planners, "Planners   (parameters: --set n_steps=100)"),
    "priors": (
        list_priors,
        "Priors   (parameters: sparse:alpha=0.2,beta=6; alpha may be x/S; a mixture: flat+sparse)",
    ),
    "rewards": (list_rewards, "Rewards   (parameters: normal:mu0=1,by=next)"),
}
COMPLETED = {"env": "envs", "planner": "planners", "planners": "planners"}  # arguments with a list of names
SCRIPT = """\
_bamdp() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}} words=""
    [[ $command == lab && COMP_CWORD -gt 2 ]] && command="lab ${{COMP_WORDS[2]}}"
    ((COMP_CWORD == 1)) && command=""
    case ${{COMP_WORDS[COMP_CWORD-1]}} in
        --prior) command=priors ;;
        --rewards) command=rewards ;;
    esac
    case $command in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _bamdp bamdp
"""


def list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp list``."""
    parser.add_argument("what", metavar="WHAT", nargs="?", choices=LISTS, help=" | ".join(LISTS))
    options.add(parser, "--json")


def list_command(arguments: argparse.Namespace) -> int:
    """Print one list, or all of them."""
    chosen = [arguments.what] if arguments.what else list(LISTS)
    infos = {what: LISTS[what][0]() for what in chosen}
    if arguments.json:
        lists = {what: [asdict(info) for info in listed] for what, listed in infos.items()}
        console.print_json(lists if arguments.what is None else lists[arguments.what])
        return 0
    for what, listed in infos.items():
        rows = [(info.name, info.help, info.parameters_text() or "–") for info in listed]
        console.print_table(("name", "what it is", "parameters and defaults"), rows, LISTS[what][1])
    return 0


def completion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp completion``."""
    parser.epilog = (
        "In ~/.bashrc: source <(bamdp completion bash)    in ~/.zshrc: source <(bamdp completion zsh)"
    )
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh"), help="bash | zsh")


def completion_command(arguments: argparse.Namespace) -> int:
    """Print the script."""
    if arguments.shell == "zsh":  # which reads bash's completions
        print("autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit")
    names = {what: [info.name for info in make_list()] for what, (make_list, _) in LISTS.items()}
    words = {name: _words(parser, names) for name, parser in command_parsers()}
    words |= {"": [name for name in words if " " not in name], **names}
    cases = "\n".join(f'        "{name}") words="{" ".join(some)}" ;;' for name, some in words.items())
    print(SCRIPT.format(cases=cases), end="")
    return 0


def _words(parser: argparse.ArgumentParser, names: dict[str, list[str]]) -> list[str]:
    """Return what can follow a command: its options, its choices, and the names of its kind of argument."""
    words: list[str] = []
    for action in parser._actions:
        words += [*action.option_strings, *map(str, action.choices or ())]
        words += names.get(COMPLETED.get(action.dest, ""), [])
    return words


def command_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parser of every command; those of the laboratory are "lab run" and so on."""
    from bamdp.cli import make_parser

    for name, parser in _subparsers(make_parser()):
        yield name, parser
        for inner, subparser in _subparsers(parser):
            yield f"{name} {inner}", subparser


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()
