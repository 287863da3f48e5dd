from cli.fixtures import desk, home, kept, ran, wattline, writing

__all__ = ["desk", "home", "kept", "ran", "wattline", "writing"]
