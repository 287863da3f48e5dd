from cli.fixtures import desk, home, in_folder, kept, ran, wattline, writing

__all__ = ["desk", "home", "in_folder", "kept", "ran", "wattline", "writing"]
