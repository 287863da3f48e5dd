"""The supervisor: who ends an attempt when nobody else can?

One per attempt, standard library only, started by path so that it runs within milliseconds. It owns the
attempt's lock, its process tree, its output and its result, and it holds a lease. That is its standard input,
or a time to live that is renewed: when the pipe ends, because the control process closed it or was killed, or
when the time is over, the whole tree is killed at once. With a time to live a control process may go and
another come, through a socket in the attempt's directory.
"""
