"""How did the tables come to be as they are? One file for each version, forward only."""
