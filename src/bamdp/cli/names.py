"""The names that can be used: ``bamdp list`` prints them, and ``bamdp completion`` lets bash and zsh complete them.

The script of completions has all words in it, so that completing does not start Python. It is made anew from the
parsers whenever it is asked for.
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
SHELLS = ("bash", "zsh")
NAMED = {"--prior": "priors", "--rewards": "rewards"}  # options whose value has a list of names
POSITIONAL = {"env": "envs", "planner": "planners", "planners": "planners", "study": "studies"}
SCRIPT = """\
# Completion of bamdp's command line, made by `bamdp completion`.
_bamdp() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} place=1
    [[ $command == lab && COMP_CWORD -gt 2 ]] && { command="lab ${COMP_WORDS[2]}"; place=2; }
    local options="" names="" i count=0 after=""
    for ((i = place + 1; i < COMP_CWORD; i++)); do  # how many words that are no options stand before this one
        case ${COMP_WORDS[i]} in
            @FLAGS@) after="" ;;  # options without a value
            -*) after=${COMP_WORDS[i]} ;;
            *) [[ $after == -* ]] || ((count += 1)); after="" ;;
        esac
    done
    if ((COMP_CWORD <= place)); then
        names="@COMMANDS@"
    else
        case $command in
@CASES@
        esac
        case $previous in
@VALUES@
        esac
    fi
    [[ $word == -* ]] && names=$options
    COMPREPLY=($(compgen -W "$names" -- "$word"))
}
complete -o default -F _bamdp bamdp
"""


def list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp list``."""
    parser.add_argument("what", metavar="WHAT", nargs="?", choices=LISTS, help=" | ".join(LISTS))
    options.add(parser, "--json")


def list_command(arguments: argparse.Namespace) -> int:
    """Print one list, or all of them."""
    infos = {
        what: make_list()
        for what, (make_list, _) in LISTS.items()
        if arguments.what is None or what == arguments.what
    }
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
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" | ".join(SHELLS))


def completion_command(arguments: argparse.Namespace) -> int:
    """Print the script."""
    if arguments.shell == "zsh":  # which reads bash's completions
        print("autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit")
    print(make_script(), end="")
    return 0


def make_script() -> str:
    """Return the script for bash."""
    lists = _lists()
    parsers = dict(command_parsers())
    cases = "\n".join(f'            "{name}") {_case(parser, lists)} ;;' for name, parser in parsers.items())
    values = "\n".join(f'            {option}) names="{lists[what]}" ;;' for option, what in NAMED.items())
    actions = [action for parser in parsers.values() for action in parser._actions]
    flags = {word for action in actions if action.nargs == 0 for word in action.option_strings}
    parts = {
        "@COMMANDS@": " ".join(name for name in parsers if " " not in name),
        "@CASES@": cases,
        "@VALUES@": values,
        "@FLAGS@": "|".join(sorted(flags)),
    }
    script = SCRIPT
    for place, text in parts.items():
        script = script.replace(place, text)
    return script


def _case(parser: argparse.ArgumentParser, lists: dict[str, str]) -> str:
    """Return the assignments of a command: its options, and the names that fit at each place."""
    words = [word for action in parser._actions for word in action.option_strings]
    places = []
    for number, action in enumerate(a for a in parser._actions if not a.option_strings):
        choices = lists.get(POSITIONAL.get(action.dest, ""))
        if action.choices:
            choices = " ".join(map(str, action.choices))
        if choices:
            condition = f"count >= {number}" if action.nargs == "+" else f"count == {number}"
            places.append(f'(({condition})) && names="{choices}"')
    return "; ".join([f'options="{" ".join(words)}"', *places])


def command_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parser of every command, with its arguments; those of the laboratory are "lab run" and so on."""
    from bamdp.cli import CommandParser, make_parser

    for name, parser in _subparsers(make_parser()):
        assert isinstance(parser, CommandParser)
        parser.load()
        yield name, parser
        for inner, subparser in _subparsers(parser):
            yield f"{name} {inner}", subparser


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers: dict[str, argparse.ArgumentParser] = action.choices
            yield from parsers.items()


def _lists() -> dict[str, str]:
    """Return the names in each list, and those of the studies, as words of a shell."""
    from bamdp.lab.reading import STUDIES

    names = {what: [info.name for info in make_list()] for what, (make_list, _) in LISTS.items()}
    return {what: " ".join(words) for what, words in {**names, "studies": STUDIES}.items()}
