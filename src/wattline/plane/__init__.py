"""The control plane in one process: who conducts, what is in force, and what can be told of it.

Both faces, the command line and the API, stand on this room: what they tell is built here, once; how it is
printed or served is theirs.
"""
