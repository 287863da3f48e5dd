"""Which nodes sleep and wake, which jobs become narrower and wider, and who goes to a cloud?"""
