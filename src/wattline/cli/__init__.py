"""The command line. It decides nothing."""


def main() -> None:
    """Run the command line; a missing control plane is told plainly."""
    try:
        from wattline.cli.app import run_app
    except ModuleNotFoundError as error:
        import sys

        sys.stderr.write(
            f"wattline: the control plane is not installed ({error.name} is missing)\n"
            "  hint: pip install 'wattline[control]'\n"
        )
        raise SystemExit(3) from None
    run_app()
