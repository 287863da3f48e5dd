"""The supervisor: who ends an attempt when nobody else can?

One per attempt, standard library only, started by path so that it runs within milliseconds. It owns the
attempt's lock, its process tree, its output and its result, and it holds a lease: its standard input. When
that pipe ends, because the control process closed it or was killed, the whole tree is killed at once.
"""
