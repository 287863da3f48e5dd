"""Which repository of checkpoints did somebody mean, and what in it does a release need?"""

from __future__ import annotations

from pathlib import Path

from wattline.checkpoint import Store, open_store
from wattline.cli.remote import say_here
from wattline.errors import UnavailableError, WattlineError
from wattline.plane.finding import View, find_jobs, open_if_any, open_view
from wattline.release import load_manifest


def find_store(where: str | None, *, bytes_per_second: float | None = None, is_new: bool = False) -> Store:
    """A folder, a URL, a run or run/phase; the newest run where nothing is named.

    `is_new`: a folder that is not there yet is meant to be made.
    """
    if where is not None and (is_new or "://" in where or Path(where).is_dir()):
        return open_store(where, bytes_per_second=bytes_per_second)
    say_here()
    with open_view() as view:
        run, jobs = find_jobs(view.state, where)
        saved = [job for job in jobs if job.saved is not None]
        if not saved:
            raise UnavailableError(
                f"{where or run.run}: has saved no checkpoint",
                hint="name a run/phase that has, or a folder",
            )
        job = saved[-1]
        assert job.saved is not None
        home = view.session.home
        return open_store(home.checkpoints(job.saved.site, run.run, job.request.phase))


def pinned_digests() -> frozenset[str]:
    """Checkpoints that a release here was made from: it may be rolled back to."""
    with open_if_any() as view:
        return frozenset() if view is None else frozenset(_digests(view))


def _digests(view: View) -> list[str]:
    found = []
    shelf, objects = view.session.shelf, view.session.objects
    for known in view.state.releases.values():
        manifests = {move.manifest for move in shelf.history(str(known["name"]), str(known["channel"]))}
        for manifest in manifests | {str(known["manifest"])}:
            try:
                statement = load_manifest(manifest, objects)
            except WattlineError as error:
                raise UnavailableError(
                    f"release {known['name']}: its manifest cannot be read: {error.message}",
                    hint="nothing is removed while it is not known what releases need",
                ) from error
            found += [
                dependency.digest.blake3
                for dependency in statement.predicate.build_definition.resolved_dependencies
                if dependency.name == "checkpoint" and dependency.digest.blake3
            ]
    return found
