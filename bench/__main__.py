"""All figures that are not soaks, one after the other."""

from bench.decisions import main

main()
