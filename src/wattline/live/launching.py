"""Launching: from a decision to begin a job to a folder and a command that an engine can run."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from pathlib import Path

from wattline.checkpoint import (
    AutoCadence,
    CheckpointError,
    LocalStore,
    PacedStore,
    Rate,
    Store,
    copy_checkpoint,
    fence,
    list_checkpoints,
)
from wattline.engines import Launch
from wattline.errors import RefusedError, UnavailableError
from wattline.live.home import Home
from wattline.live.replicas import StoreOf, local_stores
from wattline.live.running import Goods, RunSource
from wattline.spec.pipeline import Phase
from wattline.state import Action, ActionKind, Ending, Job, say_tightest, seconds_left
from wattline.units import format_seconds, format_watts

# One thread for every numeric library: sums come out the same however many cores there are.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "TZ", "USER", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
_CHUNK_BYTES = 1 << 20
_WORTH_SAYING_SECONDS = 10.0


class UnreachedError(UnavailableError):
    """What a job would go on from cannot be had where it would begin: no fault of its own."""


def attempt_name(job: str, attempt: int) -> str:
    return f"{job}/{attempt}"


def prepare(
    home: Home,
    goods: Goods,
    source: RunSource,
    job: Job,
    action: Action,
    inputs: tuple[str, ...],
    bytes_per_second: float | None,
    save_price_seconds: float = 0.0,
    *,
    peak_watts: float = 0.0,
    actor: str = "",
    store_of: StoreOf | None = None,
    cut_seconds: float = 0.0,
) -> Launch:
    """Lay out an attempt's folder: its source, its data, what came before it, its newest checkpoint.

    `bytes_per_second` is what the link to the checkpoint's site gives to such traffic; None: it is no link.
    `save_price_seconds`: how much training the money for one save would pay for. `cut_seconds`: how long it
    would go on after its site was cut off, which would be lost beside what it has not saved.
    `peak_watts`: what it may draw at its place. `actor`: whoever submitted the run.

    Everything here may take long and may be done again after a crash; nothing runs yet.
    """
    assert action.place is not None
    request = job.request
    phase = source.pipeline.phases[request.phase]
    way = phase.modes.get("approximate" if job.runs_as == "approximate" else "canonical")
    directory = home.attempt(request.run, request.phase, action.attempt)
    work = directory / "work"
    out = work / "out"
    out.mkdir(parents=True, exist_ok=True)
    goods.unpack(source.bundle, work)
    _link_data(source, work)
    for digest in inputs:
        goods.unpack(digest, out)
    checkpoints = home.checkpoints(action.place.site, request.run, request.phase)
    checkpoints.mkdir(parents=True, exist_ok=True)
    if action.from_site:
        bring_checkpoint(store_of or local_stores(home), job, action, checkpoints, bytes_per_second)
    if phase.checkpoint is not None or request.checkpoints:
        fence(LocalStore(checkpoints), action.attempt)
    if phase.signals is not None and phase.signals.saved_to is not None:
        _carry_over(home, job, action, phase.signals.saved_to, work)
    return Launch(
        attempt=attempt_name(job.id, action.attempt),
        epoch=action.attempt,
        directory=directory,
        working_directory=work,
        command=way.run if way is not None and way.run is not None else phase.run,
        environment=_environment(
            source, phase, job, action, directory, checkpoints, save_price_seconds, cut_seconds
        ),
        max_duration_seconds=seconds_left(job),
        checkpoint_signal=_signal(phase.signals.checkpoint if phase.signals else None),
        finish_signal=_signal(phase.signals.finish if phase.signals else None) or signal.SIGTERM,
        cpus=request.cpus,
        site=action.place.site,
        nodes=dict(action.place.nodes),
        peak_watts=peak_watts,
        comment=_reason(job, action, peak_watts),
        user=actor,
        folders=(checkpoints,),
    )


def bring_checkpoint(
    store_of: StoreOf, job: Job, action: Action, target: Path, bytes_per_second: float | None
) -> None:
    """Copy the newest good checkpoint from the site it was saved at, no faster than the link allows.

    Where there is none, that is an error: beginning anew would lose what the journal says is saved.
    """
    assert action.place is not None
    arriving: Store = LocalStore(target)
    try:
        origin = store_of(action.from_site, job.request.run, job.request.phase)
        if action.from_site != action.place.site or not isinstance(origin, LocalStore):
            if bytes_per_second is not None and bytes_per_second <= 0:
                raise UnreachedError(
                    f"checkpoint of {job.id}: the link from {action.from_site} carries nothing now"
                )
            paced = arriving if bytes_per_second is None else PacedStore(arriving, Rate(bytes_per_second))
            copy_checkpoint(origin, paced)
    except CheckpointError as error:
        raise UnreachedError(error.message, hint=error.hint) from error
    if not list_checkpoints(arriving):
        before = "; a server that ran it before hands over what it saved with --receive"
        raise UnreachedError(
            f"checkpoint of {job.id}: it was saved at {action.from_site}, and none can be had from there"
            + (before if action.from_site == action.place.site else "")
        )


def _link_data(source: RunSource, work: Path) -> None:
    """Data stays where it is; a link leads to it, once it is shown to be what was pinned."""
    for data in source.pipeline.data:
        origin = source.folder / data.path
        wanted = source.data_sha256.get(data.path)
        found = hash_data(origin)
        if wanted is not None and found != wanted:
            raise RefusedError(
                f"data {data.name}: {origin} has sha256 {found}, the run was admitted with {wanted}",
                hint="restore the file, or pin the new one with `wattline data pin` and run again",
            )
        place = work / data.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(origin)


def hash_data(path: Path) -> str:
    """The sha256 of a file, or of a folder's files by name and content."""
    if not path.exists():
        raise UnavailableError(f"data: {path} does not exist", hint="check the path in the pipeline")
    if path.is_file():
        return _sha256(path).hexdigest()
    whole = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        whole.update(f"{file.relative_to(path).as_posix()}\0{_sha256(file).hexdigest()}\n".encode())
    return whole.hexdigest()


def _sha256(path: Path) -> hashlib._Hash:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise UnavailableError(f"data: {path} cannot be read: {error.strerror or error}") from error
    return digest


def _carry_over(home: Home, job: Job, action: Action, saved_to: str, work: Path) -> None:
    """A script that may not be changed saves into a folder of its own: hand it to the next attempt."""
    for attempt in range(action.attempt - 1, 0, -1):
        before = home.attempt(job.request.run, job.request.phase, attempt) / "work" / saved_to
        if before.is_dir():
            shutil.copytree(before, work / saved_to, dirs_exist_ok=True)
            return


def _environment(
    source: RunSource,
    phase: Phase,
    job: Job,
    action: Action,
    directory: Path,
    checkpoints: Path,
    save_price_seconds: float,
    cut_seconds: float,
) -> dict[str, str]:
    work = directory / "work"
    scratch = directory / "tmp"
    scratch.mkdir(exist_ok=True)
    here = str(Path(sys.executable).parent)
    passed_on = (*_PASSED_ON, *source.pipeline.secrets)
    environment = {name: os.environ[name] for name in passed_on if name in os.environ}
    environment |= _ONE_THREAD
    environment |= {
        # The interpreter that runs Wattline is the one `python` means.
        "PATH": f"{here}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "TMPDIR": str(scratch),
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "WATTLINE_ATTEMPT": str(directory),
        "WATTLINE_EPOCH": str(action.attempt),
        "WATTLINE_RUN": job.request.run,
        "WATTLINE_PHASE": job.request.phase,
        "WATTLINE_OUT": str(work / "out"),
        "WATTLINE_CPUS": str(max(1, int(job.request.cpus))),
        "WATTLINE_MODE": job.runs_as,
        "WATTLINE_GPUS": str(_gpus(action)),
    }
    if phase.checkpoint is not None:
        every = phase.checkpoint.every
        environment["WATTLINE_CHECKPOINTS"] = str(checkpoints)
        environment["WATTLINE_CHECKPOINT_EVERY"] = (
            _learnt_cadence(job, save_price_seconds).to_text()
            if every == "auto"
            else f"seconds:{_save_seconds(job, every.seconds, cut_seconds):g}"
        )
        environment["WATTLINE_CHECKPOINT_KEEP"] = str(phase.checkpoint.keep)
        if phase.checkpoint.replicate_to:
            environment["WATTLINE_CHECKPOINT_TRAVELS"] = "1"
    if source.pipeline.params is not None:
        environment["WATTLINE_PARAMS"] = str(work / source.pipeline.params)
    way = phase.modes.get("approximate" if job.runs_as == "approximate" else "canonical")
    return environment | (way.env if way is not None else {})


def _save_seconds(job: Job, every_seconds: float, cut_seconds: float) -> float:
    """What its owner wrote is what may be lost: where a cut would add to it, it is saved the more often."""
    may_move = job.request.on_isolation == "stop" and bool(job.request.replicate_to)
    return max(every_seconds / 2, every_seconds - cut_seconds) if may_move else every_seconds


def _reason(job: Job, action: Action, peak_watts: float) -> str:
    """What `explain` says of a beginning, in a line: where, what it may draw, and why it may."""
    watts = f", at most {format_watts(peak_watts)}" if peak_watts else ""
    because = action.because or say_tightest(job.verdicts) or "there is room"
    waited = job.since - job.submitted_at if action.kind is ActionKind.START and not job.past else 0.0
    after = f"; waited {format_seconds(waited)}" if waited >= _WORTH_SAYING_SECONDS else ""
    return f"{action.kind} on {action.place}{watts}: {because}{after}"


def _gpus(action: Action) -> int:
    """How many it was given: for who may run on fewer or more than it asked for."""
    return 0 if action.place is None else action.place.gpus


def _learnt_cadence(job: Job, save_price_seconds: float) -> AutoCadence:
    """What the job's earlier attempts tell of how often it fails, and what a save costs in money."""
    cadence = AutoCadence(price_seconds=save_price_seconds)
    for past in job.past:
        if past.began_at is not None:
            cadence.ran(max(0.0, past.ended_at - past.began_at))
        if past.ending in (Ending.LOST, Ending.FAILED):
            cadence.failed()
    return cadence


def _signal(name: str | None) -> int | None:
    if name is None:
        return None
    try:
        return int(signal.Signals[name])
    except KeyError as error:
        raise RefusedError(f"signals: {name!r} is not a signal here", hint="such as SIGUSR1") from error
