"""The lineage command: from a release back to its data and decisions, with every hash read again."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import say_here
from wattline.cli.shelving import current_release, find_channel, released_names
from wattline.cli.tracing import Traced, trace_release, trace_run
from wattline.plane.finding import View, open_view, unknown
from wattline.release import Link, Statement

_MARKS = {
    "verified": ("✓", "green"),
    "not kept": ("–", "dim"),
    "missing": ("✗", "bold red"),
    "altered": ("✗", "bold red"),
}
# From the result back to where it came from.
_KINDS = (
    "artifact",
    "checkpoint",
    "outputs",
    "logs",
    "metrics",
    "gates",
    "source",
    "image",
    "params",
    "pipeline",
    "data",
    "policy",
    "facility",
    "decisions",
)
_OF_PHASES = frozenset({"outputs", "logs", "metrics", "gates"})
_MOST_ALIKE = 8


def show_lineage(name: str, *, as_json: bool) -> int:
    say_here()
    with open_view() as view:
        traced = _find(view, name)
        if as_json:
            print_json(_describe(traced))
        else:
            console = stdout_console()
            console.print(_tree(traced))
            wrong = sum(link.outcome in ("missing", "altered") for link in traced.lineage.links)
            checked = sum(link.outcome == "verified" for link in traced.lineage.links)
            if wrong:
                console.print(
                    f"not intact: {wrong} of {len(traced.lineage.links)} are not as they were", style="red"
                )
            else:
                console.print(f"intact: {checked} hashes read again", style="green")
    return 0 if traced.lineage.intact else 1


def _find(view: View, name: str) -> Traced:
    if name in view.state.runs:
        return trace_run(view, view.state.runs[name])
    names, bare = released_names(view.session), name.partition(":")[0]
    if bare not in names:
        raise unknown("run or release", bare, [*names, *view.state.runs])
    release, channel = find_channel(view.session, name, None)
    return trace_release(view, current_release(view.session, release, channel))


def _tree(traced: Traced) -> Tree:
    links = {kind: [link for link in traced.lineage.links if link.kind == kind] for kind in _KINDS}
    title = Text.assemble("run ", (traced.run_id or "of an unknown name", "bold"))
    first = [link for link in traced.lineage.links if link.kind in ("release", "manifest")]
    root = tree = Tree(title, guide_style="dim")
    for link in first:
        tree = tree.add(_label(link))
    phases: Tree | None = None
    for kind in _KINDS:
        if kind in _OF_PHASES and traced.statement is not None:
            if phases is None:
                phases = _add_phases(tree, traced.statement)
            _add(phases, links[kind])
        else:
            first_of_kind = _add(tree, links[kind])
            if kind == "source" and traced.statement is not None:
                _add_commit(first_of_kind, traced.statement)
    return root


def _add(tree: Tree, links: list[Link]) -> Tree:
    """A long row of things that are all right is cut; what is wrong always shows. Returns the first."""
    shown, branches = 0, []
    for link in links:
        if link.outcome == "verified":
            shown += 1
            if shown > _MOST_ALIKE:
                continue
        branches.append(tree.add(_label(link)))
    if shown > _MOST_ALIKE:
        tree.add(Text(f"and {shown - _MOST_ALIKE} more of kind {links[0].kind}, all verified", style="dim"))
    return branches[0] if branches else tree


def _add_phases(tree: Tree, statement: Statement) -> Tree:
    parts = []
    for phase in statement.predicate.run_details.phases:
        sites = [attempt.site for attempt in phase.attempts]
        route = [site for at, site in enumerate(sites) if at == 0 or sites[at - 1] != site]
        count = f", {len(sites)} attempts" if len(sites) > 1 else ""
        rough = ", approximate" if phase.mode == "approximate" else ""
        parts.append(f"{phase.name} ({' → '.join(route)}{count}{rough})")
    return tree.add(Text.assemble(("phases", "cyan"), f" {plain('; '.join(parts))}"))


def _add_commit(tree: Tree, statement: Statement) -> None:
    source = next(
        (one for one in statement.predicate.build_definition.resolved_dependencies if one.name == "source"),
        None,
    )
    if source is None:
        return
    commit = source.digest.git_commit or source.annotations.get("commit")
    if commit is None:
        text = "none: the source did not come from Git"
    elif source.digest.git_commit is None:
        text = f"{commit}, with changes that are in the bundle only"
    else:
        text = str(commit)
    tree.add(Text.assemble(("commit", "cyan"), f" {plain(text)}"))


def _label(link: Link) -> Text:
    mark, style = _MARKS[link.outcome]
    algorithm, _, digest = link.digest.partition(":")
    label = Text.assemble((mark, style), " ", (_word(link), "cyan"), _name(link))
    if digest:
        label.append(f"  {algorithm}:{digest[:12]}", style="dim")
    if link.outcome != "verified":
        label.append(f"  {link.outcome}", style=style)
    if link.note:
        label.append(f"  {plain(link.note)}", style="dim" if link.outcome in ("verified", "not kept") else "")
    return label


def _word(link: Link) -> str:
    return {"decisions": "journal", "source": "source bundle"}.get(link.kind, link.kind)


def _name(link: Link) -> str:
    """A name without what its kind says already."""
    name = link.name.removeprefix(f"{link.kind}/").removeprefix("journal ")
    return "" if name == link.kind else f" {plain(name)}"


def _describe(traced: Traced) -> dict[str, object]:
    release = traced.release
    return {
        "run_id": traced.run_id,
        "release": None
        if release is None
        else {
            "name": release.name,
            "channel": release.channel,
            "number": release.number,
            "by": release.act.by,
        },
        "intact": traced.lineage.intact,
        "links": traced.lineage.links,
    }
