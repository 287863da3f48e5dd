"""Should a job that could wait run now, or in hours that are cleaner or cheaper?"""
