"""Who runs under which cap, and how fast may load be added to a feed?"""
