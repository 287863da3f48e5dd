"""What goes into the processes of a rehearsal; nothing here is imported by Wattline itself.

`warden.py` is started by its path around the command, `sitecustomize.py` by every Python in it, because this
folder comes first on their path. Both need only the standard library.
"""
