"""Attempts as jobs of a Slurm cluster."""

from wattline.engines.slurm.client import SlurmClient
from wattline.engines.slurm.cluster import SlurmDownError, SlurmRefusedError
from wattline.engines.slurm.engine import SlurmEngine
from wattline.engines.slurm.rest import SlurmRest
from wattline.engines.slurm.submission import SlurmOptions

__all__ = ["SlurmClient", "SlurmDownError", "SlurmEngine", "SlurmOptions", "SlurmRefusedError", "SlurmRest"]
