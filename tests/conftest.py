"""Shared by all tests: slow on a busy machine is not wrong, so properties have no deadline."""

from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
