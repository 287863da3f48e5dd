"""What a training script, or the environment it was started in, can get wrong."""

from wattline.errors import UsageError


class ScriptError(UsageError):
    """The script asks for something that cannot be; it has to be changed."""
