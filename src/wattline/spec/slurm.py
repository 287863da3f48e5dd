"""How is a site's Slurm to be asked, by its commands or by slurmrestd? As people write it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictInt, model_validator

from wattline.spec.document import Document
from wattline.spec.quantities import Name, Seconds, Watts
from wattline.spec.telemetry import AbsolutePath, Url

_PROPERTY = re.compile(r"[a-z][a-z_]{0,63}\Z")
# What decides where a job runs, as whom and how often is decided elsewhere.
_OWN_OPTIONS = frozenset(
    {
        *(
            "--nodelist",
            "--nodes",
            "--gres",
            "--gpus",
            "--requeue",
            "--no-requeue",
            "--job-name",
            "--comment",
        ),
        *("--chdir", "--output", "--error", "--uid", "--licenses", "--partition", "--account", "--array"),
        *("--wrap", "--parsable", "--time", "--exclude", "--export", "--wait", "--dependency", "--test-only"),
        "--open-mode",
    }
)
_OWN_PROPERTIES = frozenset(
    {
        *("nodelist", "nodes", "gres", "gpus", "requeue", "no_requeue", "name", "comment", "environment"),
        *("current_working_directory", "standard_output", "standard_error", "licenses", "partition"),
        *("account", "array", "time_limit", "exclude_nodes", "dependency", "open_mode", "cpus_per_task"),
        *("kill_on_invalid_dependency", "tasks_per_node", "hold", "argv"),
    }
)


def _check_python(value: str) -> str:
    if not 1 <= len(value) <= 1024 or not value.isprintable() or not value.startswith("/"):
        raise ValueError(
            "an interpreter is named by its whole path on the nodes, such as /opt/train/bin/python"
        )
    return value


def _check_sbatch_option(value: str) -> str:
    if len(value) > 256 or not value.isprintable() or not value.startswith("--"):
        raise ValueError("an option of sbatch is written in full, such as --qos=high")
    if value.partition("=")[0] in _OWN_OPTIONS:
        raise ValueError("Wattline sets this option itself")
    return value


def _check_property(value: str) -> str:
    if not _PROPERTY.match(value):
        raise ValueError("a property of a job is written as slurmrestd writes it, such as qos")
    if value in _OWN_PROPERTIES:
        raise ValueError("Wattline sets this property itself")
    return value


def _check_words(value: str) -> str:
    if len(value) > 256 or not value.isprintable():
        raise ValueError("a property has up to 256 printable characters")
    return value


SbatchOption = Annotated[str, AfterValidator(_check_sbatch_option)]
JobProperty = Annotated[str, AfterValidator(_check_property)]
Words = Annotated[str, AfterValidator(_check_words)]


class SlurmrestdDocument(Document):
    """Where slurmrestd answers, and as whom it is asked."""

    url: Url | None = None
    socket: AbsolutePath | None = None
    user: Name | None = None
    token_file: AbsolutePath | None = None
    timeout: Annotated[Seconds, Field(ge=1, le=300)] = 15.0
    job: Annotated[dict[JobProperty, StrictBool | StrictInt | Words], Field(max_length=100)] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _one_way(self) -> SlurmrestdDocument:
        if (self.url is None) == (self.socket is None):
            raise ValueError("slurmrestd is asked by its url or by its socket: say one of them")
        if self.url is not None and self.token_file is None:
            raise ValueError("by its url slurmrestd wants a token: say token_file")
        if self.socket is not None and (self.token_file or self.user):
            raise ValueError("over its socket slurmrestd knows who asks: leave user and token_file out")
        return self


class SlurmDocument(Document):
    """How the site's Slurm is to be asked."""

    partition: Name | None = None
    account: Name | None = None
    user: Name | None = None
    power_license: Name | None = None
    watts_per_license: Annotated[Watts, Field(gt=0)] = 1000.0
    python: Annotated[str, AfterValidator(_check_python)] | None = None
    sbatch: Annotated[tuple[SbatchOption, ...], Field(max_length=100)] = ()
    rest: SlurmrestdDocument | None = None

    @model_validator(mode="after")
    def _rest_alone(self) -> SlurmDocument:
        if self.rest is not None and self.sbatch:
            raise ValueError("slurmrestd knows no options of sbatch: say them as properties, in rest.job")
        if self.rest is not None and self.rest.socket is not None and self.user is not None:
            raise ValueError("over a socket all jobs are of who asks: for others' jobs give rest a url")
        return self
