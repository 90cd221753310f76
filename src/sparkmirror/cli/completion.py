"""`sparkmirror completion SHELL`: what the Tab key offers, made from the commands' own arguments."""

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_PROGRAM: Final = "sparkmirror"
_HELP: Final = """\
Print a script that completes commands, options and their values when Tab is pressed.

  bash: echo 'source <(sparkmirror completion bash)' >> ~/.bashrc
  zsh:  echo 'source <(sparkmirror completion zsh)' >> ~/.zshrc

for all users:
  sparkmirror completion bash > /usr/share/bash-completion/completions/sparkmirror
  sparkmirror completion zsh > /usr/local/share/zsh/site-functions/_sparkmirror
"""

# Both walk over the words that stand before the cursor, as far as they are commands, and step over the values
# of options. Where nothing is offered, files are.
_BASH: Final = """\
# Completes sparkmirror in bash. Made by: sparkmirror completion bash
_sparkmirror() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    local place=sparkmirror words="" options="" offered i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$place ${COMP_WORDS[i]}" in
            @VALUE_FOLLOWS@) i=$((i + 1)) ;;
            @COMMANDS@) place="$place ${COMP_WORDS[i]}" ;;
        esac
    done
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $previous == "=" ]]; then
        previous="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    case "$place $previous" in
@VALUES@
        *)
            case "$place" in
@WORDS@
            esac
            ;;
    esac
    offered="$words"
    if [[ $current == -* ]]; then
        offered="$options"
    fi
    COMPREPLY=($(compgen -W "$offered" -- "$current"))
}
complete -o bashdefault -o default -F _sparkmirror sparkmirror
"""

_ZSH: Final = """\
#compdef sparkmirror
# Completes sparkmirror in zsh. Made by: sparkmirror completion zsh
_sparkmirror() {
    local place=sparkmirror i
    local -a offered options
    for ((i = 2; i < CURRENT; i++)); do
        case "$place ${words[i]}" in
            @VALUE_FOLLOWS@) i=$((i + 1)) ;;
            @COMMANDS@) place="$place ${words[i]}" ;;
        esac
    done
    case "$place ${words[CURRENT-1]}" in
@VALUES@
        *)
            case "$place" in
@WORDS@
            esac
            ;;
    esac
    if [[ ${words[CURRENT]} == -* ]]; then
        _describe -o option options
    elif (( ${#offered} )); then
        _describe command offered
    else
        _files
    fi
}
if [[ $funcstack[1] == _sparkmirror ]]; then
    _sparkmirror "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _sparkmirror sparkmirror
fi
"""


@dataclass(frozen=True, slots=True)
class _Command:
    """A command by its words, and what may follow them, each with what it means."""

    path: str
    words: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    values: dict[str, Sequence[str]] = field(default_factory=dict)
    """Of the options that take any; nothing where any will do."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "completion",
        help="a script that completes commands in bash and zsh",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh"), help="whose script to print")
    parser.set_defaults(run=lambda arguments: _print(arguments.shell, subparsers))


def script(shell: str, commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> str:
    """The shell's script for `sparkmirror` with these commands."""
    root = argparse.ArgumentParser(prog=_PROGRAM)
    root.add_argument("--version", action="version", help="print the version")
    found = list(_walk(root, _PROGRAM, commands))
    return _filled(_BASH, found, _bash_words) if shell == "bash" else _filled(_ZSH, found, _zsh_words)


def _print(shell: str, commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> int:
    sys.stdout.write(script(shell, commands))
    return 0


def _walk(
    parser: argparse.ArgumentParser, path: str, commands: argparse.Action | None = None
) -> Iterator[_Command]:
    found = _Command(path)
    actions = parser._actions  # noqa: SLF001 - argparse has no other way to look at a parser
    for action in [*actions, *([] if commands is None else [commands])]:
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - nor a name for this
            helps = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001 - likewise
            for name, child in action.choices.items():
                found.words[name] = helps.get(name, "")
                yield from _walk(child, f"{path} {name}")
        elif action.option_strings:
            _add_option(found, action, parser)
        else:
            found.words.update(dict.fromkeys(map(str, action.choices or ()), ""))
    yield found


def _add_option(found: _Command, action: argparse.Action, parser: argparse.ArgumentParser) -> None:
    formatter = parser._get_formatter()  # noqa: SLF001 - what fills %(default)s in
    text = formatter._expand_help(action) if action.help else ""  # noqa: SLF001 - likewise
    for option in action.option_strings:
        found.options[option] = text
        if action.nargs != 0:
            found.values[option] = tuple(map(str, action.choices or ()))


def _filled(
    template: str, commands: Sequence[_Command], assigned: Callable[[str, Mapping[str, str]], str]
) -> str:
    paths = [command.path for command in commands if command.path != _PROGRAM]
    followed = [f"{command.path} {option}" for command in commands for option in command.values]
    values = [
        f"        {shlex.quote(f'{command.path} {option}')})"
        f" {assigned('words', dict.fromkeys(choices, ''))} ;;"
        for command in commands
        for option, choices in command.values.items()
    ]
    words = [
        f"                {shlex.quote(command.path)}) {assigned('words', command.words)};"
        f" {assigned('options', command.options)} ;;"
        for command in commands
    ]
    return (
        template.replace("@VALUE_FOLLOWS@", "|".join(map(shlex.quote, followed)))
        .replace("@COMMANDS@", "|".join(map(shlex.quote, paths)))
        .replace("@VALUES@", "\n".join(values))
        .replace("@WORDS@", "\n".join(words))
    )


def _bash_words(name: str, offers: Mapping[str, str]) -> str:
    return f"{name}={shlex.quote(' '.join(offers))}"


def _zsh_words(name: str, offers: Mapping[str, str]) -> str:
    described = [f"{word}:{text}" if text else word for word, text in offers.items()]
    return f"{'offered' if name == 'words' else name}=({' '.join(map(shlex.quote, described))})"
