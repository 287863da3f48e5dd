"""Does the real code get through a tiny pass, under limits?"""
