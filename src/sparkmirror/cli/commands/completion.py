"""`sparkmirror completion SHELL`: prints a Tab completion script, made by shtab from the argument parsers."""

import argparse
import sys
from collections.abc import Iterator
from typing import Final

import shtab

_HELP: Final = """\
Print a script that completes commands, options and their values when Tab is pressed.

Writing it takes two seconds, so let the shell load a file, with the first Tab:

  mkdir -p ~/.local/share/bash-completion/completions
  sparkmirror completion bash > ~/.local/share/bash-completion/completions/sparkmirror

for all users:
  sparkmirror completion bash > /usr/share/bash-completion/completions/sparkmirror
  sparkmirror completion zsh > /usr/local/share/zsh/site-functions/_sparkmirror

or, in each new shell:
  bash: echo 'source <(sparkmirror completion bash)' >> ~/.bashrc
  zsh:  echo 'source <(sparkmirror completion zsh)' >> ~/.zshrc
"""
_BASH_ENTRY: Final = """
# Bash splits --option=value into three words; shtab expects two. Where nothing is offered, files are.
_sparkmirror() {
    local -a given=()
    local word
    for word in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
        [[ $word == "=" ]] || given+=("$word")
    done
    given+=("${COMP_WORDS[COMP_CWORD]#=}")
    local -a COMP_WORDS=("${given[@]}")
    local COMP_CWORD=$((${#given[@]} - 1))
    _shtab_sparkmirror
}
complete -o bashdefault -o default -F _sparkmirror sparkmirror
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "completion",
        description=_HELP,
    )
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell that runs the script")
    parser.set_defaults(run=lambda arguments: _print(arguments.shell, subparsers))


def _print(shell: str, commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> int:
    root = argparse.ArgumentParser(prog="sparkmirror")
    root.add_argument("--version", action="version", help="print the version")
    root._add_action(commands)  # noqa: SLF001 - argparse has no other way to reuse a parser's commands
    for parser in _described(commands):
        for action in parser._actions:  # noqa: SLF001 - nor to list its arguments
            if shell == "zsh" and action.nargs != 0 and not action.choices:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's way to ask for files
    sys.stdout.write(shtab.complete(root, shell) + (_BASH_ENTRY if shell == "bash" else ""))
    return 0


def _described(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> Iterator[argparse.ArgumentParser]:
    """Yield every command's parser, described by its help line, which shtab shows and cuts off."""
    helps = {each.dest: each.help for each in commands._choices_actions}  # noqa: SLF001 - where argparse keeps them
    for name, parser in commands.choices.items():
        parser.description = helps.get(name)
        yield parser
        for action in parser._actions:  # noqa: SLF001 - as above
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - its only name
                yield from _described(action)
