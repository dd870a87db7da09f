"""`fairlead completion`: the lines that make a shell complete commands, options and paths."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: Any) -> None:
    """Prints what makes SHELL complete fairlead's commands and options.

    \b
    Examples:
      fairlead completion bash > ~/.local/share/bash-completion/completions/fairlead
      fairlead completion zsh > "${fpath[1]}/_fairlead"
      fairlead completion fish > ~/.config/fish/completions/fairlead.fish
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    made = get_completion_class(shell)(root.command, {}, "fairlead", "_FAIRLEAD_COMPLETE")
    click.echo(made.source())
