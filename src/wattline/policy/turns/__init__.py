"""Who goes first, for whom is a place kept, and who makes way?"""
