"""Where does a job go, over which nodes, at what score, and when nowhere: how far is it from fitting?"""
