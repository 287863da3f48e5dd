"""Of all who wait or are paused, who starts now, and what is kept for the others?"""
