"""Which running jobs are under pressure, and which rung does each take, at what price?"""
