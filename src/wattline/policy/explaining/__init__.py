"""Why does a job wait, what would change that, and what room is left?"""
