"""What an exporter needs to be installed, refused in one line with the command that installs it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from importlib import metadata

from fairlead.exporters.refusals import warn


def check_packages(
    owner: str,
    required_packages: Iterable[str],
    min_versions: Mapping[str, str] | None = None,
    tested_versions: Mapping[str, str] | None = None,
) -> None:
    """Raises ImportError for every package that is missing or too old, all in one line; warns where a version
    differs from the tested one.

    >>> check_packages("OnnxExporter", ["torch"], {"torch": "2.6"})
    """
    oldest, tested = dict(min_versions or {}), dict(tested_versions or {})
    wanted, found = [], []
    for package in dict.fromkeys([*required_packages, *oldest]):
        version = installed_version(package)
        minimum = oldest.get(package)
        if version is None:
            found.append(f"no {package}")
        elif minimum is not None and numbers(version) < numbers(minimum):
            found.append(f"{package} {version}")
        else:
            continue
        wanted.append(f"{package}>={minimum}" if minimum else package)
    if wanted:
        command = " ".join(f'"{w}"' if ">" in w else w for w in wanted)
        raise ImportError(
            f"[{owner}] Expected {' and '.join(wanted)}, got {' and '.join(found)}. Install with: pip install {command}"
        )
    drift = []
    for package, version in tested.items():
        now = installed_version(package)
        if now is not None and numbers(now) != numbers(version):
            drift.append(f"{package} {now} (tested with {version})")
    if drift:
        warn(f"[{owner}] Runs with versions it was not tested with: {', '.join(drift)}.")


def installed_version(package: str) -> str | None:
    """The version without a build suffix (`+cpu`); "0" for a package without one; None where it is missing."""
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:  # onnxruntime-gpu installs the module onnxruntime
        names = metadata.packages_distributions().get(package)
        return metadata.version(names[0]).partition("+")[0] if names else "0"


def numbers(version: str) -> tuple[int, ...]:
    """The release as numbers, for comparing: "2.13.0rc1" -> (2, 13)."""
    release = [int(n) for n in re.sub(r"[^\d.].*", "", version).split(".") if n]
    while release and release[-1] == 0:
        release.pop()
    return tuple(release)
