"""What do racks, supplies, loops and heat still carry, and where may a shape that did not fit now?"""
