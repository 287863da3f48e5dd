"""The face for programs: an HTTP API over the control plane. It decides nothing."""
