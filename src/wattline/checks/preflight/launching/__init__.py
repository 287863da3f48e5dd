"""Do the numbers of a launch fit each other, and its GPUs?"""
